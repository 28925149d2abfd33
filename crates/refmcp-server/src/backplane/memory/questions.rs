//! Answers that are expected from the client.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use refmcp_proto::jsonrpc::RequestId;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::later;
use super::log::id_bytes;
use crate::backplane::{Answer, Answered};

/// What a question costs besides the bytes of its answer.
const QUESTION: usize = 128;

/// The questions of a session.
#[derive(Debug, Default)]
pub(super) struct Questions {
    asked: HashMap<RequestId, Question>,
    /// Made when somebody first waits; most sessions are never asked anything.
    answered: OnceLock<Arc<Notify>>,
}

#[derive(Debug)]
struct Question {
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

impl Question {
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

/// What a question costs.
pub(super) fn cost(id: &RequestId) -> usize {
    QUESTION + id_bytes(id)
}

/// What a question has come to, or when to look again.
#[derive(Debug)]
pub(super) enum Collected {
    Is(Answered, usize),
    Not(Instant, Arc<Notify>),
}

impl Questions {
    /// Whether this is waited for, or was not long ago.
    pub(super) fn knows(&self, id: &RequestId, now: Instant) -> bool {
        self.asked.get(id).is_some_and(|question| now < question.remembered)
    }

    /// Has a place for one more question, making it if it can; the second value is what that freed.
    pub(super) fn place(&mut self, id: &RequestId, most: usize, now: Instant) -> (bool, usize) {
        let mut freed = self.asked.remove_entry(id).map_or(0, |(id, question)| question.cost(&id));
        if self.asked.len() >= most {
            freed += self.sweep(now);
        }
        if self.asked.len() >= most {
            let over = self.asked.iter().filter(|(_, question)| question.is_over(now));
            let oldest = over.min_by_key(|(_, question)| question.remembered).map(|(id, _)| id.clone());
            if let Some((id, question)) = oldest.and_then(|id| self.asked.remove_entry(&id)) {
                freed += question.cost(&id);
            }
        }
        (self.asked.len() < most, freed)
    }

    /// Begins to wait for an answer.
    pub(super) fn ask(&mut self, id: &RequestId, within: Duration, late: Duration, now: Instant) {
        let deadline = later(now, within);
        let question = Question { deadline, remembered: later(deadline, late), state: State::Open };
        self.asked.insert(id.clone(), question);
    }

    /// What becomes of an answer that comes now; `None` when it is the one.
    pub(super) fn refusal(&self, id: &RequestId, now: Instant) -> Option<Answer> {
        match self.asked.get(id) {
            None => Some(Answer::Unknown),
            Some(question) if now >= question.remembered => Some(Answer::Unknown),
            Some(Question { deadline, state: State::Open, .. }) if now < *deadline => None,
            Some(_) => Some(Answer::Late),
        }
    }

    /// Takes an answer for which room was made.
    pub(super) fn answer(&mut self, id: &RequestId, body: Bytes) {
        if let Some(question) = self.asked.get_mut(id) {
            question.state = State::Answered(body);
            self.wake();
        }
    }

    /// Gives the answer, with what that freed, or says when to ask again.
    pub(super) fn collect(&mut self, id: &RequestId, now: Instant) -> Collected {
        let Some(question) = self.asked.get_mut(id).filter(|question| now < question.remembered) else {
            return Collected::Is(Answered::Unknown, 0);
        };
        match std::mem::replace(&mut question.state, State::Collected) {
            State::Answered(body) => {
                let freed = body.len();
                Collected::Is(Answered::Body(body), freed)
            }
            State::Collected => Collected::Is(Answered::Unknown, 0),
            State::Open => {
                question.state = State::Open;
                if now >= question.deadline {
                    return Collected::Is(Answered::Overdue, 0);
                }
                Collected::Not(question.deadline, self.answered.get_or_init(Arc::default).clone())
            }
        }
    }

    /// Forgets what nobody needs to know any more; gives what that freed.
    pub(super) fn sweep(&mut self, now: Instant) -> usize {
        let mut freed = 0;
        self.asked.retain(|id, question| {
            let keep = now < question.remembered;
            if !keep {
                freed += question.cost(id);
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
