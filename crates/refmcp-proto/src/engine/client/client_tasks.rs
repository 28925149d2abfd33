//! Requests of the server that the client runs as tasks (2025-11-25): the client is their receiver, and the server asks for
//! their states and outcomes.
//!
//! A task is the connection's: it ends with the session, and its handler with it. What is kept is counted, in number and in
//! bytes, and expires.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::ClientEngine;
use super::handshake::Phase;
use super::io::{ClientOutput, ServerRequest, ServerRequestId};
use super::server_requests::{PendingRequest, with_related_task};
use crate::engine::{CallId, DetachedOutcome, TaskState, TaskTimes};
use crate::jsonrpc::{Request, RequestId, RpcError, excerpt, read_member};
use crate::model::{
    Extra, InputRequest, JsonObject, PaginatedParams, RelatedTask, Task, TaskMetadata, TaskParams,
};
use crate::revision::{NotificationMethod, Tasks, downgrade};
use crate::time::Timestamp;

/// Tasks of one page of `tasks/list`.
const PAGE: usize = 50;
/// Requests for the outcome of one task that may wait.
const MAX_WAITING: usize = 8;
/// The shortest lifetime that is granted.
const MIN_TTL: Duration = Duration::from_secs(1);
/// Bytes of memory that a task takes beside its outcome, or a little more.
const TASK_BYTES: usize = 2048;

/// The tasks that the client runs, by numbers in the order of their creation.
#[derive(Debug, Default)]
pub(super) struct ClientTasks {
    last: u64,
    kept: BTreeMap<u64, ClientTask>,
    /// Bytes of all that is kept.
    bytes: usize,
}

#[derive(Debug)]
struct ClientTask {
    state: TaskState,
    /// What the handler of the host responds to, while it runs.
    request: Option<ServerRequestId>,
    /// The call during which the server made the request.
    call: Option<CallId>,
    /// The requests for the outcome that wait for it.
    waiting: Vec<RequestId>,
    /// What it counts for.
    bytes: usize,
}

impl ClientTasks {
    fn number_of(&self, id: &str) -> Option<u64> {
        self.kept.iter().find(|(_, task)| **task.state.id() == *id).map(|(number, _)| *number)
    }

    fn remove(&mut self, number: u64) -> Option<ClientTask> {
        let task = self.kept.remove(&number)?;
        self.bytes = self.bytes.saturating_sub(task.bytes);
        Some(task)
    }

    /// Whether a request for an outcome waits under this id.
    pub(super) fn waits(&self, id: &RequestId) -> bool {
        self.kept.values().any(|task| task.waiting.contains(id))
    }

    /// Forgets a request for an outcome, whose task goes on; whether there was one.
    pub(super) fn stop_waiting(&mut self, id: &RequestId) -> bool {
        let before: usize = self.kept.values().map(|task| task.waiting.len()).sum();
        self.kept.values_mut().for_each(|task| task.waiting.retain(|waiting| waiting != id));
        let after: usize = self.kept.values().map(|task| task.waiting.len()).sum();
        after < before
    }

    /// Forgets all tasks: the session has ended.
    pub(super) fn clear(&mut self) {
        self.kept.clear();
        self.bytes = 0;
    }
}

/// A request about a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskQuery {
    Get,
    Result,
    Cancel,
    List,
}

impl ClientEngine {
    /// Whether this request becomes a task where the server asks for one.
    pub(super) fn runs_as_task(&self, request: &InputRequest) -> bool {
        self.kind_of_tasks() == Tasks::Experimental
            && self.config.tasks.is_some()
            && self.config.capabilities.runs_as_task(request)
    }

    /// Whether the client answers requests about tasks.
    pub(super) fn serves_tasks(&self) -> bool {
        self.kind_of_tasks() == Tasks::Experimental
            && self.config.tasks.is_some()
            && self.config.capabilities.tasks.is_some()
    }

