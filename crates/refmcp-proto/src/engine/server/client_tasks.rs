//! Requests to the client that the client runs as tasks (2025-11-25): the server is their requestor, and asks for their states
//! and outcomes.
//!
//! Such a request is one like any other to the call that waits for it: it has the same timeout, and ends with an outcome. What
//! a client says of its task decides when it is asked again, within bounds, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Number, Value};

use super::ServerEngine;
use super::input_rounds::OpenRequest;
use crate::engine::report::ReportFindings;
use crate::engine::task::shortened;
use crate::engine::{CallId, InputOutcome, MessageKind, MessageTarget, SharedOutput};
use crate::jsonrpc::{Notification, RequestId, RpcError, code, encode, excerpt, without_place};
use crate::model::{InputRequest, TaskParams, TaskStatus, keys};
use crate::peer::Peer;
use crate::revision::{ServerMethod, Tasks};
use crate::rule;
use crate::time::Timestamp;

/// The interval between two requests for a status where the client names none.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// No client is asked more often, or less often, whatever it says.
const POLL_BOUNDS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));
/// How long the response to a request for a status may take.
const POLL_TIMEOUT: Duration = Duration::from_secs(30);
/// Requests for a status that may fail one after the other.
const MAX_FAILURES: u32 = 5;
/// Bytes of the id of a task.
const MAX_ID: usize = 1024;
/// Requests that were given up before their tasks were known, and whose tasks are cancelled when they are.
const MAX_GIVEN_UP: usize = 64;

/// What is open about tasks of the client, beside the requests that they are.
#[derive(Debug, Default)]
pub(super) struct TaskRequests {
    /// Requests about a task, with the request that it is.
    follow_ups: BTreeMap<i64, i64>,
    given_up: BTreeSet<i64>,
}

/// How far a request has come that is to be a task of the client.
#[derive(Debug)]
pub(super) enum ClientTask {
    /// The client has not said that it is one.
    Requested,
    /// The client runs it.
    Created(Box<CreatedTask>),
}

/// A task of the client, as far as the server knows it.
#[derive(Debug)]
pub(super) struct CreatedTask {
    id: Arc<str>,
    interval: Duration,
    next_poll: Timestamp,
    /// The `tasks/get` that waits for its response, and until when.
    poll: Option<(i64, Timestamp)>,
    /// The `tasks/result` that waits for its response.
    outcome: Option<i64>,
    is_over: bool,
    /// Requests for the status that have failed since the last one that has not.
    failures: u32,
}

impl ClientTask {
    /// When something is to be done; never after the request itself is overdue.
    pub(super) fn due(&self, until: Timestamp) -> Timestamp {
        match self {
            Self::Requested => until,
            Self::Created(task) => match task.poll {
                Some((_, by)) => until.min(by),
                None if task.is_over => until,
                None => until.min(task.next_poll),
            },
        }
    }

    fn created(&mut self) -> Option<&mut CreatedTask> {
        match self {
            Self::Requested => None,
            Self::Created(task) => Some(task),
        }
    }
}

/// A task as a client tells of it. Read more tolerantly than the model does: each fault has an effect of its own.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToldTask {
    task_id: String,
    status: TaskStatus,
    status_message: Option<String>,
    created_at: Option<String>,
    last_updated_at: Option<String>,
    /// Null is a value, too.
    #[serde(default, deserialize_with = "present")]
    ttl: Option<IgnoredAny>,
    poll_interval: Option<Number>,
}

fn present<'de, D: serde::Deserializer<'de>>(member: D) -> Result<Option<IgnoredAny>, D::Error> {
    IgnoredAny::deserialize(member).map(Some)
}

/// Keeps the wish for a task of the client only where the client runs such requests as tasks.
pub(super) fn keep_task_wish(peer: &Peer, request: &mut InputRequest) {
    let is_declared = peer.rules().tasks == Tasks::Experimental && peer.capabilities.runs_as_task(request);
    if !is_declared {
        request.take_task();
    }
}

