//! Calls that have become tasks: the engine asks for their status until they end, in the way of either kind of tasks.
//!
//! A server decides how often it is asked, within bounds; what it has shown of a task is kept as far as the next response
//! is compared with it.

mod input;
mod responses;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::calls::Call;
use super::config::CallOptions;
use super::handshake::Phase;
use super::io::{CallError, CallResult, ClientMessage, ClientMessageKind, ClientOutput, ServerRequestId};
use super::{ClientEngine, encode_request};
use crate::engine::{CallId, ExchangeId};
use crate::model::{Task, TaskStatus, UpdateTaskParams};
use crate::revision::{Method, Tasks};
use crate::time::Timestamp;

/// The interval between two requests for a status where the server names none.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// No server is asked more often, whatever it says.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// No task is asked for less often, whatever its server says.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(300);
/// Requests for the status that may fail one after the other: a task outlives connections.
const MAX_FAILURES: u32 = 5;
/// Bytes of a task's id.
const MAX_ID: usize = 1024;

/// What a client knows of a task that it follows.
#[derive(Debug)]
pub(super) struct FollowedTask {
    id: Arc<str>,
    /// Whether it ends with the call: the call has created it, and nothing else knows its id.
    is_owned: bool,
    /// The request that created it, whose progress token holds until it ends.
    created_by: Option<ExchangeId>,
    /// The status and its message, as far as they were told.
    told: Option<(TaskStatus, Option<String>)>,
    interval: Duration,
    next_poll: Timestamp,
    /// When it was created, or seen first.
    since: Timestamp,
    /// When the server may have forgotten it.
    expires: Option<Timestamp>,
    /// The `tasks/get` that waits for its response, and until when.
    poll: Option<(ExchangeId, Timestamp)>,
    /// The `tasks/result` that waits for its response.
    outcome: Option<ExchangeId>,
    /// The `tasks/update` that waits for its response, and until when.
    update: Option<(ExchangeId, Timestamp)>,
    /// The keys of the input responses in it.
    sent: Vec<String>,
    /// Requests for the status that have failed since the last one that has not.
    failures: u32,
    /// Errors of `tasks/result` before the task had ended.
    early_errors: u32,
    /// Input requests by their keys, each of which means one request for as long as the task exists.
    known_keys: BTreeSet<String>,
    rounds: u32,
    /// Input requests that the host has not responded to.
    missing: BTreeMap<ServerRequestId, String>,
    responses: BTreeMap<String, Value>,
}

impl FollowedTask {
    fn new(now: Timestamp, id: &str, is_owned: bool) -> Self {
        Self {
            id: id.into(),
            is_owned,
            created_by: None,
            told: None,
            interval: POLL_INTERVAL,
            next_poll: now,
            since: now,
            expires: None,
            poll: None,
            outcome: None,
            update: None,
            sent: Vec::new(),
            failures: 0,
            early_errors: 0,
            known_keys: BTreeSet::new(),
            rounds: 0,
            missing: BTreeMap::new(),
            responses: BTreeMap::new(),
        }
    }

    /// Whether this exchange belongs to it.
    pub(super) fn has(&self, exchange: ExchangeId) -> bool {
        self.created_by == Some(exchange) || self.open_exchanges().any(|open| open == exchange)
    }

    /// The exchanges that wait for a response.
    fn open_exchanges(&self) -> impl Iterator<Item = ExchangeId> {
        let timed = [self.poll, self.update].into_iter().flatten().map(|(exchange, _)| exchange);
        timed.chain(self.outcome)
    }

    /// When it next needs something to be done.
    pub(super) fn due(&self) -> Timestamp {
        let poll = self.poll.map_or(self.next_poll, |(_, by)| by);
        let update = self.update.map(|(_, by)| by);
        [update, self.expires].into_iter().flatten().fold(poll, Timestamp::min)
    }

    fn status(&self) -> Option<&TaskStatus> {
        self.told.as_ref().map(|(status, _)| status)
    }
}

impl ClientEngine {
    /// Follows a task that exists, until it ends; the connection is open. `created_by` is the call that has created it, if
    /// it is of this connection. Ending the call leaves the task alone.
    pub fn follow_task(
        &mut self,
        now: Timestamp,
        task: &str,
        created_by: Option<CallId>,
        options: CallOptions,
    ) -> CallId {
        let id = self.insert_call(now, Method::GetTask.name().into(), None, "{}".into(), options);
        if let Phase::Closed(why) = &self.phase {
            let why = CallError::NotOpen(why.clone());
            self.finish(id, Err(why));
            return id;
        }
        let mut followed = FollowedTask::new(now, task, false);
        followed.created_by = created_by.map(|call| ExchangeId(call.0));
        self.later_rounds.extend(followed.created_by.map(|exchange| (exchange, id)));
        if let Some(call) = self.call_mut(id) {
            call.task = Some(Box::new(followed));
        }
        self.tick_task(now, id);
        id
    }

