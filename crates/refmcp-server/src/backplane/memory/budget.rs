//! How much is kept: for a session, and for all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is kept for all sessions together.
#[derive(Debug)]
pub(super) struct TotalBudget {
    held: AtomicUsize,
    cap: usize,
    /// What one session may keep.
    session_cap: usize,
}

impl TotalBudget {
    pub(super) fn new(cap: usize, session_cap: usize) -> Self {
        Self { held: AtomicUsize::new(0), cap, session_cap }
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
    held: usize,
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
    pub(super) fn new(total: Arc<TotalBudget>) -> Self {
        Self { held: 0, total }
    }

    /// What the session holds.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Takes room.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), NoRoom> {
        if self.held.saturating_add(bytes) > self.total.session_cap {
            return Err(NoRoom::InSession);
        }
        if !self.total.take(bytes) {
            return Err(NoRoom::InTotal(bytes));
        }
        self.held += bytes;
        Ok(())
    }

    /// Gives room back.
    pub(super) fn give(&mut self, bytes: usize) {
        self.held -= bytes;
        self.total.held.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for SessionBudget {
    fn drop(&mut self) {
        self.total.held.fetch_sub(self.held, Ordering::Relaxed);
    }
}
