//! Rules about single messages: JSON-RPC, ids, responses, notifications.

use std::collections::HashSet;

use refmcp_proto::jsonrpc::{DecodeError, Incoming, Limits, code, decode};
use refmcp_proto::revision::NotificationMethod;
use refmcp_proto::rule::{self, Rule};
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::auditor::checks::id_set::IdSet;
use crate::auditor::checks::values::Violation;
use crate::auditor::checks::{Check, Context};
use crate::auditor::message::{Body, Message};
use crate::recording::{Event, EventKind};
use crate::verdict::Role;

pub(in crate::auditor::checks) static RULES: &[&Rule] =
    &[&rule::RPC_01, &rule::RPC_02, &rule::RPC_05, &rule::RPC_06, &rule::RPC_07];

/// What each party has sent, as far as the other one may answer it.
#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct Messages {
    client: Sent,
    server: Sent,
    /// An HTTP request failed or was refused, so a response may come again.
    is_repeated: bool,
}

#[derive(Debug, Default)]
struct Sent {
    /// Ids of requests that have a response.
    answered: IdSet,
    /// Ids of what was no message and can be answered all the same, and of requests that had the same id at a time.
    excused: HashSet<String>,
    /// Something that cannot be read, or a batch: it can be answered without an id.
    is_unreadable: bool,
    notified: bool,
}

/// Excused ids that are kept; beyond them no response is held to be one to no request.
const MAX_EXCUSED: usize = 256;

/// The limits of an implementation are no rules of the protocol.
const LIMITS: Limits =
    Limits { max_message_size: usize::MAX, depth: 128, name_bytes: usize::MAX, batch: usize::MAX };

impl Check for Messages {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        context.judge(&rule::RPC_01, misplaced(message));
        match &message.body {
            Body::Request { id, method, .. } => {
                context.kept(&rule::RPC_02);
                if context.state.request(message.from, message.stream, id).is_some() {
                    self.sent(message.from).excuse(id);
                }
                if NotificationMethod::known(method).is_some() {
                    let what = format!("{method} has an id");
                    context.broken(&rule::RPC_07, what, "send a notification without an id");
                }
            }
            Body::Notification { .. } => {
                context.kept(&rule::RPC_07);
                self.sent(message.from).notified = true;
            }
            Body::Response { id, request: Some(_), result } => {
                context.kept(&rule::RPC_05);
                context.judge(&rule::RPC_06, no_object(result));
                self.sent(message.from.peer()).answered.insert(id);
            }
            Body::Response { id, request: None, result } => {
                context.judge(&rule::RPC_06, no_object(result));
                match id {
                    Value::Null => self.without_id(message, *result, context),
                    id => self.without_request(message, id, context),
                }
            }
        }
        if message.in_batch {
            self.sent(message.from).is_unreadable = true;
        }
    }

    fn event(&mut self, event: &Event, context: &mut Context<'_>) {
        match &event.kind {
            EventKind::Invalid { direction, bytes, .. } => {
                let answered = context.state.stream(event.stream).filter(|stream| stream.status.is_some());
                let is_server = context.state.sender(*direction) == Role::Server;
                if is_server && answered.is_some_and(|stream| !stream.has_messages()) {
                    return;
                }
                self.invalid(context.state.sender(*direction), bytes, context);
            }
            EventKind::Message { direction, text, .. } if text.starts_with('[') => {
                if let Ok(Incoming::Batch(batch)) = decode(text.as_bytes(), &LIMITS) {
                    for error in batch.into_iter().filter_map(Result::err) {
                        self.malformed(context.state.sender(*direction), &error, context);
                    }
                }
            }
            EventKind::Failed { .. } | EventKind::Refused { .. } => self.is_repeated = true,
            _ => {}
        }
    }
}

impl Sent {
    fn excuse(&mut self, id: &Value) {
        if self.excused.len() < MAX_EXCUSED {
            self.excused.insert(id.to_string());
        }
    }
}

impl Messages {
    fn sent(&mut self, role: Role) -> &mut Sent {
        match role {
            Role::Client => &mut self.client,
            Role::Server => &mut self.server,
        }
    }

