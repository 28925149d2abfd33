//! Rules about `_meta`: names of its keys, trace context, what a request without a session says of its client.

use refmcp_proto::model::keys;
use refmcp_proto::revision::{Lifecycle, Method, Revision};
use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

use crate::auditor::checks::{Check, Context};
use crate::auditor::conversation::{Handshake, State};
use crate::auditor::message::{Body, Message};
use crate::verdict::Role;

pub(in crate::auditor::checks) static RULES: &[&Rule] =
    &[&rule::RPC_16, &rule::RPC_17, &rule::STATE_04, &rule::T_11];

#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct Metas;

impl Check for Metas {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        let holder = match message.body {
            Body::Request { params, .. } | Body::Notification { params, .. } => params,
            Body::Response { result: Ok(result), .. } => result,
            Body::Response { .. } => return,
        };
        let meta = holder.get("_meta");
        if let Body::Request { method, .. } = message.body
            && message.from == Role::Client
            && message.value.get("_meta").is_none()
            && is_stateless(message, method, meta, context.state)
        {
            describes_client(meta, context);
            speaks(meta, context);
        } else if meta.is_some_and(|meta| !meta.is_object()) {
            let what = "_meta is no object";
            context.broken(&rule::RPC_01, what, "send _meta as an object, or leave it out");
        }
        for meta in meta.into_iter().chain(metas_of_items(holder)) {
            judge_keys(meta, context);
        }
        if let Some(meta) = meta {
            judge_trace(meta, context);
        }
    }
}

/// Whether a request of a client is one without a session.
pub(in crate::auditor::checks) fn is_stateless(
    message: &Message<'_>,
    method: &str,
    meta: Option<&Value>,
    state: &State,
) -> bool {
    let key = |key| meta.and_then(|meta| meta.get(key)).is_some();
    let by_key = key(keys::PROTOCOL_VERSION) || key(keys::CLIENT_CAPABILITIES);
    let by_method = Method::known(method).is_some_and(|method| !exists_in_sessions(&method));
    let in_session = state.handshake != Handshake::None || state.negotiated.is_some();
    message.is_stateless() || !in_session && (by_key || by_method || names_stateless(message, state))
}

fn exists_in_sessions(method: &Method) -> bool {
    Revision::with(Lifecycle::Handshake).any(|revision| method.exists_in(revision.rules()))
}

/// Whether the HTTP request names a revision without sessions.
fn names_stateless(message: &Message<'_>, state: &State) -> bool {
    let headers = state.stream(message.stream).map(|stream| &*stream.headers).unwrap_or_default();
    let named = headers.iter().find(|(name, _)| name == "mcp-protocol-version");
    let revision = named.and_then(|(_, version)| version.parse().ok());
    revision.is_some_and(|revision: Revision| revision.lifecycle() == Lifecycle::PerRequest)
}

fn describes_client(meta: Option<&Value>, context: &mut Context<'_>) {
    let member = |name| meta.and_then(|meta| meta.get(name));
    let is_implementation = |info: &Value| {
        ["name", "version"].into_iter().all(|name| info.get(name).is_some_and(Value::is_string))
    };
    let what = if !member(keys::PROTOCOL_VERSION).is_some_and(Value::is_string) {
        "params._meta names no protocolVersion"
    } else if !member(keys::CLIENT_CAPABILITIES).is_some_and(Value::is_object) {
        "params._meta has no clientCapabilities"
    } else if member(keys::CLIENT_INFO).is_some_and(|info| !is_implementation(info)) {
        "clientInfo of params._meta has no name or no version"
    } else {
        return context.kept(&rule::STATE_04);
    };
    let expected = "send protocolVersion and clientCapabilities in params._meta of every request";
    context.broken(&rule::STATE_04, what.to_owned(), expected);
}

/// A revision with sessions is opened by initialize.
fn speaks(meta: Option<&Value>, context: &mut Context<'_>) {
    let version = meta.and_then(|meta| meta.get(keys::PROTOCOL_VERSION)).and_then(Value::as_str);
    let Some(revision) = version.and_then(|version| version.parse::<Revision>().ok()) else { return };
    let wrong = revision.lifecycle() == Lifecycle::Handshake && context.state.negotiated.is_none();
    let violation =
        || ("params._meta names a revision with sessions".to_owned(), "open a session of it with initialize");
    context.judge(&rule::T_11, wrong.then(violation));
}

