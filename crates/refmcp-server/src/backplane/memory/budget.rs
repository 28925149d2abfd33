//! How much is kept: for a session, and for all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is kept for all sessions together.
#[derive(Debug)]
pub(super) struct TotalBudget {
    held: AtomicUsize,
    cap: usize,
}

impl TotalBudget {
    pub(super) fn new(cap: usize) -> Self {
        Self { held: AtomicUsize::new(0), cap }
    }

    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    pub(super) fn cap(&self) -> usize {
        self.cap
    }

    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.held().saturating_add(bytes) <= self.cap
    }

    fn take(&self, bytes: usize) -> bool {
        let within = |held: usize| held.checked_add(bytes).filter(|sum| *sum <= self.cap);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_ok()
    }
}

/// What is kept for one session. Whatever it holds is given back with it.
#[derive(Debug)]
pub(super) struct SessionBudget {
    held: AtomicUsize,
    cap: usize,
    total: Arc<TotalBudget>,
}

/// There is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoRoom {
    /// The session keeps as much as it may.
    InSession,
    /// All together do; so much was needed.
    InTotal(usize),
}

impl SessionBudget {
    pub(super) fn new(cap: usize, total: Arc<TotalBudget>) -> Self {
        Self { held: AtomicUsize::new(0), cap, total }
    }

    /// What the session holds, for others to compare; only its own lock makes it exact.
    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Takes room. Called under the session's lock.
    pub(super) fn take(&self, bytes: usize) -> Result<(), NoRoom> {
        if self.held().saturating_add(bytes) > self.cap {
            return Err(NoRoom::InSession);
        }
        if !self.total.take(bytes) {
            return Err(NoRoom::InTotal(bytes));
        }
        self.held.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Gives room back. Called under the session's lock.
    pub(super) fn give(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
        self.total.held.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for SessionBudget {
    fn drop(&mut self) {
        self.total.held.fetch_sub(self.held(), Ordering::Relaxed);
    }
}