impl ServerEngine {
    /// The client has answered the request that was to be a task.
    pub(super) fn task_answered(&mut self, now: Timestamp, number: i64, outcome: InputOutcome) {
        let InputOutcome::Response(answer) = &outcome else { return self.task_done(number, outcome) };
        let Some(task) = answer.get("task").filter(|task| task.is_object()) else {
            self.report(
                &rule::TSK_09,
                "a result in place of the task that was asked for",
                "answer with the task",
            );
            return self.task_done(number, outcome);
        };
        let told = match self.read_task(task) {
            Ok(told) => told,
            Err(why) => {
                return self.task_done(number, failed(&format!("its task cannot be followed: {why}")));
            }
        };
        if told.status != TaskStatus::Working {
            let what = format!("a new task that is {}", excerpt(told.status.as_str()));
            self.report(&rule::TSK_11, what, "begin with working");
        }
        if self.request_of_task(&told.task_id).is_some() {
            self.report(
                &rule::TSK_10,
                "a new task with the id of another",
                "give each task an id of its own",
            );
            return self.task_done(number, failed("its task has the id of another"));
        }
        let created = CreatedTask {
            id: told.task_id.as_str().into(),
            interval: POLL_INTERVAL,
            next_poll: now,
            poll: None,
            outcome: None,
            is_over: false,
            failures: 0,
        };
        let Some(open) = self.server_requests.get_mut(number) else { return };
        open.task = Some(ClientTask::Created(Box::new(created)));
        if let Some((call, _)) = open.waiting
            && let Some(call) = self.calls.get_mut(call)
        {
            call.response_bytes += told.task_id.len();
        }
        self.task_told(now, number, &told);
    }

    /// Does what is due for a task of the client.
    pub(super) fn tick_client_task(&mut self, now: Timestamp, number: i64) {
        let Some(task) = self.client_task(number) else { return };
        if let Some((poll, by)) = task.poll
            && by <= now
        {
            task.poll = None;
            self.server_requests.tasks().follow_ups.remove(&poll);
            self.cancel_follow_up(number, poll, "no answer in time");
            return self.poll_failed(now, number, "it does not tell the status of its task");
        }
        if task.poll.is_none() && !task.is_over && task.next_poll <= now {
            let poll = self.send_follow_up(number, ServerMethod::GetTask, POLL_TIMEOUT);
            if let Some(task) = self.client_task(number) {
                task.poll = poll.map(|poll| (poll, now + POLL_TIMEOUT));
            }
        }
        self.server_requests.reschedule(number);
    }

    /// Takes the response to a request about a task; whether it is one.
    pub(super) fn follow_up_answered(&mut self, now: Timestamp, number: i64, outcome: &InputOutcome) -> bool {
        let Some(of) = self.server_requests.tasks().follow_ups.remove(&number) else { return false };
        let Some(task) = self.client_task(of) else { return true };
        if task.outcome == Some(number) {
            self.outcome_answered(of, outcome);
            return true;
        }
        task.poll = None;
        let id = task.id.clone();
        match outcome {
            InputOutcome::Response(answer) => match self.read_task(answer) {
                Ok(told) if *told.task_id == *id => self.task_told(now, of, &told),
                Ok(_) => {
                    self.report(
                        &rule::TSK_10,
                        "tasks/get that tells of another task",
                        "tell of the one in taskId",
                    );
                    self.poll_failed(now, of, "it tells of another task");
                }
                Err(why) => self.poll_failed(now, of, &format!("its task cannot be followed: {why}")),
            },
            InputOutcome::Error(error) if error.code == code::INVALID_PARAMS => {
                let what =
                    format!("it knows no task {} (any more): {}", excerpt(&id), excerpt(&error.message));
                self.task_done(of, failed(&what));
            }
            InputOutcome::Error(error) => {
                let what = format!("it does not tell the status of its task: {}", excerpt(&error.message));
                self.poll_failed(now, of, &what);
            }
            InputOutcome::TimedOut => self.poll_failed(now, of, "it does not tell the status of its task"),
        }
        true
    }

    /// The outcome of a task has come.
    fn outcome_answered(&mut self, number: i64, outcome: &InputOutcome) {
        let Some(task) = self.client_task(number) else { return };
        (task.outcome, task.is_over) = (None, true);
        let id = task.id.clone();
        let mut outcome = outcome.clone();
        if let InputOutcome::Response(result) = &mut outcome {
            let related = result.pointer_mut("/_meta").and_then(Value::as_object_mut);
            let named = related.and_then(|meta| meta.remove(keys::RELATED_TASK));
            if named.as_ref().and_then(|named| named.get("taskId")?.as_str()) != Some(&id) {
                let expected = "name the task in _meta of the result of tasks/result";
                self.report(&rule::TSK_19, "a result of tasks/result that does not name its task", expected);
            }
        }
        self.task_done(number, outcome);
    }

    /// The client tells of a task without having been asked.
    pub(super) fn task_notified(&mut self, now: Timestamp, notification: &Notification<'_>) {
        let read = serde_json::from_str::<Value>(notification.params.text.unwrap_or("{}"));
        let Ok(params) = read else { return };
        let id = params.get("taskId").and_then(Value::as_str);
        let Some(number) = id.and_then(|id| self.request_of_task(id)) else { return };
        // One that cannot be read is not counted: the next answer tells.
        if let Ok(told) = self.read_task(&params) {
            let polls = self.client_task(number).map(|task| (task.next_poll, task.failures));
            self.task_told(now, number, &told);
            if let (Some(task), Some((next_poll, failures))) = (self.client_task(number), polls) {
                (task.next_poll, task.failures) = (next_poll, failures);
                self.server_requests.reschedule(number);
            }
        }
    }