    /// Makes a request of the server a task, and hands it to the host.
    pub(super) fn create_client_task(
        &mut self,
        now: Timestamp,
        call: Option<CallId>,
        related: Option<RelatedTask>,
        (input, wanted): (InputRequest, &TaskMetadata),
    ) -> Result<Value, RpcError> {
        self.expire_client_tasks(now);
        let (Phase::Open(server), Some(config)) = (&self.phase, &self.config.tasks) else {
            return Err(RpcError::internal("the session is not open"));
        };
        let (most, most_bytes) = (config.max_tasks, config.max_bytes);
        if self.client_tasks.kept.len() >= most {
            let what = format!("{most} tasks are kept, and no more; try again when one has expired");
            return Err(RpcError::internal(what));
        }
        let Some(id) = config.ids.next() else {
            return Err(RpcError::internal("no id can be made for the task: there are no random numbers"));
        };
        let bytes = TASK_BYTES + id.len();
        if self.client_tasks.bytes + bytes > most_bytes {
            return Err(RpcError::internal(format!("tasks are kept in {most_bytes} bytes, which are full")));
        }
        if self.client_tasks.number_of(&id).is_some() {
            return Err(RpcError::internal("no new id was found for the task; try again"));
        }
        let ttl =
            wanted.ttl.map_or(config.ttl, Duration::from_millis).clamp(MIN_TTL, config.max_ttl.max(MIN_TTL));
        let times = TaskTimes { ttl: Some(ttl), poll_interval: config.poll_interval };
        let state = TaskState::of_revision(now, id, None, server.revision, times);
        let created = json!({ "task": members(&state.task()) });
        self.client_tasks.last += 1;
        let (number, request) = (self.client_tasks.last, self.next_server_request());
        self.wake_at(now + ttl);
        let task = ClientTask { state, request: Some(request), call, waiting: Vec::new(), bytes };
        self.client_tasks.bytes += bytes;
        self.client_tasks.kept.insert(number, task);
        self.server_requests.insert(request, PendingRequest::ClientTask(number));
        self.outputs.push_back(ClientOutput::Request(ServerRequest { id: request, call, request: input }));
        Ok(with_related_task(created, related))
    }

    /// A request of the server about tasks of the client. No response is due yet where the result is awaited.
    pub(super) fn answer_task_query(
        &mut self,
        now: Timestamp,
        query: TaskQuery,
        request: &Request<'_>,
    ) -> Result<Option<Value>, RpcError> {
        self.expire_client_tasks(now);
        if query == TaskQuery::List {
            let params: PaginatedParams = read(request)?;
            return self.list_client_tasks(params.cursor.as_deref()).map(Some);
        }
        let params: TaskParams = read(request)?;
        let number = self.client_tasks.number_of(&params.task_id).ok_or_else(|| unknown(&params.task_id))?;
        let Some(task) = self.client_tasks.kept.get_mut(&number) else {
            return Err(unknown(&params.task_id));
        };
        match query {
            TaskQuery::Result => match outcome(&task.state) {
                Some(outcome) => outcome.map(Some),
                None if task.waiting.len() >= MAX_WAITING => {
                    let what = format!("{MAX_WAITING} requests for the result of this task wait already");
                    Err(RpcError::internal(what))
                }
                None => {
                    task.waiting.push(request.id.clone());
                    Ok(None)
                }
            },
            TaskQuery::Cancel => {
                if !task.state.cancel(now, "cancelled by the server") {
                    let status = task.state.status();
                    let id = excerpt(task.state.id());
                    let what = format!("task {id} is {} already and cannot be cancelled", status.as_str());
                    return Err(RpcError::invalid_params(what));
                }
                let task = Value::Object(members(&task.state.task()));
                self.stop_client_task(number);
                self.answer_waiting(number);
                Ok(Some(task))
            }
            TaskQuery::Get | TaskQuery::List => Ok(Some(Value::Object(members(&task.state.task())))),
        }
    }

    fn list_client_tasks(&self, cursor: Option<&str>) -> Result<Value, RpcError> {
        let after = match cursor.map(str::parse::<u64>) {
            None => 0,
            Some(Ok(after)) if after > 0 && after <= self.client_tasks.last => after,
            Some(_) => {
                let cursor = excerpt(cursor.unwrap_or_default());
                let what = format!("unknown cursor {cursor}: send the nextCursor of a page, or none");
                return Err(RpcError::invalid_params(what));
            }
        };
        let mut rest = self.client_tasks.kept.range(after + 1..);
        let page: Vec<(u64, Value)> = rest
            .by_ref()
            .take(PAGE)
            .map(|(number, task)| (*number, Value::Object(members(&task.state.task()))))
            .collect();
        let next = page.last().filter(|_| rest.next().is_some()).map(|(number, _)| number.to_string());
        let tasks: Vec<Value> = page.into_iter().map(|(_, task)| task).collect();
        let mut listed = JsonObject::from_iter([("tasks".to_owned(), Value::Array(tasks))]);
        listed.extend(next.map(|next| ("nextCursor".to_owned(), next.into())));
        Ok(Value::Object(listed))
    }

    /// The host has responded to the request of a task.
    pub(super) fn finish_client_task(
        &mut self,
        now: Timestamp,
        number: u64,
        response: Result<Value, RpcError>,
    ) {
        let most = self.config.tasks.as_ref().map_or(0, |config| config.max_bytes);
        let kept = self.client_tasks.bytes;
        let Some(task) = self.client_tasks.kept.get_mut(&number) else { return };
        task.request = None;
        let outcome = match response {
            Ok(result @ Value::Object(_)) => DetachedOutcome::Done(result),
            Ok(_) => {
                DetachedOutcome::Failed(RpcError::internal("the application gave no object as the result"))
            }
            Err(error) => DetachedOutcome::Failed(error),
        };
        let before = task.state.clone();
        task.state.finish(now, outcome);
        let mut bytes = task.state.outcome_bytes();
        if kept + bytes > most {
            let error = format!(
                "the outcome has {bytes} bytes, for which there is no room among the {most} of tasks"
            );
            task.state = before;
            task.state.finish(now, DetachedOutcome::Failed(RpcError::internal(error)));
            bytes = task.state.outcome_bytes();
        }
        task.bytes += bytes;
        let call = task.call;
        self.client_tasks.bytes += bytes;
        self.tell_status(number);
        self.answer_waiting(number);
        if let Some(call) = call {
            self.restart_idle_timeout(now, call);
        }
    }