    /// What is no message.
    fn invalid(&mut self, from: Role, bytes: &[u8], context: &mut Context<'_>) {
        self.sent(from).is_unreadable = true;
        // A line of text that is no JSON is what the rules of stdio are about.
        let is_text = || std::str::from_utf8(bytes).is_ok();
        let is_json = || serde_json::from_slice::<IgnoredAny>(bytes).is_ok();
        if let Err(error) = decode(bytes, &LIMITS)
            && !bytes.is_empty()
            && (context.state.transport != "stdio" || is_json() || !is_text())
        {
            self.malformed(from, &error, context);
        }
    }

    fn malformed(&mut self, from: Role, error: &DecodeError, context: &mut Context<'_>) {
        if let Some(id) = error.id.as_ref().and_then(|id| serde_json::to_value(id).ok()) {
            self.sent(from).excuse(&id);
        }
        let expected = if error.rule.id == rule::RPC_02.id {
            "send a string or an integer as id"
        } else if error.rule.id == rule::RPC_05.id {
            "answer with the id of the request"
        } else if error.rule.id == rule::RPC_06.id {
            "answer with a result, or with an error that has an integer code and a message"
        } else {
            "send a JSON-RPC 2.0 object with jsonrpc, and a method with params, a result or an error"
        };
        context.broken(error.rule, error.error.message.to_string(), expected);
    }

    /// A response whose id is that of no request without a response.
    fn without_request(&mut self, message: &Message<'_>, id: &Value, context: &mut Context<'_>) {
        let may_repeat = context.state.is_http() && (self.is_repeated || context.state.is_resumed);
        let asked = self.sent(message.from.peer());
        let excused = asked.excused.len() >= MAX_EXCUSED || asked.excused.contains(&id.to_string());
        let again = asked.answered.has(id);
        if excused
            || context.state.is_overfull
            || !context.state.is_whole() && !message.is_stateless()
            || again && may_repeat
        {
            return;
        }
        let other_type = match id {
            Value::String(text) => text.parse().ok().map(Value::Number),
            other => Some(Value::String(other.to_string())),
        };
        let is_meant =
            |other: &Value| context.state.request(message.from.peer(), message.stream, other).is_some();
        let what = if again {
            format!("a second response to request {id}")
        } else if let Some(other) = other_type.filter(is_meant) {
            format!("a response to request {other} has the id {id}, of another type")
        } else {
            "a response to no request".to_owned()
        };
        context.broken(&rule::RPC_05, what, "answer each request once, with its id");
    }

    /// An error without an id answers what cannot be read. An unknown method was read.
    fn without_id(
        &mut self,
        message: &Message<'_>,
        result: Result<&Value, &Value>,
        context: &mut Context<'_>,
    ) {
        let code = result.err().and_then(|error| error.get("code")).and_then(Value::as_i64);
        let was_read = matches!(code, Some(code::METHOD_NOT_FOUND | code::INVALID_PARAMS));
        let sent = self.sent(message.from.peer());
        if !was_read || sent.is_unreadable || context.state.is_http() {
            return;
        }
        let asked = context.state.unanswered(message.from.peer()).next().is_some();
        if sent.notified && !asked {
            let what = "an error answers a notification";
            context.broken(&rule::RPC_07, what, "answer no notification, not even an unknown one");
        } else if asked && !sent.notified {
            let what = "an error about a request that could be read has no id";
            context.broken(&rule::RPC_05, what, "answer with the id of the request");
        }
    }
}

/// Members that stand beside those in which they belong.
fn misplaced(message: &Message<'_>) -> Option<Violation> {
    message.value.get("_meta")?;
    Some(match message.body {
        Body::Response { .. } => ("_meta stands beside result".to_owned(), "send it inside, as result._meta"),
        _ => ("_meta stands beside params".to_owned(), "send it inside, as params._meta"),
    })
}

fn no_object(result: &Result<&Value, &Value>) -> Option<Violation> {
    let wrong = matches!(result, Ok(result) if !result.is_object());
    wrong.then(|| ("the result is no object".to_owned(), "send an object as result"))
}