    /// Follows the task that a call has become.
    pub(super) fn follow_created(&mut self, now: Timestamp, id: CallId, task: Task) {
        let mut followed = FollowedTask::new(now, &task.task_id, true);
        followed.created_by = Some(ExchangeId(id.0));
        let Some(call) = self.call_mut(id) else { return };
        call.exchange = None;
        call.task = Some(Box::new(followed));
        self.task_seen(now, id, task);
        if let Some(task) = self.task_mut(id) {
            task.next_poll = now + task.interval;
        }
        self.wake_for_task(id);
    }

    /// Does what is due for a task.
    pub(super) fn tick_task(&mut self, now: Timestamp, id: CallId) {
        let is_open = matches!(self.phase, Phase::Open(_));
        let Some(task) = self.task_mut(id) else { return };
        if task.expires.is_some_and(|expires| expires <= now) {
            let error = CallError::TaskExpired { task: task.id.to_string() };
            return self.complete_task(id, Err(error));
        }
        for (exchange, by) in [task.poll, task.update].into_iter().flatten() {
            if by <= now {
                self.outputs.push_back(ClientOutput::Abandon(exchange));
                let after_millis = self.idle_millis(id);
                self.task_failed(now, id, exchange, CallError::TimedOut { after_millis });
            }
        }
        let Some(task) = self.task_mut(id) else { return };
        if task.poll.is_none() && task.next_poll <= now {
            if is_open {
                let params = task_params(&task.id);
                let sent = self.send_task_request(id, &Method::GetTask, &params);
                let by = now + self.idle_of(id);
                if let Some(task) = self.task_mut(id) {
                    task.poll = sent.map(|exchange| (exchange, by));
                }
            } else {
                // A session is being opened again.
                task.next_poll = now + task.interval;
            }
        }
        self.wake_for_task(id);
    }

    /// A session was lost, and the tasks go on without it: they are asked for in the next one.
    pub(super) fn suspend_tasks(&mut self, now: Timestamp) {
        let mut next = None;
        for task in self.calls.values_mut().filter_map(|call| call.task.as_mut()) {
            (task.poll, task.outcome, task.update) = (None, None, None);
            task.next_poll = now + task.interval;
            next = next.into_iter().chain([task.next_poll]).min();
        }
        if let Some(next) = next {
            self.wake_at(next);
        }
    }

    /// The connection has ended, and nothing more can be said about its tasks.
    pub(super) fn leave_tasks(&mut self) {
        for task in self.calls.values_mut().filter_map(|call| call.task.as_mut()) {
            (task.poll, task.outcome, task.update) = (None, None, None);
            task.is_owned = false;
        }
    }

    /// Ends what a call has to do with its task: exchanges that are open are not waited for, and a task of its own that has
    /// not ended is cancelled.
    pub(super) fn abandon_task(&mut self, id: CallId) {
        let Some(task) = self.task_mut(id) else { return };
        let open: Vec<ExchangeId> = task.open_exchanges().collect();
        let (outcome, is_owned, params) = (task.outcome, task.is_owned, task_params(&task.id));
        (task.poll, task.outcome, task.update) = (None, None, None);
        for exchange in open {
            if Some(exchange) == outcome {
                self.send_cancel(exchange, "no longer wanted");
            } else {
                self.outputs.push_back(ClientOutput::Abandon(exchange));
            }
        }
        if is_owned && self.cancels_tasks() {
            self.send_task_request(id, &Method::CancelTask, &params);
        }
    }

    /// Whether the server cancels tasks.
    fn cancels_tasks(&self) -> bool {
        let Phase::Open(server) = &self.phase else { return false };
        let declared = server.capabilities.tasks.as_ref().is_some_and(|tasks| tasks.cancel.is_some());
        server.rules().tasks == Tasks::Extension || declared
    }

    /// Sends a request about the task of a call.
    fn send_task_request(&mut self, id: CallId, method: &Method, params: &str) -> Option<ExchangeId> {
        let Phase::Open(server) = &self.phase else { return None };
        let rules = server.rules();
        let exchange = self.next_exchange();
        let call = self.calls.get(&id)?;
        let options = CallOptions { meta: call.options.meta.clone(), ..CallOptions::default() };
        let (task, method) = (call.task.as_ref()?.id.clone(), Arc::<str>::from(method.name()));
        let draft = encode_request::RequestDraft {
            id: exchange.0,
            method: &method,
            params,
            options: &options,
            responses: None,
            state: None,
            task: None,
        };
        let mut json = Vec::with_capacity(params.len() + self.fixed_meta.len() + 96);
        draft.encode_request(&mut json, rules, &self.fixed_meta);
        self.later_rounds.insert(exchange, id);
        let kind = ClientMessageKind::Request { method, name: Some(task), param_headers: Vec::new() };
        let message = ClientMessage { exchange, kind, json, rules: Some(rules) };
        self.outputs.push_back(ClientOutput::Send(message));
        Some(exchange)
    }

