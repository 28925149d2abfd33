//! The cache that makes client assertions single-use.

use std::collections::HashMap;

use refmcp_auth::Seconds;

use crate::respond::ErrorResponse;

/// Used assertion ids by signer. None is evicted while its assertion is valid: when the cache is full, the next assertion is
/// refused.
pub(crate) struct AssertionReplayCache {
    most: usize,
    each: usize,
    count: usize,
    /// The ids of each signer and when they expire.
    used: HashMap<String, HashMap<String, Seconds>>,
}

/// Why an assertion is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AssertionError {
    /// It was used before.
    Before,
    /// The cache is full, so its reuse could not be detected.
    Full,
}

impl AssertionError {
    /// The error response; `bad` makes that of an assertion which is not valid.
    pub(crate) fn answer(self, bad: impl Fn(&str) -> ErrorResponse) -> ErrorResponse {
        match self {
            Self::Before => bad("it was used before"),
            Self::Full => ErrorResponse::new("temporarily_unavailable", "too many assertions are in use"),
        }
    }
}

impl AssertionReplayCache {
    /// A cache with a total limit and a limit for each signer.
    pub(crate) fn new(most: usize, each: usize) -> Self {
        Self { most, each, count: 0, used: HashMap::new() }
    }

    /// Records the use of an assertion that is valid until a time.
    pub(crate) fn take(
        &mut self,
        signer: &str,
        name: &str,
        until: Seconds,
        now: Seconds,
    ) -> Result<(), AssertionError> {
        let names = self.used.get(signer);
        if names.and_then(|names| names.get(name)).is_some_and(|until| now < *until) {
            return Err(AssertionError::Before);
        }
        if self.is_full_for(signer) {
            self.drop_old(now);
        }
        if self.is_full_for(signer) {
            return Err(AssertionError::Full);
        }
        let before = self.used.entry(signer.to_owned()).or_default().insert(name.to_owned(), until);
        self.count += usize::from(before.is_none());
        Ok(())
    }

    fn is_full_for(&self, signer: &str) -> bool {
        self.count >= self.most || self.used.get(signer).is_some_and(|names| names.len() >= self.each)
    }

    fn drop_old(&mut self, now: Seconds) {
        self.used.retain(|_, names| {
            names.retain(|_, until| now < *until);
            !names.is_empty()
        });
        self.count = self.used.values().map(HashMap::len).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assertion_id_is_accepted_once_for_each_signer() {
        let mut once = AssertionReplayCache::new(10, 10);
        assert_eq!(once.take("a", "1", 100, 0), Ok(()));
        assert_eq!(once.take("a", "1", 100, 99), Err(AssertionError::Before));
        assert_eq!(once.take("b", "1", 100, 0), Ok(()));
        assert_eq!(once.take("a", "1", 200, 100), Ok(()), "another one of the same name, after its time");
        assert_eq!(once.count, 2);
    }

    #[test]
    fn a_full_replay_cache_refuses_assertions() {
        let mut once = AssertionReplayCache::new(6, 4);
        for name in ["1", "2", "3", "4"] {
            assert_eq!(once.take("a", name, 100, 0), Ok(()));
        }
        assert_eq!(once.take("a", "5", 100, 0), Err(AssertionError::Full));
        assert_eq!(once.take("a", "1", 100, 0), Err(AssertionError::Before), "and none is good twice");
        assert_eq!(once.take("b", "1", 100, 0), Ok(()), "others are not kept out");
        assert_eq!(once.take("b", "2", 200, 0), Ok(()));
        assert_eq!(once.take("c", "1", 200, 0), Err(AssertionError::Full));
        assert_eq!(once.take("c", "1", 200, 100), Ok(()));
        assert_eq!((once.count, once.used.len()), (2, 2));
    }
}
