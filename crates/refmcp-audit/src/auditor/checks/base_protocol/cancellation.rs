//! Rules about cancelling requests.

use std::collections::{HashMap, VecDeque};

use refmcp_proto::revision::{Method, NotificationMethod};
use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

use crate::auditor::checks::id_set::IdSet;
use crate::auditor::checks::{Check, Context};
use crate::auditor::conversation::Request;
use crate::auditor::message::{Body, Message};
use crate::recording::{Event, EventKind};
use crate::verdict::Role;

pub(in crate::auditor::checks) static RULES: &[&Rule] = &[
    &rule::CANC_01,
    &rule::CANC_02,
    &rule::CANC_03,
    &rule::CANC_04,
    &rule::CANC_05,
    &rule::LIFE_11,
    &rule::STATE_17,
];

#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct Cancellation {
    client_ids: IdSet,
    server_ids: IdSet,
    /// Requests that have a response, the latest ones.
    answered: VecDeque<Answered>,
    /// When requests were cancelled that have no response, by sender and id.
    cancelled: HashMap<(Role, String), u64>,
    /// Ids of initialize, which is sent again after an error.
    initialize: Vec<String>,
}

#[derive(Debug)]
struct Answered {
    from: Role,
    id: String,
    at: u64,
    is_task: bool,
    is_subscription: bool,
}

/// Requests with a response, and cancelled ones, that are remembered.
const MAX_REMEMBERED: usize = 1024;

/// Ids of initialize that are remembered.
const MAX_OPENINGS: usize = 16;

const OWN: &str = "cancel requests of your own that have no response, by params.requestId";

impl Check for Cancellation {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        match &message.body {
            Body::Request { id, method, .. } => {
                self.ids(message.from).insert(id);
                // Without a session, the id of a cancelled request is free again.
                self.cancelled.remove(&(message.from, id.to_string()));
                match Method::known(method) {
                    Some(Method::Initialize) if message.from == Role::Client => {
                        self.initialize.push(id.to_string());
                        self.initialize.truncate(MAX_OPENINGS);
                    }

                    Some(Method::CancelTask) => context.kept(&rule::CANC_03),
                    _ => {}
                }
            }
            Body::Notification { method, params }
                if NotificationMethod::known(method) == Some(NotificationMethod::Cancelled) =>
            {
                self.cancels(message, params.get("requestId"), context);
            }
            Body::Response { id, request: Some(request), result } => {
                self.responds(message, id, request, *result, context);
            }
            _ => {}
        }
    }

    fn event(&mut self, event: &Event, context: &mut Context<'_>) {
        // The reader of a stream has left before the response.
        if let EventKind::Ended { direction } = event.kind
            && context.state.sender(direction) == Role::Client
            && context.state.has_streams()
            && context
                .state
                .unanswered(Role::Client)
                .any(|(_, it)| it.stream == event.stream && it.is_stateless())
        {
            context.judge_party(&rule::CANC_04, Role::Client, None);
        }
    }

    fn finished(&mut self, context: &mut Context<'_>) {
        for (from, _) in self.cancelled.keys() {
            context.judge_party(&rule::CANC_02, from.peer(), None);
        }
    }
}

impl Cancellation {
    fn ids(&mut self, from: Role) -> &mut IdSet {
        match from {
            Role::Client => &mut self.client_ids,
            Role::Server => &mut self.server_ids,
        }
    }

