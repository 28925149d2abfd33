//! Rules about apps, as far as client and server show them.

use std::collections::{HashMap, HashSet};

use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

use super::values::{Violation, items, request_capabilities, result_type, text, violation_unless};
use super::{Check, VerdictWriter};
use crate::auditor::conversation::{Handshake, Request, State};
use crate::auditor::message::Message;
use crate::verdict::Role;

static RULES: &[&Rule] = &[
    &rule::APP_01,
    &rule::APP_03,
    &rule::APP_04,
    &rule::APP_05,
    &rule::APP_06,
    &rule::APP_08,
    &rule::APP_09,
    &rule::APP_10,
    &rule::APP_11,
    &rule::APP_53,
];

const IDENTIFIER: &str = "io.modelcontextprotocol/ui";

const MEDIA_TYPE: &str = "text/html;profile=mcp-app";

/// Bytes of names and URIs of tools with apps that are remembered.
const MAX_BYTES: usize = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct Apps {
    /// The URIs of the apps of tools.
    apps: HashMap<String, HashSet<String>>,
    bytes: usize,
    /// The declaration of a session was judged.
    declared: bool,
}

impl Check for Apps {
    fn rules(&self) -> &'static [&'static Rule] {
        RULES
    }

    fn message(&mut self, message: &Message<'_>, state: &State, verdicts: &mut VerdictWriter<'_>) {
        match message.from {
            Role::Client => self.client(message, state, verdicts),
            Role::Server => {
                if let Some((request, result)) = message.result() {
                    self.answered(request, result, verdicts);
                } else if let Some((request, error)) = message.error() {
                    let is_missing =
                        matches!(error.get("code").and_then(Value::as_i64), Some(-32002 | -32602));
                    let uri = text(&request.params, "uri").filter(|_| request.method == "resources/read");
                    if is_missing && uri.is_some_and(|uri| self.is_app(uri)) {
                        let what = "the resourceUri of a tool cannot be read".to_owned();
                        verdicts.judge(
                            &rule::APP_06,
                            Some((what, "serve the app under the URI that tools name")),
                        );
                    }
                }
            }
        }
    }
}

impl Apps {
    fn client(&mut self, message: &Message<'_>, state: &State, verdicts: &mut VerdictWriter<'_>) {
        let own = message.request().and_then(|(_, params)| request_capabilities(params));
        let capabilities = own.unwrap_or(&state.client.capabilities);
        let declared = capabilities.get("extensions").and_then(|it| it.get(IDENTIFIER));
        let is_first = own.is_some() || (!self.declared && state.handshake == Handshake::Ready);
        if let Some(declared) = declared.filter(|_| is_first) {
            self.declared = true;
            let types = items(declared, "mimeTypes");
            let what = "apps are declared without mimeTypes";
            let expected = "list the media types of apps in mimeTypes";
            verdicts
                .judge(&rule::APP_01, violation_unless(types.iter().any(Value::is_string), what, expected));
        }
        if let Some((method, _)) = message.request() {
            if method.starts_with("ui/") {
                let what = "a method of apps, which is for hosts, is sent to the server".to_owned();
                verdicts.judge(&rule::APP_53, Some((what, "answer the methods of views in the host")));
            } else if method == "tools/call" && declared.is_some() {
                verdicts.judge(&rule::APP_53, None);
            }
        }
    }

    fn answered(&mut self, request: &Request, result: &Value, verdicts: &mut VerdictWriter<'_>) {
        match &*request.method {
            "tools/list" => {
                for tool in items(result, "tools") {
                    self.judge_tool(tool, verdicts);
                }
            }
            "tools/call" if result_type(result) == "complete" => {
                let name = text(&request.params, "name").unwrap_or_default();
                let is_task = result.get("task").is_some();
                if self.apps.contains_key(name) && !is_task {
                    let has_content = !items(result, "content").is_empty();
                    let what = "a tool with an app returns no content";
                    let expected = "return content that is useful where apps are not shown";
                    verdicts.judge(&rule::APP_09, violation_unless(has_content, what, expected));
                }
            }
            "resources/read" if result_type(result) == "complete" => {
                let uri = text(&request.params, "uri").unwrap_or_default();
                if self.is_app(uri) {
                    verdicts.judge(&rule::APP_06, None);
                }
                if uri.starts_with("ui://") {
                    for contents in items(result, "contents") {
                        judge_contents(contents, verdicts);
                    }
                }
            }
            _ => {}
        }
    }

