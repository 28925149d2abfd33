//! Keys that were used up.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use tokio::time::Instant;

use super::later;
use crate::backplane::OnceOutcome;

/// The keys that were used and are still remembered.
#[derive(Debug, Default)]
pub(super) struct Keys {
    used: HashSet<[u8; 32]>,
    /// The same, the first to be forgotten first.
    by_expiry: BTreeSet<(Instant, [u8; 32])>,
}

impl Keys {
    pub(super) fn once(&mut self, key: [u8; 32], ttl: Duration, most: usize, now: Instant) -> OnceOutcome {
        self.sweep(now);
        if self.used.contains(&key) {
            return OnceOutcome::Again;
        }
        if self.used.len() >= most {
            return OnceOutcome::Full;
        }
        self.used.insert(key);
        self.by_expiry.insert((later(now, ttl), key));
        OnceOutcome::First
    }

    pub(super) fn sweep(&mut self, now: Instant) {
        while let Some((expires, key)) = self.by_expiry.first().copied() {
            if now < expires {
                break;
            }
            self.by_expiry.pop_first();
            self.used.remove(&key);
        }
        if self.used.is_empty() {
            // After a flood even the empty table would stay large.
            self.used.shrink_to_fit();
        }
    }
}
