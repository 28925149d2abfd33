//! Rules about apps, as far as client and server show them.

use std::collections::{HashMap, HashSet};

use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

use crate::auditor::checks::values::{
    Violation, items, request_capabilities, result_type, text, violation_unless,
};
use crate::auditor::checks::{Check, Context};
use crate::auditor::conversation::{Handshake, Request};
use crate::auditor::message::Message;
use crate::verdict::Role;

pub(in crate::auditor::checks) static RULES: &[&Rule] = &[
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
pub(in crate::auditor::checks) struct Apps {
    /// The URIs of the apps of tools.
    apps: HashMap<String, HashSet<String>>,
    bytes: usize,
    /// The declaration of a session was judged.
    declared: bool,
}

impl Check for Apps {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        match message.from {
            Role::Client => self.client(message, context),
            Role::Server => {
                if let Some((request, result)) = message.result() {
                    self.answered(request, result, context);
                } else if let Some((request, error)) = message.error() {
                    let is_missing =
                        matches!(error.get("code").and_then(Value::as_i64), Some(-32002 | -32602));
                    let uri = text(&request.params, "uri").filter(|_| request.method == "resources/read");
                    if is_missing && uri.is_some_and(|uri| self.is_app(uri)) {
                        let what = "the resourceUri of a tool cannot be read";
                        context.broken(&rule::APP_06, what, "serve the app under the URI that tools name");
                    }
                }
            }
        }
    }
}

impl Apps {
    fn client(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        let own = message.request().and_then(|(_, params)| request_capabilities(params));
        let capabilities = own.unwrap_or(&context.state.client.capabilities);
        let declared = capabilities.get("extensions").and_then(|it| it.get(IDENTIFIER));
        let is_first = own.is_some() || (!self.declared && context.state.handshake == Handshake::Ready);
        if let Some(declared) = declared.filter(|_| is_first) {
            self.declared = true;
            let types = items(declared, "mimeTypes");
            let what = "apps are declared without mimeTypes";
            let expected = "list the media types of apps in mimeTypes";
            context.require(&rule::APP_01, types.iter().any(Value::is_string), what, expected);
        }
        if let Some((method, _)) = message.request() {
            if method.starts_with("ui/") {
                let what = "a method of apps, which is for hosts, is sent to the server";
                context.broken(&rule::APP_53, what, "answer the methods of views in the host");
            } else if method == "tools/call" && declared.is_some() {
                context.kept(&rule::APP_53);
            }
        }
    }

    fn answered(&mut self, request: &Request, result: &Value, context: &mut Context<'_>) {
        match &*request.method {
            "tools/list" => {
                for tool in items(result, "tools") {
                    self.judge_tool(tool, context);
                }
            }
            "tools/call" if result_type(result) == "complete" => {
                let name = text(&request.params, "name").unwrap_or_default();
                let is_task = result.get("task").is_some();
                if self.apps.contains_key(name) && !is_task {
                    let has_content = !items(result, "content").is_empty();
                    let what = "a tool with an app returns no content";
                    let expected = "return content that is useful where apps are not shown";
                    context.require(&rule::APP_09, has_content, what, expected);
                }
            }
            "resources/read" if result_type(result) == "complete" => {
                let uri = text(&request.params, "uri").unwrap_or_default();
                if self.is_app(uri) {
                    context.kept(&rule::APP_06);
                }
                if uri.starts_with("ui://") {
                    for contents in items(result, "contents") {
                        judge_contents(contents, context);
                    }
                }
            }
            _ => {}
        }
    }

    fn judge_tool(&mut self, tool: &Value, context: &mut Context<'_>) {
        let Some(meta) = tool.get("_meta") else { return };
        let nested = meta.get("ui");
        if meta.get("ui/resourceUri").is_some() || nested.is_some() {
            let is_nested = nested.is_some_and(|ui| ui.get("resourceUri").is_some())
                || meta.get("ui/resourceUri").is_none();
            let what = "a tool that names its app in the older flat key alone";
            context.require(&rule::APP_10, is_nested, what, "put resourceUri into _meta.ui");
        }
        let Some(ui) = nested else { return };
        if let Some(visibility) = ui.get("visibility") {
            let is_party = |it: &Value| matches!(it.as_str(), Some("model" | "app"));
            let is_known = visibility.as_array().is_some_and(|it| it.iter().all(is_party));
            let what = "visibility that has something else than model and app";
            context.require(&rule::APP_08, is_known, what, "list model, app or both");
        }
        if let Some(uri) = ui.get("resourceUri") {
            let uri = uri.as_str().unwrap_or_default();
            let is_app = uri.starts_with("ui://");
            let what = "a tool whose resourceUri has another scheme than ui";
            context.require(&rule::APP_03, is_app, what, "serve apps under ui:// URIs");
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

fn judge_contents(contents: &Value, context: &mut Context<'_>) {
    let is_app = text(contents, "mimeType") == Some(MEDIA_TYPE);
    let what = "an app of another media type than apps have";
    context.require(&rule::APP_04, is_app, what, "set mimeType to text/html;profile=mcp-app");
    if let Some(page) = text(contents, "text") {
        let what = "an app that is no HTML";
        context.require(&rule::APP_05, page.contains('<'), what, "send an HTML5 document");
    }
    if let Some(policy) = contents.get("_meta").and_then(|meta| meta.get("ui")?.get("csp")) {
        context.judge(&rule::APP_11, policy_violation(policy));
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
