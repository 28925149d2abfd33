//! Rules about the pages of lists and about caching.

use std::collections::HashMap;

use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

use crate::auditor::checks::values::{result_type, rules_of, text};
use crate::auditor::checks::{Check, Context};
use crate::auditor::conversation::{Handshake, Request};
use crate::auditor::message::Message;

pub(in crate::auditor::checks) static RULES: &[&Rule] =
    &[&rule::PAGE_01, &rule::PAGE_03, &rule::PAGE_04, &rule::CACHE_01, &rule::CACHE_07, &rule::T_16];

/// Lists with pages; those of tasks and of extensions have rules of their own about nextCursor.
const LISTS: [&str; 4] = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];

/// Cursors that are remembered, and the bytes of one; once there are more, unknown ones are not judged.
const MAX_CURSORS: usize = 512;
const MAX_CURSOR: usize = 1024;

#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct Lists {
    /// The cursors that a server gave, with the `cacheScope` of their page.
    given: HashMap<(&'static str, String), Option<String>>,
    /// Some cursors were not remembered.
    incomplete: bool,
}

impl Check for Lists {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        if let Some((method, params)) = message.request() {
            self.asked(method, params, context);
        } else if let Some((request, result)) = message.result() {
            self.answered(request, result, context);
        } else if let Some((request, error)) = message.error() {
            let is_invalid = error.get("code").and_then(Value::as_i64) == Some(-32602);
            if is_invalid && self.cursor_of(request).is_some() {
                let what = "a cursor that the server gave is refused";
                context.broken(&rule::PAGE_03, what, "keep cursors valid while a list is read");
            }
        }
    }
}

impl Lists {
    fn asked(&self, method: &str, params: &Value, context: &mut Context<'_>) {
        let Some(method) = list_of(method) else { return };
        match params.get("cursor") {
            Some(Value::String(cursor)) => {
                let is_known = self.given.contains_key(&(method, cursor.clone()));
                // Cursors may be older than the recording, unless it has the beginning of the session.
                if is_known || (context.state.handshake > Handshake::None && !self.incomplete) {
                    let expected = "send nextCursor of the page before as it came, in the same session";
                    let what = "a cursor that the server did not give for this list";
                    context.require(&rule::PAGE_01, is_known, what, expected);
                }
            }
            None => {}
            Some(_) => {
                let what = "a cursor that is no string";
                context.broken(&rule::PAGE_01, what, "leave cursor out to ask for the first page");
            }
        }
    }

    fn answered(&mut self, request: &Request, result: &Value, context: &mut Context<'_>) {
        let hints = rules_of(request).is_some_and(|rules| rules.cache_hints);
        let scope = text(result, "cacheScope");
        if hints && result_type(result) == "complete" {
            check_hints(&request.method, result, scope, context);
        }
        let Some(method) = list_of(&request.method) else { return };
        if let Some(before) = self.cursor_of(request) {
            context.kept(&rule::PAGE_03);
            if let (Some(before), Some(scope)) = (before, scope) {
                let what = "a page whose cacheScope differs from that of the page before";
                let expected = "send the same cacheScope on all pages of a list";
                context.require(&rule::CACHE_07, before == scope, what, expected);
            }
        }
        let next = result.get("nextCursor");
        if LISTS.contains(&method) {
            let what = "nextCursor is no string";
            let expected = "leave nextCursor out on the last page";
            context.require(&rule::PAGE_04, next.is_none_or(Value::is_string), what, expected);
        }
        if let Some(next) = next.and_then(Value::as_str) {
            let key = (method, next.to_owned());
            if next.len() > MAX_CURSOR || (self.given.len() >= MAX_CURSORS && !self.given.contains_key(&key))
            {
                self.incomplete = true;
            } else {
                self.given.insert(key, scope.filter(|scope| scope.len() < 16).map(str::to_owned));
            }
        }
    }

    /// The `cacheScope` of the page that gave the cursor of this request, where it is known.
    fn cursor_of(&self, request: &Request) -> Option<Option<&str>> {
        let cursor = text(&request.params, "cursor")?.to_owned();
        self.given.get(&(list_of(&request.method)?, cursor)).map(Option::as_deref)
    }
}

/// The method, where its results have pages.
fn list_of(method: &str) -> Option<&'static str> {
    let others = ["tasks/list", "skills/list", "resources/directory/read"];
    LISTS.into_iter().chain(others).find(|list| *list == method)
}

fn check_hints(method: &str, result: &Value, scope: Option<&str>, context: &mut Context<'_>) {
    match method {
        "server/discover"
        | "resources/read"
        | "tools/list"
        | "prompts/list"
        | "resources/list"
        | "resources/templates/list" => {
            let has_time = result.get("ttlMs").is_some_and(Value::is_u64);
            let has_scope = matches!(scope, Some("public" | "private"));
            let what = match (has_time, has_scope) {
                (false, _) => "a result without a ttlMs that is an integer of at least 0",
                _ => "a result without a cacheScope that is public or private",
            };
            let expected = "send ttlMs and cacheScope with each complete result of this method";
            context.require(&rule::CACHE_01, has_time && has_scope, what, expected);
        }
        "tools/call" | "prompts/get" | "completion/complete" => {
            let has_hints = result.get("ttlMs").is_some() || result.get("cacheScope").is_some();
            let what = "cache hints on a result that has none";
            context.require(&rule::T_16, !has_hints, what, "leave ttlMs and cacheScope out");
        }
        _ => {}
    }
}
