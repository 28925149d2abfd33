//! Rules about what a party may send at all: methods of the revision, capabilities that were declared.

use refmcp_proto::revision::{Method, NotificationMethod, Revision, Rules, ServerMethod};
use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

use crate::auditor::checks::values::Violation;
use crate::auditor::checks::{Check, Context};
use crate::auditor::conversation::State;
use crate::auditor::message::{Body, Message};
use crate::verdict::Role;

pub(in crate::auditor::checks) static RULES: &[&Rule] = &[&rule::LIFE_08, &rule::LIFE_14, &rule::STATE_17];

#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct Capabilities;

/// Notifications of the Language Server Protocol, and those that are meant.
const FOREIGN: [(&str, NotificationMethod); 2] =
    [("$/cancelRequest", NotificationMethod::Cancelled), ("$/progress", NotificationMethod::Progress)];

impl Check for Capabilities {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        let (method, is_request) = match message.body {
            Body::Request { method, .. } => (method, true),
            Body::Notification { method, .. } => (method, false),
            Body::Response { .. } => return,
        };
        let Some(revision) = message.revision else { return misnamed(message, method, context) };
        let rules = revision.rules();
        let judged = if is_request {
            match message.from {
                Role::Client => client_request(method, message, rules, context.state),
                Role::Server => server_request(method, message, rules, context.state),
            }
        } else {
            notification(method, message, rules)
        };
        match judged {
            Some(violation) => context.judge(rule_of(revision), violation),
            None if !is_request => misnamed(message, method, context),
            None => {}
        }
    }
}

/// That a rule was kept, or how it was broken; none where the situation did not arise.
type Judged = Option<Option<Violation>>;

/// The rule of the revision about what may be sent.
fn rule_of(revision: Revision) -> &'static Rule {
    let rules = [&rule::LIFE_08, &rule::LIFE_14];
    rules.into_iter().find(|rule| rule.revisions.contains(revision)).unwrap_or(&rule::STATE_17)
}

fn unknown(method: &str) -> Judged {
    Some(Some((format!("{method}, which the revision does not have"), "send what the agreed revision has")))
}

fn of_other_side(method: &str) -> Judged {
    Some(Some((format!("{method}, which only the other side sends"), "send what your side may send")))
}

fn undeclared(method: &str, capability: &str) -> Violation {
    let what = format!("{method} without the capability {capability} of the receiver");
    (what, "use only what the other side has declared")
}

fn client_request(method: &str, message: &Message<'_>, rules: &Rules, state: &State) -> Judged {
    let Some(known) = Method::known(method) else {
        return ServerMethod::known(method).and_then(|_| of_other_side(method));
    };
    if !known.exists_in(rules) {
        // A server may have a method of an extension as its own, and subscriptions have rules of their own.
        let is_judged_elsewhere = known.is_extension()
            || message.is_stateless() && matches!(known, Method::Subscribe | Method::Unsubscribe);
        return if is_judged_elsewhere { None } else { unknown(method) };
    }
    let needed = needed_of_server(&known, rules).filter(|_| !message.is_stateless());
    Some(
        needed
            .filter(|path| lacks(&state.server.capabilities, path))
            .map(|path| undeclared(method, &named(path))),
    )
}

fn server_request(method: &str, message: &Message<'_>, rules: &Rules, state: &State) -> Judged {
    if message.is_stateless() {
        return None;
    }
    let Some(known) = ServerMethod::known(method) else {
        return Method::known(method).and_then(|_| of_other_side(method));
    };
    if !known.exists_in(rules) {
        return unknown(method);
    }
    let path = match known {
        ServerMethod::Elicit => Some("/elicitation"),
        ServerMethod::CreateMessage => Some("/sampling"),
        ServerMethod::ListRoots => Some("/roots"),
        ServerMethod::GetTask | ServerMethod::GetTaskResult => Some("/tasks"),
        ServerMethod::CancelTask => Some("/tasks/cancel"),
        ServerMethod::ListTasks => Some("/tasks/list"),
        _ => None,
    };
    Some(
        path.filter(|path| lacks(&state.client.capabilities, path))
            .map(|path| undeclared(method, &named(path))),
    )
}

fn notification(method: &str, message: &Message<'_>, rules: &Rules) -> Judged {
    let known = NotificationMethod::known(method)?;
    let (sends, other_sends) = match message.from {
        Role::Client => (known.client_may_send(rules), known.server_may_send(rules)),
        Role::Server => (known.server_may_send(rules), known.client_may_send(rules)),
    };
    if !sends {
        return if other_sends { of_other_side(method) } else { unknown(method) };
    }
    // Whether its sender declares it is what the rules of each feature are about.
    Some(None)
}

/// The capability of the server that a request of a session needs. Extensions have rules of their own.
fn needed_of_server(method: &Method, rules: &Rules) -> Option<&'static str> {
    Some(match method {
        Method::CallTool | Method::ListTools => "/tools",
        Method::ReadResource | Method::ListResources | Method::ListResourceTemplates => "/resources",
        Method::Subscribe | Method::Unsubscribe => "/resources/subscribe",
        Method::GetPrompt | Method::ListPrompts => "/prompts",
        Method::Complete if rules.completions_capability => "/completions",
        Method::SetLevel => "/logging",
        _ => return None,
    })
}

/// Whether the capabilities are known and have no such member, or have it as false.
fn lacks(capabilities: &Value, path: &str) -> bool {
    let declared = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
    capabilities.is_object() && !capabilities.pointer(path).is_some_and(declared)
}

/// A path as people write it.
fn named(path: &str) -> String {
    path.trim_start_matches('/').replace('/', ".")
}

/// A notification without its prefix or with another, or of another protocol.
fn misnamed(message: &Message<'_>, method: &str, context: &mut Context<'_>) {
    if !matches!(message.body, Body::Notification { .. }) {
        return;
    }
    let foreign = FOREIGN.iter().find(|(name, _)| *name == method).map(|(_, meant)| *meant);
    let Some(meant) = foreign.or_else(|| NotificationMethod::misnamed(method)) else { return };
    let closes_stream = meant == NotificationMethod::Cancelled
        && message.is_stateless()
        && message.from == Role::Client
        && context.state.has_streams();
    let params = if method == "$/cancelRequest" { " with params.requestId" } else { "" };
    let expected = match closes_stream {
        true => "close the stream of the request, which cancels it over HTTP".to_owned(),
        false => {
            format!("send {}{params}, where the revision has it and your side may send it", meant.name())
        }
    };
    let by_revision = message.revision.map_or(&rule::LIFE_08, rule_of);
    let rule = match (meant, message.from) {
        (NotificationMethod::Initialized, Role::Client) if !message.is_stateless() => &rule::LIFE_02,
        (NotificationMethod::Cancelled, _) if !message.is_stateless() => &rule::CANC_01,
        (NotificationMethod::Cancelled, Role::Client) => &rule::CANC_04,
        (NotificationMethod::Progress, _) => &rule::PROG_01,
        (NotificationMethod::SubscriptionsAcknowledged, Role::Server) if message.is_stateless() => {
            &rule::SUB_03
        }
        _ => by_revision,
    };
    let what = format!("{method}, which is no notification of the protocol");
    context.broken(rule, what, &expected);
}