    /// What is known of a task now.
    fn task_told(&mut self, now: Timestamp, number: i64, told: &ToldTask) {
        let interval = self.interval(told);
        let Some(task) = self.client_task(number).filter(|task| !task.is_over) else { return };
        (task.interval, task.failures, task.next_poll) = (interval, 0, now + interval);
        match &told.status {
            TaskStatus::Working => {}
            TaskStatus::InputRequired => self.ask_for_outcome(number),
            TaskStatus::Completed | TaskStatus::Failed => {
                task.is_over = true;
                self.close_poll(number);
                self.ask_for_outcome(number);
            }
            TaskStatus::Cancelled => {
                let message = told.status_message.as_deref().map(shortened);
                let why = message.map_or_else(String::new, |why| format!(": {}", excerpt(why)));
                return self.task_done(number, failed(&format!("it has cancelled its task{why}")));
            }
            TaskStatus::Other(other) => {
                let what = format!("a task with the status {}, which there is not", excerpt(other));
                self.report(&rule::TSK_12, what.clone(), "send a status of the specification");
                return self.task_failed(number, &what);
            }
        }
        self.server_requests.reschedule(number);
    }

    fn ask_for_outcome(&mut self, number: i64) {
        if self.client_task(number).is_none_or(|task| task.outcome.is_some()) {
            return;
        }
        let within = self.config.timeouts.client_response;
        let sent = self.send_follow_up(number, ServerMethod::GetTaskResult, within);
        if let Some(task) = self.client_task(number) {
            task.outcome = sent;
        }
    }

    /// A request for the status has failed: it is made again, but not for ever.
    fn poll_failed(&mut self, now: Timestamp, number: i64, why: &str) {
        let Some(task) = self.client_task(number) else { return };
        task.failures += 1;
        task.next_poll = now + task.interval;
        if task.failures >= MAX_FAILURES {
            return self.task_failed(number, why);
        }
        self.server_requests.reschedule(number);
    }

    /// Ends a request whose task cannot be followed, and cancels the task.
    fn task_failed(&mut self, number: i64, why: &str) {
        let Some(open) = self.server_requests.close(number) else { return };
        self.cancel_task(number, &open);
        self.responded(number, open, failed(why));
    }

    /// Ends a request with what its task came to.
    fn task_done(&mut self, number: i64, outcome: InputOutcome) {
        let Some(open) = self.server_requests.close(number) else { return };
        self.drop_follow_ups(&open);
        self.responded(number, open, outcome);
    }

    /// Ends the task of a request that is given up. Before the client has told its id, that waits until it has: a task is
    /// cancelled by `tasks/cancel` alone.
    pub(super) fn cancel_task(&mut self, number: i64, open: &OpenRequest) {
        match &open.task {
            None => {}
            Some(ClientTask::Requested) => {
                let given_up = &mut self.server_requests.tasks().given_up;
                given_up.insert(number);
                if given_up.len() > MAX_GIVEN_UP {
                    given_up.pop_first();
                }
            }
            Some(ClientTask::Created(task)) => {
                let (id, is_over) = (task.id.clone(), task.is_over);
                let call = open.waiting.as_ref().map(|(call, _)| *call);
                self.drop_follow_ups(open);
                if !is_over {
                    self.send_task_cancel(&id, call);
                }
            }
        }
    }

    /// Takes the answer to a request that was given up: the task that it tells of is cancelled. Gives whether it is one.
    pub(super) fn given_up_answered(&mut self, number: i64, outcome: &InputOutcome) -> bool {
        if !self.server_requests.tasks().given_up.remove(&number) {
            return false;
        }
        if let InputOutcome::Response(answer) = outcome
            && let Some(id) = answer.pointer("/task/taskId").and_then(Value::as_str)
            && id.len() <= MAX_ID
        {
            self.send_task_cancel(id, None);
        }
        true
    }

    fn send_task_cancel(&mut self, task: &str, call: Option<CallId>) {
        if self.phase.peer().is_some_and(|peer| peer.capabilities.cancels_tasks()) && !self.input_closed {
            self.send_task_request(call, ServerMethod::CancelTask, task, POLL_TIMEOUT);
        }
    }

