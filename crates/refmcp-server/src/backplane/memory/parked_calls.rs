//! Parked calls: calls that wait for a client's response, kept as data until they are claimed or expire.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::later;

/// What a waiting call costs besides its bytes.
const CALL: usize = 128;

/// The waiting calls of a session, and the keys of those that were claimed.
#[derive(Debug, Default)]
pub(super) struct ParkedCalls {
    calls: HashMap<Box<str>, Parked>,
}

#[derive(Debug)]
struct Parked {
    expires: Instant,
    /// `None` once it was claimed: the key stays used.
    state: Option<Bytes>,
}

impl Parked {
    fn cost(&self, key: &str) -> usize {
        CALL + key.len() + self.state.as_ref().map_or(0, Bytes::len)
    }
}

/// What a waiting call costs.
pub(super) fn cost(key: &str, state: &Bytes) -> usize {
    CALL + key.len() + state.len()
}

impl ParkedCalls {
    /// Whether a key was used.
    pub(super) fn knows(&self, key: &str, now: Instant) -> bool {
        self.calls.get(key).is_some_and(|parked| now < parked.expires)
    }

    /// Has a place for one more call, making it if it can; the second value is what that freed.
    pub(super) fn place(&mut self, key: &str, most: usize, now: Instant) -> (bool, usize) {
        let mut freed = self.calls.remove_entry(key).map_or(0, |(key, parked)| parked.cost(&key));
        if self.calls.len() >= most {
            freed += self.sweep(now);
        }
        if self.calls.len() >= most {
            // The key of a claimed call may go: it guards against retries, which come soon or not at all.
            let claimed = self.calls.iter().filter(|(_, parked)| parked.state.is_none());
            let oldest = claimed.min_by_key(|(_, parked)| parked.expires).map(|(key, _)| key.clone());
            if let Some((key, parked)) = oldest.and_then(|key| self.calls.remove_entry(&key)) {
                freed += parked.cost(&key);
            }
        }
        (self.calls.len() < most, freed)
    }

    /// Puts a call away for which there is a place and room.
    pub(super) fn park(&mut self, key: &str, state: Bytes, ttl: Duration, now: Instant) {
        self.calls.insert(key.into(), Parked { expires: later(now, ttl), state: Some(state) });
    }

    /// Takes a call out.
    pub(super) fn claim(&mut self, key: &str, now: Instant) -> Option<Bytes> {
        self.calls.get_mut(key).filter(|parked| now < parked.expires)?.state.take()
    }

    /// The keys of those that wait.
    pub(super) fn waiting(&self, now: Instant) -> Vec<Box<str>> {
        let waits = |parked: &Parked| parked.state.is_some() && now < parked.expires;
        self.calls.iter().filter(|(_, parked)| waits(parked)).map(|(key, _)| key.clone()).collect()
    }

    /// Forgets what has waited too long; gives what that freed.
    pub(super) fn sweep(&mut self, now: Instant) -> usize {
        let mut freed = 0;
        self.calls.retain(|key, parked| {
            let keep = now < parked.expires;
            if !keep {
                freed += parked.cost(key);
            }
            keep
        });
        freed
    }
}
