//! All sessions, and the room they share.

use std::sync::Arc;
use std::time::Duration;

use foldhash::HashMap;
use parking_lot::{Mutex, RwLock};
use refmcp_transport::{MemoryAccount, MemoryBudget};
use tokio::time::Instant;

use super::budget::{NoRoom, SessionBudget};
use super::session::{self, Session};
use crate::backplane::{BackplaneSettings, CreateOutcome, NewSession, SessionId};

/// How often room is made for the same thing, should others take it away each time.
const ATTEMPTS: usize = 8;

/// All sessions.
///
/// Locks are taken in this order: the turn to make room, the table, a session; never two sessions.
pub(super) struct Sessions {
    settings: Arc<BackplaneSettings>,
    open: RwLock<HashMap<SessionId, Arc<Entry>>>,
    /// What all of them keep.
    total: MemoryAccount,
    /// Held while room is made, so that it is not made twice.
    turn: Mutex<()>,
}

type Entry = Mutex<Session>;

/// Keeps a session open while a caller waits in it. Must not be dropped under the session's lock.
pub(super) struct Waiting(Arc<Entry>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.lock().end_wait(Instant::now());
    }
}

impl Sessions {
    pub(super) fn new(settings: Arc<BackplaneSettings>, memory: &MemoryBudget) -> Self {
        // With a limit of its own: the session that keeps most makes room, so no share has to be left free.
        let total = memory.account_with_limit(settings.total_bytes);
        Self { settings, open: RwLock::default(), total, turn: Mutex::default() }
    }

    pub(super) fn count(&self) -> usize {
        self.open.read().len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.total.held()
    }

    pub(super) fn create(&self, id: &SessionId, session: NewSession, idle: Duration) -> CreateOutcome {
        if session.facts.len() > self.settings.facts_bytes {
            return CreateOutcome::TooLarge;
        }
        let cost = session::cost(&session);
        let mut budget = SessionBudget::new(&self.total);
        let taken = (0..ATTEMPTS).any(|_| match budget.take(cost, self.settings.session_bytes) {
            Ok(()) => true,
            Err(NoRoom::InTotal(cost)) => {
                self.reclaim(cost);
                false
            }
            Err(NoRoom::InSession) => false,
        });
        if !taken {
            return CreateOutcome::Full;
        }
        if self.count() >= self.settings.sessions {
            self.sweep();
        }
        let now = Instant::now();
        let mut open = self.open.write();
        if open.get(id).is_some_and(|entry| entry.lock().is_alive(now)) {
            return CreateOutcome::Taken;
        }
        // One under the same id is over, and makes its place free.
        open.remove(id);
        if open.len() >= self.settings.sessions {
            return CreateOutcome::Full;
        }
        let session = Session::new(session, idle, self.settings.clone(), budget, now);
        open.insert(id.clone(), Arc::new(Mutex::new(session)));
        CreateOutcome::Created
    }

    /// Looks at a session, which counts as use of it.
    pub(super) fn used<T>(&self, id: &SessionId, act: impl FnOnce(&mut Session, Instant) -> T) -> Option<T> {
        self.found(id, |session, now| {
            session.touch(now);
            act(session, now)
        })
    }

    /// Looks at a session, which gives what it has or something to wait for; the session does not end while that is
    /// waited for.
    pub(super) fn awaited<T, W>(
        &self,
        id: &SessionId,
        act: impl FnOnce(&mut Session, Instant) -> Result<T, W>,
    ) -> Option<Result<T, (W, Waiting)>> {
        self.entered(id, |entry, session, now| {
            session.touch(now);
            act(session, now).map_err(|wait| {
                session.begin_wait();
                (wait, Waiting(entry.clone()))
            })
        })
    }

    /// Looks at a session.
    pub(super) fn found<T>(&self, id: &SessionId, act: impl FnOnce(&mut Session, Instant) -> T) -> Option<T> {
        self.entered(id, |_, session, now| act(session, now))
    }

    fn entered<T>(
        &self,
        id: &SessionId,
        act: impl FnOnce(&Arc<Entry>, &mut Session, Instant) -> T,
    ) -> Option<T> {
        let entry = self.open.read().get(id)?.clone();
        let now = Instant::now();
        let mut session = entry.lock();
        if !session.is_alive(now) {
            drop(session);
            self.remove(id, &entry);
            return None;
        }
        session.settle(now);
        Some(act(&entry, &mut session, now))
    }

    /// Does something that needs room, again if other sessions had to make it; `full` when they cannot. It counts as
    /// use of the session.
    pub(super) fn with_room<T>(
        &self,
        id: &SessionId,
        full: T,
        mut act: impl FnMut(&mut Session, Instant) -> Result<T, NoRoom>,
    ) -> Option<T> {
        self.with_room_unused(id, full, |session, now| {
            session.touch(now);
            act(session, now)
        })
    }

    /// The same, but it does not count as use.
    pub(super) fn with_room_unused<T>(
        &self,
        id: &SessionId,
        full: T,
        mut act: impl FnMut(&mut Session, Instant) -> Result<T, NoRoom>,
    ) -> Option<T> {
        for _ in 0..ATTEMPTS {
            match self.found(id, &mut act)? {
                Ok(done) => return Some(done),
                Err(NoRoom::InSession) => break,
                Err(NoRoom::InTotal(bytes)) => {
                    if !self.reclaim(bytes) {
                        break;
                    }
                }
            }
        }
        Some(full)
    }

    pub(super) fn close(&self, id: &SessionId) -> bool {
        let Some(entry) = self.open.write().remove(id) else { return false };
        let mut session = entry.lock();
        session.is_alive(Instant::now()) && session.close()
    }

    /// Gives back what is over.
    pub(super) fn sweep(&self) {
        let entries: Vec<_> =
            self.open.read().iter().map(|(id, entry)| (id.clone(), entry.clone())).collect();
        let now = Instant::now();
        for (id, entry) in entries {
            let mut session = entry.lock();
            if session.is_alive(now) {
                session.sweep(now);
            } else {
                drop(session);
                self.remove(&id, &entry);
            }
        }
    }

    /// Makes room among all sessions: first of what is over, then of those that keep most. `false` when they have none
    /// to give.
    fn reclaim(&self, bytes: usize) -> bool {
        let _turn = self.turn.lock();
        if self.total.has_room(bytes) {
            return true;
        }
        self.sweep();
        // Looking through all sessions takes a while, so there is room for some more afterwards.
        let goal = bytes.saturating_add(self.total.limit() / 16);
        let mut entries: Vec<_> =
            self.open.read().values().map(|entry| (entry.lock().budget.held(), entry.clone())).collect();
        entries.sort_unstable_by_key(|(held, _)| std::cmp::Reverse(*held));
        for (_, entry) in entries {
            if self.total.has_room(goal) {
                break;
            }
            let missing = self.total.held().saturating_add(goal).saturating_sub(self.total.limit());
            // Nothing is missing here where other holders have taken what the process may hold.
            entry.lock().free(if missing > 0 { missing } else { goal });
        }
        self.total.has_room(bytes)
    }

    /// Takes a session that is over out of the table, unless another has its id by now.
    fn remove(&self, id: &SessionId, over: &Arc<Entry>) {
        let mut open = self.open.write();
        if open.get(id).is_some_and(|entry| Arc::ptr_eq(entry, over)) {
            open.remove(id);
        }
    }
}
