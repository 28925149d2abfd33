//! Tasks: calls of tools that go on after their first response. A task is kept in the backplane, under an id that cannot be
//! guessed; it belongs to a principal and to no session. Its ttl is granted by `start` and enforced by the backplane, which
//! drops it and all its bytes.
//!
//! | file | what it does |
//! |---|---|
//! | `start` | decides whether a call becomes a task, and makes it one |
//! | `store` | reads and changes tasks in the backplane |
//! | `running` | runs the handler of a task until it needs input, ends or is cancelled |
//! | `input_askers` | which `tasks/result` asks the client for what a task needs (2025-11-25) |
//! | `listening` | notifies `subscriptions/listen` streams of changes |

mod input_askers;
mod listening;
mod running;
mod start;
mod store;

use std::time::Duration;

pub(crate) use input_askers::{InputAskers, withdraw_when_needless};
pub(crate) use listening::listen;
pub(crate) use running::{RunningTask, related_task, resume_task};
pub(crate) use start::random_text;
pub use start::undeclare_list;
pub(crate) use start::{TaskStart, can_start, create, decide, declare, owner_key};
pub(crate) use store::{StoredTask, TaskStore, unavailable, unknown_task};

/// How tasks of a server are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskOptions {
    /// For how long a task is kept, from its creation, where its requestor does not say.
    pub ttl: Duration,
    /// For how long a requestor can have a task kept.
    pub max_ttl: Duration,
    /// How often requestors are told to ask for the status.
    pub poll_interval: Duration,
}

impl Default for TaskOptions {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(3600),
            max_ttl: Duration::from_secs(24 * 3600),
            poll_interval: Duration::from_millis(500),
        }
    }
}

impl TaskOptions {
    /// Sets for how long a task is kept where its requestor does not say; 2026-07-28 has no way to say it.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets for how long a requestor can have a task kept.
    #[must_use]
    pub fn max_ttl(mut self, ttl: Duration) -> Self {
        self.max_ttl = ttl;
        self
    }

    /// Sets how often requestors are told to ask for the status.
    #[must_use]
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = interval;
        self
    }
}
