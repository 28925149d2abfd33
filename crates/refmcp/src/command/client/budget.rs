//! The time that a command has: `--timeout` and `--total-timeout` hold for all that the server is waited for, from the
//! connection to the last answer. The time in which a person types or decides does not count.

use std::future::Future;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use refmcp_client::{CallError, Error};

use crate::args::SharedOptions;

/// What is left of a command's time.
pub(crate) struct Budget {
    timeout: Duration,
    total: Duration,
    spent: Mutex<Duration>,
}

impl Budget {
    /// The time that the options give.
    pub(crate) fn new(shared: &SharedOptions) -> Self {
        Self { timeout: shared.timeout, total: shared.total_timeout, spent: Mutex::default() }
    }

    /// Begins anew, for another command over the same connection.
    pub(crate) fn restart(&self) {
        *self.spent.lock() = Duration::ZERO;
    }

    /// How long the server may be silent from now on.
    pub(crate) fn silence(&self) -> Duration {
        self.timeout.min(self.total).saturating_sub(self.spent())
    }

    /// How long everything may take from now on.
    pub(crate) fn total(&self) -> Duration {
        self.total.saturating_sub(self.spent())
    }

    fn spent(&self) -> Duration {
        *self.spent.lock()
    }

    /// Waits for the server, on the command's time.
    pub(crate) async fn spend<T>(&self, waiting: impl Future<Output = T>) -> T {
        let began = Instant::now();
        let done = waiting.await;
        *self.spent.lock() += began.elapsed();
        done
    }

    /// Waits for the server no longer than it may be silent.
    pub(crate) async fn within<T>(
        &self,
        waiting: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let left = self.silence();
        let done = self.spend(tokio::time::timeout(left, waiting)).await;
        done.unwrap_or_else(|_| Err(CallError::TimedOut { after_millis: millis(left) }.into()))
    }

    /// What is said when the time is over.
    pub(crate) fn over(&self) -> String {
        format!("{}; {} SECONDS gives the server more time", self.no_answer(), self.limit().0)
    }

    /// The same, where more time would not help.
    pub(crate) fn no_answer(&self) -> String {
        format!("no answer within {} s", self.limit().1.as_secs_f64())
    }

    /// How long the server is waited for, and which option says so.
    pub(crate) fn allowance(&self) -> String {
        let (option, limit) = self.limit();
        format!("up to {} s in all ({option})", limit.as_secs_f64())
    }

    /// The option whose time is over, and that time.
    fn limit(&self) -> (&'static str, Duration) {
        if self.spent() >= self.total || self.total <= self.timeout {
            ("--total-timeout", self.total)
        } else {
            ("--timeout", self.timeout)
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
