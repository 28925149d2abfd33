//! Rules about ids of requests that differ from each other.

use std::collections::HashSet;

use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

use crate::auditor::checks::id_set::IdSet;
use crate::auditor::checks::{Check, Context};
use crate::auditor::conversation::Request;
use crate::auditor::message::{Body, Message};
use crate::recording::{Event, EventKind};
use crate::verdict::Role;

pub(in crate::auditor::checks) static RULES: &[&Rule] = &[&rule::RPC_03, &rule::RPC_04];

/// The ids that were used in a session.
#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct Ids {
    client: IdSet,
    server: IdSet,
    /// Requests of the client whose HTTP request failed or was refused: it may repeat them as they are.
    lost: HashSet<String>,
}

/// Requests that were lost and are remembered.
const MAX_LOST: usize = 1024;

const EXPECTED: &str = "give each request an id of its own";

impl Check for Ids {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        let Body::Request { id, method, params } = message.body else { return };
        if message.is_stateless() {
            unanswered(message, id, context);
            return;
        }
        if method == "initialize" && context.state.is_http() {
            // Another session, in the place of one that has ended.
            *self = Self::default();
        }
        let lost = message.from == Role::Client && self.lost.remove(&id.to_string());
        // The same message may come again over HTTP, which is what other rules are about.
        let is_same = |known: &Request| known.method == method && known.params == *params;
        let again = || context.state.request(message.from, message.stream, id).is_some_and(is_same);
        let repeated =
            message.from == Role::Server && context.state.is_http() && (context.state.is_resumed || again());
        let used = match message.from {
            Role::Client => &mut self.client,
            Role::Server => &mut self.server,
        };
        if !lost && !repeated {
            let violation = || (format!("the id {id} is used a second time in the session"), EXPECTED);
            context.judge(&rule::RPC_03, used.has(id).then(violation));
        }
        used.insert(id);
    }

    fn event(&mut self, event: &Event, context: &mut Context<'_>) {
        let fails = match event.kind {
            EventKind::Refused { .. } | EventKind::Failed { .. } => true,
            EventKind::Response { status, .. } => status >= 400,
            _ => false,
        };
        if fails && event.stream.is_some() && self.lost.len() < MAX_LOST {
            let lost =
                context.state.unanswered(Role::Client).filter(|(_, request)| request.stream == event.stream);
            self.lost.extend(lost.map(|(id, _)| id.to_owned()));
        }
    }
}

/// Without a session, an id is free again once its request has a response.
fn unanswered(message: &Message<'_>, id: &Value, context: &mut Context<'_>) {
    // Several clients may have one address.
    if context.state.is_http() && !context.state.is_recorded_by(Role::Client) {
        return;
    }
    let id = id.to_string();
    let mut others = context.state.unanswered(message.from).filter(|(other, _)| **other == *id);
    let taken = others.any(|(_, request)| request.is_stateless() && !request.is_lost && !request.cancelled);
    let violation = || (format!("the id {id} is that of a request that has no response yet"), EXPECTED);
    context.judge(&rule::RPC_04, taken.then(violation));
}