/// The `_meta` of what a result lists.
fn metas_of_items(holder: &Value) -> impl Iterator<Item = &Value> {
    const LISTS: [&str; 7] =
        ["tools", "resources", "resourceTemplates", "prompts", "contents", "content", "roots"];
    let items = LISTS.into_iter().filter_map(|list| holder.get(list)?.as_array());
    items.flatten().filter_map(|item| item.get("_meta"))
}

fn judge_keys(meta: &Value, context: &mut Context<'_>) {
    let Some(members) = meta.as_object().filter(|members| !members.is_empty()) else { return };
    let wrong = members.keys().find(|key| !is_key(key));
    let violation = |key: &String| {
        let what = format!("the key {} of _meta is no name", key.chars().take(80).collect::<String>());
        (what, "name a key as com.example/name, with letters, digits, '-', '_' and '.'")
    };
    context.judge(&rule::RPC_16, wrong.map(violation));
}

/// Whether this is a name behind an optional prefix of labels.
fn is_key(key: &str) -> bool {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let is_label = |label: &str| {
        label.starts_with(|first: char| first.is_ascii_alphabetic())
            && label.ends_with(|last: char| last.is_ascii_alphanumeric())
            && label.chars().all(|inner| inner.is_ascii_alphanumeric() || inner == '-')
    };
    let is_end = |end: char| end.is_ascii_alphanumeric();
    let is_name = name.is_empty()
        || name.starts_with(is_end)
            && name.ends_with(is_end)
            && name.chars().all(|inner| is_end(inner) || matches!(inner, '-' | '_' | '.'));
    prefix.is_none_or(|prefix| prefix.split('.').all(is_label)) && is_name
}

fn judge_trace(meta: &Value, context: &mut Context<'_>) {
    for key in ["traceparent", "tracestate", "baggage"] {
        if let Some(value) = meta.get(key) {
            let is_format = if key == "traceparent" { is_traceparent } else { is_list };
            let right = value.as_str().is_some_and(is_format);
            let violation = || {
                (
                    format!("{key} of _meta has not the format of the W3C"),
                    "send trace context as the W3C has it",
                )
            };
            context.judge(&rule::RPC_17, (!right).then(violation));
        }
    }
}

/// Version, trace id, parent id and flags, in lower-case hexadecimal digits. A later version may have more behind them.
fn is_traceparent(text: &str) -> bool {
    let is_hex = |part: &str, digits: usize| {
        part.len() == digits && part.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_id = |part: &str, digits| is_hex(part, digits) && part.bytes().any(|digit| digit != b'0');
    let parts: Vec<&str> = text.split('-').collect();
    match &*parts {
        [version, trace, parent, flags, more @ ..] => {
            let right = is_hex(version, 2) && is_id(trace, 32) && is_id(parent, 16) && is_hex(flags, 2);
            right && *version != "ff" && (more.is_empty() || *version != "00")
        }
        _ => false,
    }
}

/// Keys with values, between commas; empty members are allowed.
fn is_list(text: &str) -> bool {
    let is_member = |member: &str| {
        member.trim().is_empty() || member.split_once('=').is_some_and(|(key, _)| !key.trim().is_empty())
    };
    text.is_ascii() && text.split(',').all(is_member)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_names_behind_a_prefix() {
        for right in
            ["progressToken", "a", "a.b_c-d", "com.example/x", "io.modelcontextprotocol/", "x-1.y/z9", ""]
        {
            assert!(is_key(right), "{right}");
        }
        for wrong in ["-a", "a-", "a b", "/a", "1a/b", "a-/b", "a..b/c", "a/b/c", "_a", "a/é"] {
            assert!(!is_key(wrong), "{wrong}");
        }
    }

    #[test]
    fn trace_context_has_its_formats() {
        assert!(is_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
        assert!(is_traceparent("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more"));
        for wrong in [
            "",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert!(!is_traceparent(wrong), "{wrong}");
        }
        assert!(is_list("a=1,b=2;x=y, ") && !is_list("a") && !is_list("=1"));
    }
}