    fn judge_tool(&mut self, tool: &Value, verdicts: &mut VerdictWriter<'_>) {
        let Some(meta) = tool.get("_meta") else { return };
        let nested = meta.get("ui");
        if meta.get("ui/resourceUri").is_some() || nested.is_some() {
            let is_nested = nested.is_some_and(|ui| ui.get("resourceUri").is_some())
                || meta.get("ui/resourceUri").is_none();
            let what = "a tool that names its app in the older flat key alone";
            verdicts.judge(&rule::APP_10, violation_unless(is_nested, what, "put resourceUri into _meta.ui"));
        }
        let Some(ui) = nested else { return };
        if let Some(visibility) = ui.get("visibility") {
            let is_party = |it: &Value| matches!(it.as_str(), Some("model" | "app"));
            let is_known = visibility.as_array().is_some_and(|it| it.iter().all(is_party));
            let what = "visibility that has something else than model and app";
            verdicts.judge(&rule::APP_08, violation_unless(is_known, what, "list model, app or both"));
        }
        if let Some(uri) = ui.get("resourceUri") {
            let uri = uri.as_str().unwrap_or_default();
            let is_app = uri.starts_with("ui://");
            let what = "a tool whose resourceUri has another scheme than ui";
            verdicts.judge(&rule::APP_03, violation_unless(is_app, what, "serve apps under ui:// URIs"));
            let name = text(tool, "name").unwrap_or_default();
            self.bytes += name.len() + uri.len();
            if is_app && self.bytes <= MAX_BYTES {
                self.apps.entry(name.to_owned()).or_default().insert(uri.to_owned());
            }
        }
    }

    fn is_app(&self, uri: &str) -> bool {
        self.apps.values().any(|uris| uris.contains(uri))
    }
}

fn judge_contents(contents: &Value, verdicts: &mut VerdictWriter<'_>) {
    let is_app = text(contents, "mimeType") == Some(MEDIA_TYPE);
    let what = "an app of another media type than apps have";
    verdicts
        .judge(&rule::APP_04, violation_unless(is_app, what, "set mimeType to text/html;profile=mcp-app"));
    if let Some(page) = text(contents, "text") {
        let what = "an app that is no HTML";
        verdicts.judge(&rule::APP_05, violation_unless(page.contains('<'), what, "send an HTML5 document"));
    }
    if let Some(policy) = contents.get("_meta").and_then(|meta| meta.get("ui")?.get("csp")) {
        verdicts.judge(&rule::APP_11, policy_violation(policy));
    }
}

/// A policy has four lists of origins.
fn policy_violation(policy: &Value) -> Option<Violation> {
    let is_origin = |origin: &Value| {
        let host = origin.as_str().and_then(|origin| origin.split_once("://")).map(|(_, host)| host);
        host.is_some_and(|host| {
            let host = host.strip_prefix("*.").unwrap_or(host);
            !host.is_empty() && !host.contains(['*', '/', '?', '#', ' '])
        })
    };
    let is_list = |(name, origins): (&String, &Value)| {
        let is_known =
            matches!(&**name, "connectDomains" | "resourceDomains" | "frameDomains" | "baseUriDomains");
        is_known && origins.as_array().is_some_and(|origins| origins.iter().all(is_origin))
    };
    let is_policy = policy.as_object().is_some_and(|lists| lists.iter().all(is_list));
    let what = "csp with something else than its four lists of origins";
    violation_unless(
        is_policy,
        what,
        "list origins in connectDomains, resourceDomains, frameDomains and baseUriDomains",
    )
}