    fn cancels(&mut self, message: &Message<'_>, id: Option<&Value>, context: &mut Context<'_>) {
        let from = message.from;
        let id = id.filter(|id| id.is_string() || id.is_number());
        if message.is_stateless() {
            return match from {
                Role::Client => self.cancels_stateless(id, message.at, context),
                Role::Server => self.ends_subscription(id, context),
            };
        }
        let Some(id) = id else {
            let what = "notifications/cancelled without requestId";
            return context.broken(&rule::CANC_01, what, OWN);
        };
        let text = id.to_string();
        if from == Role::Client && self.initialize.contains(&text) {
            let what = "initialize was cancelled";
            return context.broken(&rule::LIFE_11, what, "end the connection instead");
        }
        context.kept(&rule::LIFE_11);
        let unknown = if context.state.request(from, None, id).is_some() {
            context.kept(&rule::CANC_01);
            return self.remember(from, text, message.at);
        } else if let Some(answered) = self.answered.iter().rfind(|it| it.from == from && it.id == text) {
            if answered.is_task {
                let what = "notifications/cancelled for a request that has become a task";
                return context.broken(&rule::CANC_03, what, "cancel the task by tasks/cancel");
            }
            let late = context.state.surely_knew(from, answered.at, message.at);
            return if late {
                let what = format!("request {id} was cancelled after its response");
                context.broken(&rule::CANC_01, what, OWN);
            };
        } else {
            context.state.is_whole() && !context.state.is_overfull && self.ids(from).lacks(id)
        };
        if unknown {
            let is_foreign = context.state.request(from.peer(), None, id).is_some();
            let what = match is_foreign {
                true => format!("request {id} of the other side was cancelled"),
                false => format!("request {id} was cancelled, which was never sent"),
            };
            context.broken(&rule::CANC_01, what, OWN);
        }
    }

    /// Without sessions, over HTTP the closed stream cancels. A notification is not expected there, and not forbidden either.
    fn cancels_stateless(&mut self, id: Option<&Value>, at: u64, context: &mut Context<'_>) {
        let what = match id {
            _ if context.state.has_streams() => {
                let what = "notifications/cancelled over HTTP, where the closed stream cancels";
                return context.broken(&rule::STATE_17, what, "close the stream of the request");
            }
            None => Some("notifications/cancelled without requestId".to_owned()),
            Some(id) if context.state.request(Role::Client, None, id).is_some() => None,
            Some(id) if self.client_ids.lacks(id) && !context.state.is_overfull => {
                Some(format!("request {id} was cancelled, which was never sent"))
            }
            Some(_) => return,
        };
        if let (None, Some(id)) = (&what, id) {
            self.remember(Role::Client, id.to_string(), at);
        }
        context.judge(&rule::CANC_04, what.map(|what| (what, OWN)));
    }

    /// Without sessions, a server cancels subscriptions alone.
    fn ends_subscription(&self, id: Option<&Value>, context: &mut Context<'_>) {
        let is_listen = |request: &Request| Method::known(&request.method) == Some(Method::Listen);
        let text = id.map(Value::to_string);
        let open = context
            .state
            .unanswered(Role::Client)
            .any(|(id, request)| Some(id) == text.as_deref() && is_listen(request));
        let ended = self.answered.iter().any(|it| it.is_subscription && Some(&it.id) == text.as_ref());
        let violation = || {
            (
                "the server cancels what is no subscription".to_owned(),
                "answer the request, with an error if need be",
            )
        };
        context.judge(&rule::CANC_05, (!open && !ended).then(violation));
    }

    fn responds(
        &mut self,
        message: &Message<'_>,
        id: &Value,
        request: &Request,
        result: Result<&Value, &Value>,
        context: &mut Context<'_>,
    ) {
        let method = Method::known(&request.method);
        let id = id.to_string();
        if let Some(at) = self.cancelled.remove(&(request.from, id.clone()))
            && context.state.surely_knew(message.from, at, message.at)
            && method != Some(Method::Initialize)
        {
            let what = format!("{} was answered although it was cancelled", request.method);
            context.broken(&rule::CANC_02, what, "stop a cancelled request and send no response");
        }
        let is_task = result.is_ok_and(|result| {
            result.get("task").is_some_and(|task| task.get("taskId").is_some())
                || result.get("resultType").is_some_and(|kind| kind == "task")
        });
        if self.answered.len() >= MAX_REMEMBERED {
            self.answered.pop_front();
        }
        let is_subscription = method == Some(Method::Listen);
        self.answered.push_back(Answered {
            from: request.from,
            id,
            at: message.at,
            is_task,
            is_subscription,
        });
    }

    fn remember(&mut self, from: Role, id: String, at: u64) {
        if self.cancelled.len() < MAX_REMEMBERED {
            self.cancelled.insert((from, id), at);
        }
    }
}
