//! Sealed states that have come back: each opens a call once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use refmcp_proto::engine::StateUse;
use refmcp_proto::time::Timestamp;

/// The states that were used and are not out of date yet.
#[derive(Debug, Default)]
pub(crate) struct UsedStates {
    used: Mutex<HashMap<Box<str>, Timestamp>>,
}

/// Above this many, nothing is accepted until some are out of date: forgetting one would let it be used again.
const MOST: usize = 100_000;

impl UsedStates {
    /// Uses a state; `false` when it was used before.
    pub(crate) fn take(&self, state: &StateUse, now: Timestamp) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() >= MOST {
            used.retain(|_, expires| *expires > now);
        }
        if used.len() >= MOST || used.contains_key(&state.sealed) {
            return false;
        }
        used.insert(state.sealed.clone(), state.expires);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_good_once() {
        let states = UsedStates::default();
        let state = StateUse { sealed: "x".into(), expires: Timestamp::from_millis(10) };
        assert!(states.take(&state, Timestamp::from_millis(1)));
        assert!(!states.take(&state, Timestamp::from_millis(1)));
    }
}
