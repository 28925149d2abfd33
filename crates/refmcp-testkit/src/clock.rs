//! A clock that is moved by hand, so that tests of patience need none.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use refmcp_proto::time::Timestamp;

/// A clock that stands still until it is told to move. Its clones show the same time.
#[derive(Debug, Clone)]
pub struct Clock {
    millis: Arc<AtomicU64>,
}

impl Clock {
    /// A clock that always starts at the same moment.
    #[must_use]
    pub fn new() -> Self {
        Self { millis: Arc::new(AtomicU64::new(1_800_000_000_000)) }
    }

    /// The time it shows.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.millis.load(Ordering::SeqCst))
    }

    /// Moves it forward.
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.millis.fetch_add(by, Ordering::SeqCst);
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_moves_only_when_told_and_clones_agree() {
        let clock = Clock::new();
        let other = clock.clone();
        let start = clock.now();
        assert_eq!(other.now(), start);
        clock.advance(Duration::from_secs(2));
        assert_eq!(other.now() - start, Duration::from_secs(2));
    }
}
