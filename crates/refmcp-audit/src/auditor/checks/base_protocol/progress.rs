//! Rules about progress: tokens of running requests, numbers that grow.

use std::collections::HashMap;

use refmcp_proto::model::keys;
use refmcp_proto::revision::{Method, NotificationMethod};
use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

use crate::auditor::checks::id_set::IdSet;
use crate::auditor::checks::{Check, Context};
use crate::auditor::conversation::{Request, State};
use crate::auditor::message::{Body, Message};
use crate::verdict::Role;

pub(in crate::auditor::checks) static RULES: &[&Rule] =
    &[&rule::PROG_01, &rule::PROG_02, &rule::PROG_03, &rule::PROG_04];

#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct Progress {
    running: HashMap<TokenKey, Token>,
    /// Tokens of the client's requests that have a response, and of tasks that have ended.
    client_finished: IdSet,
    server_finished: IdSet,
    /// A token was left out, so an unknown one says nothing.
    is_overfull: bool,
}

/// The sender of the request and its token. Without a session, clients at one address are told apart by the HTTP request.
type TokenKey = (Role, Option<u64>, String);

#[derive(Debug)]
struct Token {
    last: Option<f64>,
    /// The task that its request has become.
    task: Option<Task>,
    is_subscription: bool,
    /// Requests without a response that have it.
    requests: usize,
    /// Several requests had it at a time, so it is not known which of them makes progress.
    is_ambiguous: bool,
}

#[derive(Debug)]
struct Task {
    id: String,
    has_ended: bool,
}

/// Tokens that are remembered.
const MAX_TOKENS: usize = 4096;

const RUNNING: &str = "send the progressToken of a request that is running";

impl Check for Progress {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        match &message.body {
            Body::Request { method, params, .. } => {
                if let Some(token) = params.get("_meta").and_then(|meta| meta.get(keys::PROGRESS_TOKEN)) {
                    self.starts(message, method, token, context);
                }
            }
            Body::Notification { method, params } => match NotificationMethod::known(method) {
                Some(NotificationMethod::Progress)
                    if message.from == Role::Server || !message.is_stateless() =>
                {
                    self.progresses(message, params, context);
                }
                Some(NotificationMethod::TaskStatus) => self.task_is(params),
                _ => {}
            },
            Body::Response { request: Some(request), result, .. } => {
                self.answered(request, *result, context.state);
            }
            Body::Response { .. } => {}
        }
    }
}

impl Progress {
    /// A request has a token.
    fn starts(&mut self, message: &Message<'_>, method: &str, token: &Value, context: &mut Context<'_>) {
        if !is_token(token) {
            let what = "progressToken is neither a string nor an integer";
            return context.broken(&rule::PROG_01, what, "send a string or an integer as progressToken");
        }
        let key = key(message.from, message.stream, message.is_stateless(), token, context.state);
        let taken = context.state.unanswered(message.from).any(|(_, request)| {
            let other = request.params.get("_meta").and_then(|meta| meta.get(keys::PROGRESS_TOKEN));
            other == Some(token) && !request.is_lost && !request.cancelled
        });
        // Several clients may have one address.
        let one_sender =
            !context.state.is_http() || !message.is_stateless() || context.state.is_recorded_by(Role::Client);
        if one_sender {
            let violation = || {
                (
                    "progressToken is that of another request that is running".to_owned(),
                    "use a progressToken of its own for each request",
                )
            };
            let repeated = context.state.is_resumed && message.from == Role::Server;
            context.judge(&rule::PROG_01, (taken && !repeated).then(violation));
        }
        if self.running.len() >= MAX_TOKENS {
            self.is_overfull = true;
            return;
        }
        let is_subscription = Method::known(method) == Some(Method::Listen);
        match self.running.get_mut(&key) {
            Some(running) if running.task.is_none() => {
                running.requests += 1;
                running.is_ambiguous = true;
            }
            _ => {
                let token =
                    Token { last: None, task: None, is_subscription, requests: 1, is_ambiguous: false };
                self.running.insert(key, token);
            }
        }
    }