    /// Cancels the tasks that were created during a call which is given up: what they ask is no longer wanted.
    pub(super) fn cancel_client_tasks_of(&mut self, now: Timestamp, call: CallId) {
        let is_of = |task: &ClientTask| task.call == Some(call) && task.request.is_some();
        let running: Vec<u64> = self
            .client_tasks
            .kept
            .iter()
            .filter(|(_, task)| is_of(task))
            .map(|(number, _)| *number)
            .collect();
        for number in running {
            if let Some(task) = self.client_tasks.kept.get_mut(&number) {
                task.state.cancel(now, "the call was given up in which it was created");
            }
            self.stop_client_task(number);
            self.tell_status(number);
            self.answer_waiting(number);
        }
    }

    /// Tells the server that a task is over, though it has not asked.
    fn tell_status(&mut self, number: u64) {
        let Some(task) = self.client_tasks.kept.get(&number) else { return };
        let params = members(&task.state.task());
        if let Phase::Open(server) = &self.phase {
            let rules = server.rules();
            self.send_notification(rules, NotificationMethod::TaskStatus.name(), Some(&params));
        }
    }

    /// Forgets the tasks whose time is over, and sees to it that the next one is forgotten.
    pub(super) fn expire_client_tasks(&mut self, now: Timestamp) {
        let is_over = |task: &ClientTask| task.state.expires().is_some_and(|expires| expires <= now);
        let over: Vec<u64> = self
            .client_tasks
            .kept
            .iter()
            .filter(|(_, task)| is_over(task))
            .map(|(number, _)| *number)
            .collect();
        for number in over {
            self.stop_client_task(number);
            let Some(task) = self.client_tasks.remove(number) else { continue };
            let error = unknown(task.state.id());
            for id in task.waiting {
                self.send_response(&id, Err(&error));
            }
        }
        let next = self.client_tasks.kept.values().filter_map(|task| task.state.expires()).min();
        if let Some(next) = next {
            self.wake_at(next);
        }
    }

    /// Drops the handler of a task, if it runs.
    fn stop_client_task(&mut self, number: u64) {
        let running = self.client_tasks.kept.get_mut(&number).and_then(|task| task.request.take());
        if let Some(request) = running {
            self.server_requests.remove(&request);
            self.outputs.push_back(ClientOutput::RequestCancelled(request));
        }
    }

    /// Answers the requests that wait for the outcome of a task.
    fn answer_waiting(&mut self, number: u64) {
        let Some(task) = self.client_tasks.kept.get_mut(&number) else { return };
        let waiting = std::mem::take(&mut task.waiting);
        let Some(outcome) = outcome(&task.state).filter(|_| !waiting.is_empty()) else { return };
        for id in waiting {
            self.send_response(&id, outcome.as_ref());
        }
    }
}

/// The outcome of a task, once it is over: its result names the task, its error is as it is.
fn outcome(state: &TaskState) -> Option<Result<Value, RpcError>> {
    let related = || RelatedTask::new(&**state.id());
    Some(state.outcome()?.map(|result| with_related_task(Value::Object(result), Some(related()))))
}

/// The members of a task as the revision has them.
fn members(task: &Task) -> Extra {
    downgrade::experimental_task(task)
}

fn unknown(id: &str) -> RpcError {
    RpcError::invalid_params(format!(
        "unknown task {}: it has expired, or never was in this session",
        excerpt(id)
    ))
}

fn read<T: DeserializeOwned>(request: &Request<'_>) -> Result<T, RpcError> {
    read_member("params", request.params.text.unwrap_or("{}")).map_err(RpcError::invalid_params)
}

/// What a request of the server asks for by its member `task`.
pub(super) fn read_task(member: &Value) -> Result<TaskMetadata, RpcError> {
    let text = member.to_string();
    read_member("params.task", &text).map_err(RpcError::invalid_params)
}

/// The source of the ids of tasks: each has to be unguessable, and another one.
#[derive(Clone)]
pub struct TaskIds(Arc<MakeId>);

type MakeId = dyn Fn() -> Option<Arc<str>> + Send + Sync;

impl TaskIds {
    /// A source by this function, such as 128 random bits as text. Where it has none, a task is refused.
    pub fn new(next: impl Fn() -> Option<Arc<str>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(next))
    }

    fn next(&self) -> Option<Arc<str>> {
        (self.0)()
    }
}

impl std::fmt::Debug for TaskIds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskIds").finish_non_exhaustive()
    }
}
