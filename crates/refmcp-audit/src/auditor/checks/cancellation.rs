//! Rules about cancelling requests.

use std::collections::{HashMap, VecDeque};

use refmcp_proto::revision::{Method, NotificationMethod};
use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

use super::id_set::IdSet;
use super::{Check, VerdictWriter};
use crate::auditor::conversation::{Request, State};
use crate::auditor::message::{Body, Message};
use crate::recording::{Event, EventKind};
use crate::verdict::Role;

static RULES: &[&Rule] = &[
    &rule::CANC_01,
    &rule::CANC_02,
    &rule::CANC_03,
    &rule::CANC_04,
    &rule::CANC_05,
    &rule::LIFE_11,
    &rule::STATE_17,
];

#[derive(Debug, Default)]
pub(super) struct Cancellation {
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
    fn rules(&self) -> &'static [&'static Rule] {
        RULES
    }

    fn message(&mut self, message: &Message<'_>, state: &State, verdicts: &mut VerdictWriter<'_>) {
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

                    Some(Method::CancelTask) => verdicts.judge(&rule::CANC_03, None),
                    _ => {}
                }
            }
            Body::Notification { method, params }
                if NotificationMethod::known(method) == Some(NotificationMethod::Cancelled) =>
            {
                self.cancels(message, params.get("requestId"), state, verdicts);
            }
            Body::Response { id, request: Some(request), result } => {
                self.responds(message, id, request, *result, state, verdicts);
            }
            _ => {}
        }
    }

    fn event(&mut self, event: &Event, state: &State, verdicts: &mut VerdictWriter<'_>) {
        // The reader of a stream has left before the response.
        if let EventKind::Ended { direction } = event.kind
            && state.sender(direction) == Role::Client
            && state.has_streams()
            && state.unanswered(Role::Client).any(|(_, it)| it.stream == event.stream && it.is_stateless())
        {
            verdicts.judge_party(&rule::CANC_04, Role::Client, None);
        }
    }

    fn finished(&mut self, _: &State, verdicts: &mut VerdictWriter<'_>) {
        for (from, _) in self.cancelled.keys() {
            verdicts.judge_party(&rule::CANC_02, from.peer(), None);
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

    fn cancels(
        &mut self,
        message: &Message<'_>,
        id: Option<&Value>,
        state: &State,
        verdicts: &mut VerdictWriter<'_>,
    ) {
        let from = message.from;
        let id = id.filter(|id| id.is_string() || id.is_number());
        if message.is_stateless() {
            return match from {
                Role::Client => self.cancels_stateless(id, message.at, state, verdicts),
                Role::Server => self.ends_subscription(id, state, verdicts),
            };
        }
        let Some(id) = id else {
            let what = "notifications/cancelled without requestId".to_owned();
            return verdicts.judge(&rule::CANC_01, Some((what, OWN)));
        };
        let text = id.to_string();
        if from == Role::Client && self.initialize.contains(&text) {
            let what = "initialize was cancelled".to_owned();
            return verdicts.judge(&rule::LIFE_11, Some((what, "end the connection instead")));
        }
        verdicts.judge(&rule::LIFE_11, None);
        let unknown = if state.request(from, None, id).is_some() {
            verdicts.judge(&rule::CANC_01, None);
            return self.remember(from, text, message.at);
        } else if let Some(answered) = self.answered.iter().rfind(|it| it.from == from && it.id == text) {
            if answered.is_task {
                let what = "notifications/cancelled for a request that has become a task".to_owned();
                return verdicts.judge(&rule::CANC_03, Some((what, "cancel the task by tasks/cancel")));
            }
            let late = state.surely_knew(from, answered.at, message.at);
            return if late {
                let what = format!("request {id} was cancelled after its response");
                verdicts.judge(&rule::CANC_01, Some((what, OWN)));
            };
        } else {
            state.is_whole() && !state.is_overfull && self.ids(from).lacks(id)
        };
        if unknown {
            let is_foreign = state.request(from.peer(), None, id).is_some();
            let what = match is_foreign {
                true => format!("request {id} of the other side was cancelled"),
                false => format!("request {id} was cancelled, which was never sent"),
            };
            verdicts.judge(&rule::CANC_01, Some((what, OWN)));
        }
    }

    /// Without sessions, over HTTP the closed stream cancels. A notification is not expected there, and not forbidden either.
    fn cancels_stateless(
        &mut self,
        id: Option<&Value>,
        at: u64,
        state: &State,
        verdicts: &mut VerdictWriter<'_>,
    ) {
        let what = match id {
            _ if state.has_streams() => {
                let what = "notifications/cancelled over HTTP, where the closed stream cancels".to_owned();
                return verdicts.judge(&rule::STATE_17, Some((what, "close the stream of the request")));
            }
            None => Some("notifications/cancelled without requestId".to_owned()),
            Some(id) if state.request(Role::Client, None, id).is_some() => None,
            Some(id) if self.client_ids.lacks(id) && !state.is_overfull => {
                Some(format!("request {id} was cancelled, which was never sent"))
            }
            Some(_) => return,
        };
        if let (None, Some(id)) = (&what, id) {
            self.remember(Role::Client, id.to_string(), at);
        }
        verdicts.judge(&rule::CANC_04, what.map(|what| (what, OWN)));
    }

    /// Without sessions, a server cancels subscriptions alone.
    fn ends_subscription(&self, id: Option<&Value>, state: &State, verdicts: &mut VerdictWriter<'_>) {
        let is_listen = |request: &Request| Method::known(&request.method) == Some(Method::Listen);
        let text = id.map(Value::to_string);
        let open = state
            .unanswered(Role::Client)
            .any(|(id, request)| Some(id) == text.as_deref() && is_listen(request));
        let ended = self.answered.iter().any(|it| it.is_subscription && Some(&it.id) == text.as_ref());
        let violation = || {
            (
                "the server cancels what is no subscription".to_owned(),
                "answer the request, with an error if need be",
            )
        };
        verdicts.judge(&rule::CANC_05, (!open && !ended).then(violation));
    }

    fn responds(
        &mut self,
        message: &Message<'_>,
        id: &Value,
        request: &Request,
        result: Result<&Value, &Value>,
        state: &State,
        verdicts: &mut VerdictWriter<'_>,
    ) {
        let method = Method::known(&request.method);
        let id = id.to_string();
        if let Some(at) = self.cancelled.remove(&(request.from, id.clone()))
            && state.surely_knew(message.from, at, message.at)
            && method != Some(Method::Initialize)
        {
            let what = format!("{} was answered although it was cancelled", request.method);
            verdicts.judge(&rule::CANC_02, Some((what, "stop a cancelled request and send no response")));
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
