//! Tasks in the backplane: found for their principals, and changed by version.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use refmcp_proto::engine::{DetachedCall, InputOutcome, TaskState};
use refmcp_proto::jsonrpc::{RpcError, excerpt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::backplane::{
    Backplane, CreateTaskOutcome, NewTask, Result, TaskRecord, Unavailable, UpdateTaskOutcome,
};
use crate::replica_lease::ReplicaLease;
use crate::server::Server;

/// How often a change is tried that others come before.
const ATTEMPTS: usize = 64;

/// How often it is looked whether the process is still alive that runs a task.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// The tasks of a server.
pub(crate) struct TaskStore<'a> {
    server: &'a Server,
}

/// A task as it was read.
pub(crate) struct StoredTask {
    pub(crate) state: TaskState,
    pub(super) version: u64,
}

impl<'a> TaskStore<'a> {
    pub(crate) fn of(server: &'a Server) -> Self {
        Self { server }
    }

    fn backplane(&self) -> &Arc<dyn Backplane> {
        self.server.backplane()
    }

    pub(super) async fn create(
        &self,
        state: &TaskState,
        call: &DetachedCall,
        owner: Arc<str>,
    ) -> Result<CreateTaskOutcome> {
        let task = NewTask {
            id: state.id().clone(),
            owner,
            state: write(state)?,
            call: write(call)?,
            ttl: state.remaining(self.server.now()),
        };
        self.backplane().create_task(task).await
    }

    /// The task of this id, whosever it is.
    pub(super) async fn read(&self, id: &str) -> Result<Option<StoredTask>> {
        self.backplane().task(id).await?.map(|record| StoredTask::read(&record)).transpose()
    }

    /// The task of this id, for a requestor with this principal. One of another principal is as unknown as none.
    pub(crate) async fn find(
        &self,
        id: &str,
        principal: Option<&str>,
    ) -> std::result::Result<StoredTask, RpcError> {
        let found = match self.read(id).await {
            Ok(Some(task)) if self.runs_elsewhere(&task.state) => self.fail_if_orphaned(task).await,
            found => found,
        };
        let found = found.map_err(|error| unavailable(&error))?;
        found.filter(|task| task.state.owner() == principal).ok_or_else(|| unknown_task(id))
    }

    /// Whether another process runs a task.
    fn runs_elsewhere(&self, state: &TaskState) -> bool {
        state.runner().is_some_and(|runner| !self.server.value::<ReplicaLease>().is(runner))
    }

    /// A task of another process, which fails where that one is gone.
    async fn fail_if_orphaned(&self, task: StoredTask) -> Result<Option<StoredTask>> {
        let Some(runner) = task.state.runner() else { return Ok(Some(task)) };
        if self.backplane().is_replica_there(runner).await? {
            return Ok(Some(task));
        }
        let error =
            "the process that ran the task has stopped, and how far it had come is not known; call again";
        let fail = |state: &mut TaskState| {
            let is_there = state.runner() == Some(runner);
            is_there.then(|| state.fail(self.server.now(), RpcError::internal(error)))
        };
        self.change(task.state.id(), fail).await?;
        self.read(task.state.id()).await
    }

    /// The call of a task; `None` where it is gone, or over.
    pub(super) async fn call(&self, id: &str) -> Result<Option<DetachedCall>> {
        self.backplane().task_call(id).await?.as_deref().map(read).transpose()
    }

    /// A page of the tasks of an owner behind this position, and where the next one begins behind, if there is one.
    pub(crate) async fn page(
        &self,
        owner: &str,
        after: u64,
        size: usize,
    ) -> Result<(Vec<TaskState>, Option<u64>)> {
        let mut entries = self.backplane().tasks(owner, after, size + 1).await?;
        let more = entries.len() > size;
        entries.truncate(size);
        let last = entries.last().filter(|_| more).map(|entry| entry.position);
        let mut states = Vec::with_capacity(entries.len());
        for entry in entries {
            let task = StoredTask { state: read(&entry.state)?, version: 0 };
            let found = match self.runs_elsewhere(&task.state) {
                true => self.fail_if_orphaned(task).await?,
                false => Some(task),
            };
            states.extend(found.map(|task| task.state));
        }
        Ok((states, last))
    }

    /// Waits until a task is another than it was read, or is worth a look: its process may be gone.
    pub(crate) async fn changed(&self, task: &StoredTask) -> Result<()> {
        let changed = self.backplane().task_changed(task.state.id(), task.version);
        match self.runs_elsewhere(&task.state) {
            true => timeout(LOOK_INTERVAL, changed).await.unwrap_or(Ok(())),
            false => changed.await,
        }
    }

