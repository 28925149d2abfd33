//! Tasks as replicas share them: their states and their calls, in a form that only replicas read.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

/// What a task begins with.
#[derive(Debug, Clone)]
pub struct NewTask {
    /// Its id, which cannot be guessed.
    pub id: Arc<str>,
    /// Whose limits it counts against, and in whose list it is.
    pub owner: Arc<str>,
    /// How far it has come.
    pub state: Bytes,
    /// Its call, for the replica that goes on with it.
    pub call: Bytes,
    /// For how long it is kept; `None` is for ever.
    pub ttl: Option<Duration>,
}

/// What is known of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRecord {
    /// How far it has come.
    pub state: Bytes,
    /// Counts its changes, from 1.
    pub version: u64,
}

/// A task in the list of its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskEntry {
    /// Its position: where the next page begins behind.
    pub position: u64,
    /// How far it has come.
    pub state: Bytes,
}

/// What became of a new task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateTaskOutcome {
    /// It is kept.
    Created,
    /// The id is in use.
    Taken,
    /// Its owner, or all together, have as many as they may, or no room is left.
    Full,
}

/// What became of a change of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdateTaskOutcome {
    /// It was made; this is the new version.
    Updated(u64),
    /// The task has another version; this is its record.
    Conflict(TaskRecord),
    /// No room is left for it; the task is as it was.
    Full,
    /// There is no such task, or its time is over.
    Unknown,
}
