//! What the server says of a task: responses to requests about it, and notifications of its status.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::ClientEngine;
use super::super::io::{CallError, CallResult, ClientOutput, TransportError};
use super::{MAX_FAILURES, check_task, interval};
use crate::engine::report::ReportFindings;
use crate::engine::task::shortened;
use crate::engine::{CallId, ExchangeId};
use crate::jsonrpc::{RpcError, code, without_place};
use crate::model::{CreateTaskResult, Task, TaskStatus};
use crate::revision::Tasks;
use crate::rule;
use crate::time::Timestamp;

/// Errors of `tasks/result` that are taken for those of a task that has not ended yet.
const MAX_EARLY_ERRORS: u32 = 3;

impl ClientEngine {
    /// The server has made a call a task; the text is that of the result.
    pub(in super::super) fn task_created(&mut self, now: Timestamp, id: CallId, text: &str) {
        let is_extension = self.kind_of_tasks() == Tasks::Extension;
        let read = if is_extension {
            serde_json::from_str::<Task>(text)
        } else {
            serde_json::from_str::<CreateTaskResult>(text).map(|created| created.task)
        };
        let read = read.map_err(|error| without_place(&error));
        let task = match read.and_then(|task| check_task(&task).map(|()| task)) {
            Ok(task) => task,
            Err(why) => {
                let what = format!("the task that it has created: {why}");
                self.report_task(&what);
                return self.finish(id, Err(CallError::Protocol(what)));
            }
        };
        if self.call_mut(id).is_some_and(|call| call.options.task.is_manual) {
            let result = CallResult::Task(Box::new(task), text.into());
            return self.finish(id, Ok(result));
        }
        self.follow_created(now, id, task);
    }

    /// A response to a request about a task.
    pub(in super::super) fn task_response(
        &mut self,
        now: Timestamp,
        id: CallId,
        exchange: ExchangeId,
        result: Result<&str, RpcError>,
    ) {
        let text = match result {
            Ok(text) => text,
            Err(error) => return self.task_failed(now, id, exchange, CallError::Rpc(error)),
        };
        self.later_rounds.remove(&exchange);
        let Some(task) = self.task_mut(id) else { return };
        if task.outcome == Some(exchange) {
            task.outcome = None;
            return self.complete_task(id, Ok(CallResult::Complete(text.into())));
        }
        if task.update.is_some_and(|(update, _)| update == exchange) {
            task.update = None;
            for key in std::mem::take(&mut task.sent) {
                task.responses.remove(&key);
            }
            // Others may have come meanwhile.
            self.update_task(now, id);
            return self.wake_for_task(id);
        }
        if task.poll.is_none_or(|(poll, _)| poll != exchange) {
            // A second response to the request that created it.
            return;
        }
        (task.poll, task.failures) = (None, 0);
        task.next_poll = now + task.interval;
        match read_task(text, &task.id) {
            Ok(seen) => {
                task.interval = interval(&seen);
                task.next_poll = now + task.interval;
                self.wake_for_task(id);
                self.task_seen_in(now, id, seen, text);
            }
            Err(why) => {
                let what = format!("its answer to tasks/get: {why}");
                self.report_task(&what);
                self.finish(id, Err(CallError::Protocol(what)));
            }
        }
    }

    /// A request about a task has no result.
    pub(in super::super) fn task_failed(
        &mut self,
        now: Timestamp,
        id: CallId,
        exchange: ExchangeId,
        error: CallError,
    ) {
        self.later_rounds.remove(&exchange);
        let Some(task) = self.task_mut(id) else { return };
        if task.created_by == Some(exchange) {
            return;
        }
        if task.outcome == Some(exchange) {
            task.outcome = None;
            return match error {
                // Nothing follows these: what is said is the outcome.
                error @ CallError::Rpc(_) if task.status().is_some_and(TaskStatus::is_terminal) => {
                    self.complete_task(id, Err(error));
                }
                error @ CallError::Rpc(_) => {
                    task.early_errors += 1;
                    if task.early_errors > MAX_EARLY_ERRORS {
                        self.finish(id, Err(error));
                    }
                }
                error if may_pass(&error) => {}
                error => self.finish(id, Err(error)),
            };
        }
        let is_update = task.update.is_some_and(|(update, _)| update == exchange);
        if is_update {
            task.update = None;
        } else {
            task.poll = None;
        }
        task.failures += 1;
        if may_pass(&error) && task.failures <= MAX_FAILURES {
            let wait = task.interval.max(Duration::from_secs(1)) * (1 << task.failures.min(5));
            task.next_poll = now + wait;
            return self.wake_for_task(id);
        }
        let error = match error {
            CallError::Rpc(error) if error.code == code::INVALID_PARAMS && !is_update => {
                task.is_owned = false;
                CallError::UnknownTask { task: task.id.to_string(), error }
            }
            error => error,
        };
        self.finish(id, Err(error));
    }

