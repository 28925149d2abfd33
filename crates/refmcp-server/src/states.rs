//! Sealed states that have come back: each opens a call once.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use parking_lot::Mutex;
use refmcp_proto::engine::RequestStateUse;
use refmcp_proto::time::Timestamp;

/// The states that were used and are not out of date yet.
///
/// Only a keyed hash is kept of each, since clients decide how long states are. Should two ever have the same, the
/// second is refused, which does no harm.
#[derive(Debug, Default)]
pub(crate) struct UsedStates {
    hashes: RandomState,
    used: Mutex<HashMap<u64, Timestamp>>,
}

/// Above this many, nothing is accepted until some are out of date: forgetting one would let it be used again.
const MOST: usize = 100_000;

impl UsedStates {
    /// Uses a state; `false` when it was used before.
    pub(crate) fn take(&self, state: &RequestStateUse, now: Timestamp) -> bool {
        let hash = self.hashes.hash_one(&state.sealed);
        let mut used = self.used.lock();
        if used.len() >= MOST {
            used.retain(|_, expires| *expires > now);
        }
        if used.len() >= MOST || used.contains_key(&hash) {
            return false;
        }
        used.insert(hash, state.expires);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_good_once() {
        let states = UsedStates::default();
        let state = RequestStateUse { sealed: "x".into(), expires: Timestamp::from_millis(10) };
        assert!(states.take(&state, Timestamp::from_millis(1)));
        assert!(!states.take(&state, Timestamp::from_millis(1)));
    }
}