    /// Gives responses to a task; whether its handler is to run again, in this process. `None` where nothing has changed.
    pub(crate) async fn respond(
        &self,
        id: &str,
        responses: BTreeMap<String, InputOutcome>,
    ) -> Result<Option<bool>> {
        let runner = self.server.value::<ReplicaLease>().announce(self.server).await?;
        let respond = |state: &mut TaskState, call: &mut DetachedCall| {
            let is_ready = state.respond(self.server.now(), call, responses.clone())?;
            state.run_at(runner.clone());
            Some(is_ready)
        };
        Ok(self.change_call(id, respond).await?.and_then(|(is_ready, _)| is_ready))
    }

    /// Changes the state of a task; `None` from the function leaves it as it is. Gives what the function returned last, and
    /// the task; `None` where there is no such task.
    pub(crate) async fn change<T>(
        &self,
        id: &str,
        mut change: impl FnMut(&mut TaskState) -> Option<T>,
    ) -> Result<Option<(Option<T>, TaskState)>> {
        self.change_with(id, |state, _| change(state), |_| CallChange::None).await
    }

    /// The same with its call; the last function says what becomes of that.
    pub(crate) async fn change_call<T>(
        &self,
        id: &str,
        change: impl FnMut(&mut TaskState, &mut DetachedCall) -> Option<T>,
    ) -> Result<Option<(Option<T>, TaskState)>> {
        let mut change = change;
        let change = |state: &mut TaskState, call: Option<&mut DetachedCall>| change(state, call?);
        self.change_with(id, change, |_| CallChange::Written).await
    }

    async fn change_with<T>(
        &self,
        id: &str,
        mut change: impl FnMut(&mut TaskState, Option<&mut DetachedCall>) -> Option<T>,
        keep: impl Fn(&TaskState) -> CallChange,
    ) -> Result<Option<(Option<T>, TaskState)>> {
        for _ in 0..ATTEMPTS {
            let Some(mut task) = self.read(id).await? else { return Ok(None) };
            let keep = keep(&task.state);
            let mut call = match keep {
                CallChange::None => None,
                CallChange::Written => self.call(id).await?,
            };
            let Some(returned) = change(&mut task.state, call.as_mut()) else {
                return Ok(Some((None, task.state)));
            };
            let call = match call {
                _ if task.state.is_over() => Some(Bytes::new()),
                None => None,
                Some(call) => Some(write(&call)?),
            };
            let updated = self.backplane().update_task(id, task.version, write(&task.state)?, call).await?;
            match updated {
                UpdateTaskOutcome::Updated(_) => return Ok(Some((Some(returned), task.state))),
                UpdateTaskOutcome::Conflict(_) => {}
                UpdateTaskOutcome::Unknown => return Ok(None),
                UpdateTaskOutcome::Full => return Err(Unavailable::new(NoRoomForTask)),
            }
        }
        Err(Unavailable::new("others change the task all the time"))
    }
}

/// What becomes of the call when a task changes.
enum CallChange {
    None,
    Written,
}

/// There is no room for what a task came to.
#[derive(Debug, thiserror::Error)]
#[error("no room is left for the task")]
pub(super) struct NoRoomForTask;

impl StoredTask {
    fn read(record: &TaskRecord) -> Result<Self> {
        Ok(Self { state: read(&record.state)?, version: record.version })
    }
}

/// The error for an id that the requestor has no task under.
pub(crate) fn unknown_task(id: &str) -> RpcError {
    RpcError::invalid_params(format!("unknown task: {}; it may have expired", excerpt(id)))
}

/// The error where the backplane fails.
pub(crate) fn unavailable(error: &Unavailable) -> RpcError {
    tracing::warn!(error = error as &dyn std::error::Error, "a task cannot be reached");
    RpcError::internal("tasks cannot be reached now; try again later")
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    // The text is checked as a whole, which is faster than string by string.
    let text = std::str::from_utf8(bytes).map_err(Unavailable::new)?;
    serde_json::from_str(text).map_err(Unavailable::new)
}

fn write(value: &impl Serialize) -> Result<Bytes> {
    // What is kept long keeps no more than its bytes.
    serde_json::to_vec(value).map(|text| text.into_boxed_slice().into()).map_err(Unavailable::new)
}