    /// Opens `tasks/result`, by which a server of 2025-11-25 asks for input, and tells the outcome.
    fn open_outcome(&mut self, id: CallId) {
        let Some(task) = self.task_mut(id).filter(|task| task.outcome.is_none()) else { return };
        let params = task_params(&task.id);
        let sent = self.send_task_request(id, &Method::GetTaskResult, &params);
        if let Some(task) = self.task_mut(id) {
            task.outcome = sent;
        }
    }

    /// Whether the server makes calls of tools tasks where the client asks for it.
    pub(super) fn makes_tasks(&self) -> bool {
        let Phase::Open(server) = &self.phase else { return false };
        server.makes_tasks()
    }

    /// Whether a result that is a task is one for this call.
    pub(super) fn takes_task(&self, id: CallId) -> bool {
        let is_tool_call = |call: &Call| *call.method == *Method::CallTool.name();
        self.config.capabilities.takes_tasks() && self.calls.get(&id).is_some_and(is_tool_call)
    }

    /// Whether a result is the task that this call has asked for (2025-11-25).
    pub(super) fn is_created_task(&self, id: CallId, text: &str) -> bool {
        #[derive(Deserialize)]
        struct Created {
            task: Option<IgnoredAny>,
        }
        let has_asked = |call: &Call| call.options.task.requested.is_some();
        self.kind_of_tasks() == Tasks::Experimental
            && self.calls.get(&id).is_some_and(has_asked)
            && serde_json::from_str::<Created>(text).is_ok_and(|created| created.task.is_some())
    }

    /// The kind of tasks of the negotiated revision.
    pub(super) fn kind_of_tasks(&self) -> Tasks {
        match &self.phase {
            Phase::Open(server) => server.rules().tasks,
            _ => Tasks::Unknown,
        }
    }

    /// The call that follows this task.
    pub(super) fn call_of_task(&self, task: &str) -> Option<CallId> {
        let follows = |call: &Call| call.task.as_ref().is_some_and(|it| &*it.id == task);
        self.calls.iter().find(|(_, call)| follows(call)).map(|(id, _)| *id)
    }

    pub(super) fn task_mut(&mut self, id: CallId) -> Option<&mut FollowedTask> {
        self.call_mut(id)?.task.as_deref_mut()
    }

    fn wake_for_task(&mut self, id: CallId) {
        if let Some(due) = self.task_mut(id).map(|task| task.due()) {
            self.wake_at(due);
        }
    }

    fn idle_of(&self, id: CallId) -> Duration {
        self.calls.get(&id).map_or(Duration::ZERO, |call| call.options.idle)
    }

    fn idle_millis(&self, id: CallId) -> u64 {
        u64::try_from(self.idle_of(id).as_millis()).unwrap_or(u64::MAX)
    }

    fn complete_task(&mut self, id: CallId, outcome: Result<CallResult, CallError>) {
        if let Some(task) = self.task_mut(id) {
            task.is_owned = false;
        }
        self.finish(id, outcome);
    }
}

/// Why a task cannot be followed by what its server says of it, if it cannot.
pub(super) fn check_task(task: &Task) -> Result<(), String> {
    match &task.status {
        _ if task.task_id.is_empty() => Err("a task without an id".to_owned()),
        _ if task.task_id.len() > MAX_ID => {
            Err(format!("a task whose id has {} bytes, more than {MAX_ID}", task.task_id.len()))
        }
        TaskStatus::Other(other) => {
            Err(format!("a task with the status {}, which there is not", crate::jsonrpc::excerpt(other)))
        }
        _ => Ok(()),
    }
}

/// How often the status is asked for.
fn interval(task: &Task) -> Duration {
    let named = task.poll_interval_ms.map_or(POLL_INTERVAL, Duration::from_millis);
    named.clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL)
}

/// The parameters of requests about a task.
fn task_params(task: &str) -> String {
    serde_json::json!({ "taskId": task }).to_string()
}

/// The parameters of `tasks/update`.
fn update_params(task: &str, responses: BTreeMap<String, Value>) -> String {
    let params = UpdateTaskParams::new(task, responses);
    // Values of the model have string keys and no failing parts.
    serde_json::to_string(&params).unwrap_or_default()
}
