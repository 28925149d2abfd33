//! Rules about responses that come at once, or never.

use refmcp_proto::jsonrpc::code;
use refmcp_proto::revision::{Method, ServerMethod};
use refmcp_proto::rule::{self, Rule};
use serde_json::{Value, json};

use crate::auditor::checks::{Check, Context};
use crate::auditor::conversation::Request;
use crate::auditor::message::{Body, Message};
use crate::verdict::{Evidence, Role};

pub(in crate::auditor::checks) static RULES: &[&Rule] = &[&rule::PING_01, &rule::RPC_22];

#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct Unanswered;

/// Milliseconds after which a ping without a response was ignored.
const PING_PATIENCE: u64 = 10_000;

/// Milliseconds after which another request without a response was.
const PATIENCE: u64 = 60_000;

impl Check for Unanswered {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        let Body::Response { request: Some(request), result, .. } = message.body else { return };
        context.kept(&rule::RPC_22);
        if is_ping(request) {
            let is_empty =
                |result: &Value| result.as_object().is_some_and(|it| it.keys().all(|key| key == "_meta"));
            let what = match result {
                Ok(result) if is_empty(result) => None,
                Ok(_) => Some("the result of ping is not empty"),
                Err(error) if error.get("code") == Some(&code::METHOD_NOT_FOUND.into()) => {
                    Some("ping is no known method")
                }
                // Another error may be due to the request.
                Err(_) => return,
            };
            let expected = "answer ping at once with an empty result";
            context.judge(&rule::PING_01, what.map(|what| (what.to_owned(), expected)));
        }
    }

    /// A request has waited long before the pipe was closed. Over HTTP it may never have arrived.
    fn finished(&mut self, context: &mut Context<'_>) {
        let Some(closed) = context.state.closed_at.filter(|_| !context.state.is_http()) else { return };
        for from in [Role::Client, Role::Server] {
            for (id, request) in context.state.unanswered(from) {
                let waited = closed.saturating_sub(request.at);
                let (rule, patience, expected) = if is_ping(request) && !request.is_stateless() {
                    (&rule::PING_01, PING_PATIENCE, "answer ping at once with an empty result")
                } else {
                    (&rule::RPC_22, PATIENCE, "answer every request, with an error if need be")
                };
                if waited >= patience && !request.cancelled && is_short(request) {
                    let what = format!("{} has no response", request.method);
                    let text = json!({"id": id, "method": request.method}).to_string();
                    let evidence =
                        Evidence { at: request.at, stream: request.stream, text, ..Evidence::default() };
                    context.break_earlier(rule, from.peer(), (what, expected), evidence);
                }
            }
        }
    }
}

fn is_ping(request: &Request) -> bool {
    ServerMethod::known(&request.method) == Some(ServerMethod::Ping)
}

/// Whether a request does not depend on tools, models or people, which may take their time.
fn is_short(request: &Request) -> bool {
    let is_slow = |method: Method| {
        method.may_request_input()
            || matches!(method, Method::Listen | Method::GetTaskResult | Method::Complete)
    };
    match Method::known(&request.method) {
        Some(method) => !is_slow(method),
        None => ServerMethod::known(&request.method) == Some(ServerMethod::ListRoots),
    }
}
