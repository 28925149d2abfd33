//! Pending server requests (elicitation, sampling, roots): their deadlines, and responses until they are collected.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use refmcp_proto::jsonrpc::RequestId;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::later;
use super::log::id_bytes;
use crate::backplane::{DeliverOutcome, ResponseOutcome};

/// Bytes that a pending request costs besides its response.
const REQUEST: usize = 128;

/// The pending server requests of a session.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    asked: HashMap<RequestId, PendingRequest>,
    /// Made at the first wait; most sessions have no server requests.
    answered: OnceLock<Arc<Notify>>,
}

#[derive(Debug)]
struct PendingRequest {
    deadline: Instant,
    /// Until then an answer that does not count is late and not unknown; one that counts can be collected.
    remembered: Instant,
    state: State,
}

#[derive(Debug)]
enum State {
    Open,
    Answered(Bytes),
    Collected,
}

impl PendingRequest {
    fn is_over(&self, now: Instant) -> bool {
        match self.state {
            State::Open => now >= self.deadline,
            State::Answered(_) => false,
            State::Collected => true,
        }
    }

    fn cost(&self, id: &RequestId) -> usize {
        let body = match &self.state {
            State::Answered(body) => body.len(),
            State::Open | State::Collected => 0,
        };
        cost(id) + body
    }
}

/// Bytes that a pending request costs without its response.
pub(super) fn cost(id: &RequestId) -> usize {
    REQUEST + id_bytes(id)
}

/// The outcome of a pending request, or when to look again.
#[derive(Debug)]
pub(super) enum Collected {
    Is(ResponseOutcome, usize),
    Not(Instant, Arc<Notify>),
}

impl PendingRequests {
    /// Whether this is waited for, or was not long ago.
    pub(super) fn knows(&self, id: &RequestId, now: Instant) -> bool {
        self.asked.get(id).is_some_and(|pending| now < pending.remembered)
    }

    /// Has a place for one more pending, making it if it can; the second value is what that freed.
    pub(super) fn place(&mut self, id: &RequestId, most: usize, now: Instant) -> (bool, usize) {
        let mut freed = self.asked.remove_entry(id).map_or(0, |(id, pending)| pending.cost(&id));
        if self.asked.len() >= most {
            freed += self.sweep(now);
        }
        if self.asked.len() >= most {
            let over = self.asked.iter().filter(|(_, pending)| pending.is_over(now));
            let oldest = over.min_by_key(|(_, pending)| pending.remembered).map(|(id, _)| id.clone());
            if let Some((id, pending)) = oldest.and_then(|id| self.asked.remove_entry(&id)) {
                freed += pending.cost(&id);
            }
        }
        (self.asked.len() < most, freed)
    }

    /// Begins to wait for an answer.
    pub(super) fn ask(&mut self, id: &RequestId, within: Duration, late: Duration, now: Instant) {
        let deadline = later(now, within);
        let pending = PendingRequest { deadline, remembered: later(deadline, late), state: State::Open };
        self.asked.insert(id.clone(), pending);
    }

    /// What becomes of an answer that comes now; `None` when it is the one.
    pub(super) fn refusal(&self, id: &RequestId, now: Instant) -> Option<DeliverOutcome> {
        match self.asked.get(id) {
            None => Some(DeliverOutcome::Unknown),
            Some(pending) if now >= pending.remembered => Some(DeliverOutcome::Unknown),
            Some(PendingRequest { deadline, state: State::Open, .. }) if now < *deadline => None,
            Some(_) => Some(DeliverOutcome::Late),
        }
    }

    /// Takes an answer for which room was made.
    pub(super) fn answer(&mut self, id: &RequestId, body: Bytes) {
        if let Some(pending) = self.asked.get_mut(id) {
            pending.state = State::Answered(body);
            self.wake();
        }
    }

    /// Gives the answer, with what that freed, or says when to ask again.
    pub(super) fn collect(&mut self, id: &RequestId, now: Instant) -> Collected {
        let Some(pending) = self.asked.get_mut(id).filter(|pending| now < pending.remembered) else {
            return Collected::Is(ResponseOutcome::Unknown, 0);
        };
        match std::mem::replace(&mut pending.state, State::Collected) {
            State::Answered(body) => {
                let freed = body.len();
                Collected::Is(ResponseOutcome::Body(body), freed)
            }
            State::Collected => Collected::Is(ResponseOutcome::Unknown, 0),
            State::Open => {
                pending.state = State::Open;
                if now >= pending.deadline {
                    return Collected::Is(ResponseOutcome::Overdue, 0);
                }
                Collected::Not(pending.deadline, self.answered.get_or_init(Arc::default).clone())
            }
        }
    }

    /// Forgets expired requests; returns the bytes that this freed.
    pub(super) fn sweep(&mut self, now: Instant) -> usize {
        let mut freed = 0;
        self.asked.retain(|id, pending| {
            let keep = now < pending.remembered;
            if !keep {
                freed += pending.cost(id);
            }
            keep
        });
        freed
    }

    pub(super) fn wake(&self) {
        if let Some(answered) = self.answered.get() {
            answered.notify_waiters();
        }
    }
}
