//! Rules about resources: capabilities, contents, templates and subscriptions.

use std::collections::HashSet;

use refmcp_proto::revision::Lifecycle;
use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

use crate::auditor::checks::values::{contents_violation, items, result_type, text};
use crate::auditor::checks::{Check, Context};
use crate::auditor::conversation::Handshake;
use crate::auditor::message::Message;
use crate::verdict::Role;

pub(in crate::auditor::checks) static RULES: &[&Rule] =
    &[&rule::RES_01, &rule::RES_02, &rule::RES_05, &rule::RES_08, &rule::RES_09];

/// Subscriptions that are remembered, and the bytes of a URI; once there are more, updates are not judged.
const MAX_SUBSCRIPTIONS: usize = 512;
const MAX_URI: usize = 4096;

#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct Resources {
    /// What the client has ever asked to subscribe to.
    subscribed: HashSet<String>,
    /// Some subscriptions were not remembered.
    incomplete: bool,
}

impl Check for Resources {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        match message.from {
            Role::Client => {
                if let Some((method, params)) = message.request() {
                    self.asked(message, method, params, context);
                }
            }
            Role::Server => {
                if let Some((method, params)) = message.notification() {
                    self.notified(method, params, context);
                } else if let Some((request, result)) = message.result() {
                    answered(&request.method, result, context);
                }
            }
        }
    }
}

impl Resources {
    fn asked(&mut self, message: &Message<'_>, method: &str, params: &Value, context: &mut Context<'_>) {
        let stateless =
            message.revision.is_some_and(|revision| revision.lifecycle() == Lifecycle::PerRequest);
        match method {
            "resources/subscribe" | "resources/unsubscribe" if stateless => {
                let what = format!("{method}, which the revision does not have");
                context.broken(&rule::RES_05, what, "name resources in subscriptions/listen");
            }
            "subscriptions/listen" => {
                let wanted = params.get("notifications").and_then(|it| it.get("resourceSubscriptions"));
                if wanted.is_some() {
                    context.kept(&rule::RES_05);
                }
            }
            "resources/subscribe" => {
                let Some(uri) = text(params, "uri") else { return };
                if self.subscribed.len() < MAX_SUBSCRIPTIONS && uri.len() <= MAX_URI {
                    self.subscribed.insert(uri.to_owned());
                } else {
                    self.incomplete = true;
                }
            }
            _ => {}
        }
    }

    fn notified(&self, method: &str, params: &Value, context: &mut Context<'_>) {
        let (capability, what) = match method {
            "notifications/resources/list_changed" => (
                "listChanged",
                "notifications/resources/list_changed of a server that does not declare resources.listChanged",
            ),
            "notifications/resources/updated" => (
                "subscribe",
                "notifications/resources/updated of a server that does not declare resources.subscribe",
            ),
            _ => return,
        };
        let declared = context.state.server.declares(&["resources", capability]);
        if let Some(declared) = declared {
            let expected = "declare in resources what is notified";
            context.require(&rule::RES_01, declared, what, expected);
        }
        let knows_all = context.state.handshake > Handshake::None && !self.incomplete;
        if capability == "subscribe" && declared == Some(true) && knows_all {
            let uri = text(params, "uri").unwrap_or_default();
            // An update may be of something below the resource; a slash at the end makes no difference.
            let is_near = |subscribed: &String| uri.starts_with(&**subscribed) || subscribed.starts_with(uri);
            let is_subscribed = self.subscribed.iter().any(is_near);
            let what = "an update of a resource that the client did not subscribe to";
            let expected = "notify of subscribed resources, by their URI or one below";
            context.require(&rule::RES_09, is_subscribed, what, expected);
        }
    }
}

fn answered(method: &str, result: &Value, context: &mut Context<'_>) {
    if !matches!(method, "resources/list" | "resources/read" | "resources/templates/list") {
        return;
    }
    if let Some(declared) = context.state.server.declares(&["resources"]) {
        let what = "resources are listed or read at a server that does not declare them, and that answers";
        context.require(&rule::RES_01, declared, what, "declare the resources capability");
    }
    if method == "resources/read" && result_type(result) == "complete" {
        let contents = result.get("contents").and_then(Value::as_array);
        let violation = match contents {
            None => Some(("a result without contents".to_owned(), "send contents, a list")),
            Some(contents) => contents.iter().find_map(|it| contents_violation(it, "a part of contents")),
        };
        context.judge(&rule::RES_02, violation);
    }
    for template in items(result, "resourceTemplates") {
        // RPC-23 judges one without a text.
        let Some(is_template) = text(template, "uriTemplate").map(is_uri_template) else { continue };
        let what = "a uriTemplate that RFC 6570 does not allow";
        let expected = "write expressions as {name}, with an operator in front where one is needed";
        context.require(&rule::RES_08, is_template, what, expected);
    }
}

/// Whether RFC 6570 allows the expressions of a template.
fn is_uri_template(template: &str) -> bool {
    let mut parts = template.split('{');
    let is_literal = |text: &str| !text.contains('}');
    parts.next().is_none_or(is_literal)
        && parts.all(|part| {
            part.split_once('}')
                .is_some_and(|(expression, literal)| is_literal(literal) && is_expression(expression))
        })
}

fn is_expression(expression: &str) -> bool {
    let variables = expression.strip_prefix(['+', '#', '.', '/', ';', '?', '&']).unwrap_or(expression);
    variables.split(',').all(|variable| {
        let name = match variable.split_once(':') {
            Some((name, length)) => {
                let is_length = (1..=4).contains(&length.len())
                    && length.bytes().all(|byte| byte.is_ascii_digit())
                    && !length.starts_with('0');
                if !is_length {
                    return false;
                }
                name
            }
            None => variable.strip_suffix('*').unwrap_or(variable),
        };
        let is_character = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'%');
        !name.is_empty() && name.bytes().all(is_character)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_those_of_the_rfc() {
        for template in ["a:b", "a:{b}", "a:{+b}{c,d}{?e*,f:3}", "{#x.y}", "{/v%20}"] {
            assert!(is_uri_template(template), "{template}");
        }
        for template in ["{", "}", "a{}", "{a b}", "{a", "a}b", "{=a}", "{a:0}", "{a:x}", "{a,,b}"] {
            assert!(!is_uri_template(template), "{template}");
        }
    }
}