    /// The server tells of a task by itself.
    pub(in super::super) fn task_notified(&mut self, now: Timestamp, id: CallId, seen: Task) {
        // What is wrong with it, the next response to `tasks/get` tells.
        if check_task(&seen).is_ok() {
            self.task_seen(now, id, seen);
        }
    }

    /// What is known of a task now, without an outcome.
    pub(super) fn task_seen(&mut self, now: Timestamp, id: CallId, mut seen: Task) {
        let is_extension = self.kind_of_tasks() == Tasks::Extension;
        let Some(task) = self.task_mut(id) else { return };
        if let Some(message) = &mut seen.status_message {
            message.truncate(shortened(message).len());
        }
        task.interval = interval(&seen);
        // A server may keep it longer, or shorter, than it said before.
        task.expires = seen.ttl_ms.map(|ttl| task.since + Duration::from_millis(ttl));
        let requests = seen.input_requests.take().unwrap_or_default();
        let status = seen.status.clone();
        let told = (status.clone(), seen.status_message.clone());
        if task.told.as_ref() != Some(&told) {
            task.told = Some(told);
            (seen.result, seen.error) = (None, None);
            self.outputs.push_back(ClientOutput::Task(id, Box::new(seen)));
        }
        if is_extension {
            self.withdraw_stale_input(id, &requests);
        }
        match status {
            TaskStatus::InputRequired if is_extension => {
                self.task_needs_input(id, requests);
                self.update_task(now, id);
            }
            // Its end has no outcome here, which `tasks/get` tells.
            _ if is_extension => {}
            TaskStatus::InputRequired | TaskStatus::Completed | TaskStatus::Failed => self.open_outcome(id),
            TaskStatus::Cancelled => self.task_cancelled(id),
            TaskStatus::Working | TaskStatus::Other(_) => {}
        }
    }

    /// What `tasks/get` shows of a task, which has the outcome in 2026-07-28.
    fn task_seen_in(&mut self, now: Timestamp, id: CallId, seen: Task, text: &str) {
        let (status, error) = (seen.status.clone(), seen.error.clone());
        self.task_seen(now, id, seen);
        if self.kind_of_tasks() != Tasks::Extension {
            return;
        }
        let outcome = match (status, error) {
            (TaskStatus::Completed, _) => match result_of(text) {
                Some(result) => Ok(CallResult::Complete(result)),
                None => Err(self.no_outcome("a completed task without a result")),
            },
            (TaskStatus::Failed, Some(error)) => Err(CallError::Rpc(error)),
            (TaskStatus::Failed, None) => Err(self.no_outcome("a failed task without an error")),
            (TaskStatus::Cancelled, _) => return self.task_cancelled(id),
            _ => return,
        };
        self.complete_task(id, outcome);
    }

    fn no_outcome(&mut self, what: &str) -> CallError {
        self.report(&rule::XTASK_05, what.to_owned(), "send result with completed, and error with failed");
        CallError::Protocol(what.to_owned())
    }

    fn task_cancelled(&mut self, id: CallId) {
        let told = self.task_mut(id).and_then(|task| task.told.clone());
        let message = told.and_then(|(_, message)| message);
        self.complete_task(id, Err(CallError::TaskCancelled { message }));
    }

    /// Reports a task of the wrong shape.
    fn report_task(&mut self, what: &str) {
        let expected = "send taskId, status, createdAt, lastUpdatedAt and the lifetime";
        self.report(&rule::TSK_13, what.to_owned(), expected);
    }
}

/// A task of this id.
fn read_task(text: &str, id: &str) -> Result<Task, String> {
    let task: Task = serde_json::from_str(text).map_err(|error| without_place(&error))?;
    if task.task_id != id {
        return Err("it tells of another task".to_owned());
    }
    check_task(&task).map(|()| task)
}

/// The result of a completed task, as the server wrote it.
fn result_of(text: &str) -> Option<Box<str>> {
    #[derive(Deserialize)]
    struct Outcome<'a> {
        #[serde(borrow)]
        result: Option<&'a RawValue>,
    }
    let outcome: Outcome<'_> = serde_json::from_str(text).ok()?;
    outcome.result.map(|result| result.get().into())
}

/// Whether the next request may succeed: a task outlives connections, and its server's moments of weakness.
fn may_pass(error: &CallError) -> bool {
    match error {
        CallError::TimedOut { .. } => true,
        CallError::Rpc(error) => error.code == code::INTERNAL_ERROR,
        CallError::Transport(TransportError::Unreachable(_) | TransportError::Broken(_)) => true,
        CallError::Transport(TransportError::Refused { status, .. }) => {
            matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
        }
        _ => false,
    }
}
