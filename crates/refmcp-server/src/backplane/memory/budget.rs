//! How much is kept: for a session, and for all of them.

use refmcp_transport::{MemoryAccount, MemoryReservation};

/// What is kept for one session, in the account of all of them. It is given back with the session.
pub(super) struct SessionBudget(MemoryReservation);

/// There is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoRoom {
    /// The session keeps as much as it may.
    InSession,
    /// All together do; so much was needed.
    InTotal(usize),
}

impl SessionBudget {
    pub(super) fn new(total: &MemoryAccount) -> Self {
        Self(total.reservation())
    }

    /// What the session holds.
    pub(super) fn held(&self) -> usize {
        self.0.bytes()
    }

    /// Takes room, of which a session may have at most so much.
    pub(super) fn take(&mut self, bytes: usize, most: usize) -> Result<(), NoRoom> {
        if self.held().saturating_add(bytes) > most {
            return Err(NoRoom::InSession);
        }
        self.0.try_grow(bytes).map_err(|_| NoRoom::InTotal(bytes))
    }

    /// Gives room back.
    pub(super) fn give(&mut self, bytes: usize) {
        self.0.shrink(bytes);
    }
}