    /// Sends a request about the task of a request.
    fn send_follow_up(&mut self, of: i64, method: ServerMethod, within: Duration) -> Option<i64> {
        let open = self.server_requests.get_mut(of)?;
        let call = open.waiting.as_ref().map(|(call, _)| *call);
        let task = open.task.as_mut()?.created()?.id.clone();
        let number = self.send_task_request(call, method, &task, within);
        self.server_requests.tasks().follow_ups.insert(number, of);
        Some(number)
    }

    fn send_task_request(
        &mut self,
        call: Option<CallId>,
        method: ServerMethod,
        task: &str,
        within: Duration,
    ) -> i64 {
        let (number, id) = self.server_requests.new_number();
        self.share(SharedOutput::Expect { ids: vec![id.clone()], within, call: None });
        let to = self.target(call);
        let params = TaskParams::new(task);
        self.send(to, MessageKind::Request, |json| encode::request(json, &id, method.name(), &params));
        number
    }

    /// Where messages for a call go, or those of the session.
    pub(super) fn target(&self, call: Option<CallId>) -> MessageTarget {
        let call = call.and_then(|call| self.calls.get(call));
        call.map_or(MessageTarget::Session, |call| MessageTarget::Exchange(call.exchange))
    }

    /// Expects no more answer to an open request for the status.
    fn close_poll(&mut self, number: i64) {
        if let Some((poll, _)) = self.client_task(number).and_then(|task| task.poll.take()) {
            self.server_requests.tasks().follow_ups.remove(&poll);
            self.share(SharedOutput::Withdraw(RequestId::Integer(poll)));
        }
    }

    fn cancel_follow_up(&mut self, of: i64, number: i64, why: &'static str) {
        let waiting = self.server_requests.get_mut(of).and_then(|open| open.waiting.as_ref());
        let call = waiting.map(|(call, _)| *call);
        self.send_cancelled(number, call, why);
    }

    /// Expects no more answers about the task of a request. The client is told where it would wait with one.
    pub(super) fn drop_follow_ups(&mut self, open: &OpenRequest) {
        let Some(ClientTask::Created(task)) = &open.task else { return };
        let call = open.waiting.as_ref().map(|(call, _)| *call);
        if let Some((poll, _)) = task.poll {
            self.server_requests.tasks().follow_ups.remove(&poll);
            self.share(SharedOutput::Withdraw(RequestId::Integer(poll)));
        }
        if let Some(outcome) = task.outcome {
            self.server_requests.tasks().follow_ups.remove(&outcome);
            self.send_cancelled(outcome, call, "the server no longer needs it");
        }
    }

    fn client_task(&mut self, number: i64) -> Option<&mut CreatedTask> {
        self.server_requests.get_mut(number)?.task.as_mut()?.created()
    }

    fn request_of_task(&self, id: &str) -> Option<i64> {
        let is_it =
            |open: &OpenRequest| matches!(&open.task, Some(ClientTask::Created(task)) if *task.id == *id);
        self.server_requests.find(is_it)
    }

    /// Reads what the client tells of a task, if it can be followed.
    fn read_task(&mut self, task: &Value) -> Result<ToldTask, String> {
        let expected = "send taskId, status, createdAt, lastUpdatedAt and ttl";
        let told = ToldTask::deserialize(task).map_err(|error| {
            let why = without_place(&error);
            self.report(&rule::TSK_13, format!("a malformed task: {why}"), expected);
            why
        })?;
        let missing = [
            ("createdAt", told.created_at.is_none()),
            ("lastUpdatedAt", told.last_updated_at.is_none()),
            ("ttl", told.ttl.is_none()),
        ];
        if let Some((member, _)) = missing.into_iter().find(|(_, is_missing)| *is_missing) {
            self.report(&rule::TSK_13, format!("a task without {member}"), expected);
        }
        let bytes = told.task_id.len();
        if bytes == 0 || bytes > MAX_ID {
            let why = format!("an id of {bytes} bytes; at least 1 and at most {MAX_ID} can be followed");
            self.report(&rule::TSK_10, why.clone(), "send an id of some random bytes");
            return Err(why);
        }
        Ok(told)
    }

    /// How often the status is asked for.
    fn interval(&mut self, told: &ToldTask) -> Duration {
        let Some(named) = &told.poll_interval else { return POLL_INTERVAL };
        let millis = named.as_f64().unwrap_or_default();
        if millis <= 0.0 {
            let what = format!("a pollInterval of {}", excerpt(&named.to_string()));
            self.report(&rule::RPC_01, what, "send a pollInterval of one millisecond or more");
        }
        let (least, most) = POLL_BOUNDS;
        Duration::try_from_secs_f64(millis.max(0.0) / 1000.0).unwrap_or(most).clamp(least, most)
    }
}

fn failed(why: &str) -> InputOutcome {
    InputOutcome::Error(RpcError::internal(format!("the client: {why}")))
}
