//! Rules about batches.

use std::collections::HashSet;

use refmcp_proto::revision::{BatchRule, Revision};
use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

use crate::auditor::checks::{Check, Context};
use crate::auditor::conversation::State;
use crate::auditor::message::{Body, Message};
use crate::verdict::Role;

pub(in crate::auditor::checks) static RULES: &[&Rule] = &[&rule::RPC_08, &rule::RPC_09, &rule::RPC_10];

/// Requests of batches.
#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct Batches {
    /// Their senders and ids, until they have a response.
    waiting: HashSet<(Role, String)>,
}

/// Requests of batches that are remembered.
const MAX_WAITING: usize = 1024;

impl Check for Batches {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        match &message.body {
            Body::Request { method: "initialize", params, .. } => opening(message, params, context),
            // What answers a batch comes as one, also where a member of it was out of place.
            Body::Response { .. } if !message.in_batch || context.state.negotiated.is_some_and(accepts) => {}
            _ => {
                if let Some(revision) = message.revision {
                    alone(message.in_batch && !accepts(revision), context);
                }
            }
        }
        match &message.body {
            Body::Request { id, .. }
                if message.in_batch
                    && message.revision.is_some_and(accepts)
                    && self.waiting.len() < MAX_WAITING =>
            {
                self.waiting.insert((message.from, id.to_string()));
            }
            Body::Response { id, result, .. } => self.answered(message, id, result.err(), context),
            _ => {}
        }
    }
}

impl Batches {
    fn answered(
        &mut self,
        message: &Message<'_>,
        id: &Value,
        error: Option<&Value>,
        context: &mut Context<'_>,
    ) {
        let asker = message.from.peer();
        if self.waiting.remove(&(asker, id.to_string())) {
            context.kept(&rule::RPC_08);
        } else if id.is_null()
            && error.is_some()
            && !message.in_batch
            && !is_unauthorized(context.state, message)
            && self.waiting.iter().any(|(from, _)| *from == asker)
        {
            let what = "a batch was refused as a whole";
            context.broken(&rule::RPC_08, what, "answer each request of a batch");
            self.waiting.retain(|(from, _)| *from != asker);
        }
    }
}

/// Whether the HTTP request was refused for its token, whatever is in its body.
fn is_unauthorized(state: &State, message: &Message<'_>) -> bool {
    let status = state.stream(message.stream).and_then(|stream| stream.status);
    matches!(status, Some(401 | 403))
}

fn accepts(revision: Revision) -> bool {
    revision.rules().batches == BatchRule::Accepted
}

fn alone(broken: bool, context: &mut Context<'_>) {
    let violation = || ("a batch where the revision has none".to_owned(), "send each message on its own");
    context.judge(&rule::RPC_10, broken.then(violation));
}

/// What initialize requests decides whether there are batches, since nothing is agreed before.
fn opening(message: &Message<'_>, params: &Value, context: &mut Context<'_>) {
    let requested = params.get("protocolVersion").and_then(Value::as_str).and_then(|it| it.parse().ok());
    if message.revision.or(requested).is_some_and(accepts) {
        let violation = || ("initialize is in a batch".to_owned(), "send initialize as a message of its own");
        context.judge(&rule::RPC_09, message.in_batch.then(violation));
    } else {
        alone(message.in_batch, context);
    }
}