    fn progresses(&mut self, message: &Message<'_>, params: &Value, context: &mut Context<'_>) {
        let asker = message.from.peer();
        let Some(token) = params.get(keys::PROGRESS_TOKEN).filter(|token| is_token(token)) else {
            let what = "a progress notification without a progressToken";
            return context.broken(&rule::PROG_01, what, RUNNING);
        };
        let key = key(asker, message.stream, message.is_stateless(), token, context.state);
        // Streams overtake each other, and what is repeated has been said before.
        let is_ordered = !context.state.is_http()
            || context.state.is_recorded_by(message.from) && !context.state.is_resumed;
        let Some(running) = self.running.get_mut(&key) else {
            if !context.state.is_whole() && !message.is_stateless() {
                return;
            }
            let finished = self.finished(asker);
            if finished.has(token) && is_ordered {
                let what = "progress after the response";
                context.broken(&rule::PROG_02, what, "send progress before the response only");
            } else if finished.lacks(token) && !self.is_overfull {
                let what = "progress for a token that no request has";
                context.broken(&rule::PROG_01, what, RUNNING);
            }
            return;
        };
        context.kept(&rule::PROG_01);
        let on_subscription =
            || ("progress of a subscription".to_owned(), "send no progress for subscriptions/listen");
        context.judge(&rule::PROG_04, running.is_subscription.then(on_subscription));
        if let Some(task) = &running.task {
            let late =
                || ("progress after the task has ended".to_owned(), "send progress until the task ends");
            context.judge(&rule::PROG_03, task.has_ended.then(late));
            if task.has_ended {
                return;
            }
        }
        let what = match params.get("progress").and_then(Value::as_f64) {
            None => Some("a progress notification without a number"),
            Some(now) => {
                let grows = running.last.is_none_or(|last| now > last);
                running.last = Some(now);
                (!grows && is_ordered && !running.is_ambiguous).then_some("progress that does not grow")
            }
        };
        context
            .judge(&rule::PROG_02, what.map(|what| (what.to_owned(), "send a number that grows each time")));
    }

    /// A request has its response, and with it ends its token, unless it goes on as a task.
    fn answered(&mut self, request: &Request, result: Result<&Value, &Value>, state: &State) {
        let requested = request.params.get("taskId").and_then(Value::as_str);
        match (Method::known(&request.method), result) {
            (Some(Method::GetTaskResult), _) => requested.into_iter().for_each(|id| self.task_ended(id)),
            (Some(Method::GetTask | Method::CancelTask), Ok(result)) => self.task_is(result),
            _ => {}
        }
        let Some(token) = request.params.get("_meta").and_then(|meta| meta.get(keys::PROGRESS_TOKEN)) else {
            return;
        };
        let key = key(request.from, request.stream, request.is_stateless(), token, state);
        let task = result.ok().filter(|_| request.params.get("task").is_some()).and_then(|it| it.get("task"));
        if let Some(id) = task.and_then(|task| task.get("taskId")).and_then(Value::as_str)
            && let Some(running) = self.running.get_mut(&key)
        {
            running.task = Some(Task { id: id.to_owned(), has_ended: false });
        } else if let Some(running) = self.running.get_mut(&key).filter(|running| running.requests > 1) {
            running.requests -= 1;
        } else {
            self.running.remove(&key);
            self.finished(request.from).insert(token);
        }
    }

    fn finished(&mut self, asker: Role) -> &mut IdSet {
        match asker {
            Role::Client => &mut self.client_finished,
            Role::Server => &mut self.server_finished,
        }
    }

    /// The state of a task was told.
    fn task_is(&mut self, task: &Value) {
        let status = task.get("status").and_then(Value::as_str);
        if matches!(status, Some("completed" | "failed" | "cancelled"))
            && let Some(id) = task.get("taskId").and_then(Value::as_str)
        {
            self.task_ended(id);
        }
    }

    fn task_ended(&mut self, id: &str) {
        let tasks = self.running.values_mut().filter_map(|token| token.task.as_mut());
        tasks.filter(|task| task.id == id).for_each(|task| task.has_ended = true);
    }
}

fn key(asker: Role, stream: Option<u64>, is_stateless: bool, token: &Value, state: &State) -> TokenKey {
    (asker, stream.filter(|_| is_stateless && state.has_streams()), token.to_string())
}

fn is_token(token: &Value) -> bool {
    token.is_string() || token.as_f64().is_some_and(|number| number.fract() == 0.0)
}
