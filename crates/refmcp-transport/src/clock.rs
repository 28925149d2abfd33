//! The time that engines are told: starts at the wall clock, then only ever goes forward.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use refmcp_proto::time::Timestamp;
use tokio::time::Instant;

/// A clock that is right when it starts and monotonic after that, whatever happens to the wall clock.
///
/// It follows tokio's time, so tests can pause and move it.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
    wall: Timestamp,
}

impl Clock {
    /// A clock that shows the wall clock's time now.
    pub fn new() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Self { start: Instant::now(), wall: Timestamp::default() + since_epoch }
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.at(Instant::now())
    }

    /// The time that the clock shows at this instant.
    pub fn at(&self, instant: Instant) -> Timestamp {
        self.wall + instant.saturating_duration_since(self.start)
    }

    /// The instant at which the clock shows `time`.
    pub fn instant(&self, time: Timestamp) -> Instant {
        self.start + (time - self.wall)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}
