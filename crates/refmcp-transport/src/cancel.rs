//! Cancellation of a running call.

use std::pin::pin;
use std::sync::{Arc, OnceLock};

use refmcp_proto::time::Timestamp;
use tokio::sync::Notify;

/// A cancellation token with the time of the cancellation.
#[derive(Debug, Clone, Default)]
pub struct Cancellation {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    at: OnceLock<Timestamp>,
    waiting: Notify,
}

impl Cancellation {
    /// Cancels; only the first time counts.
    pub fn cancel(&self, now: Timestamp) {
        self.inner.at.get_or_init(|| now);
        self.inner.waiting.notify_waiters();
    }

    /// When it was cancelled, if it was.
    pub fn at(&self) -> Option<Timestamp> {
        self.inner.at.get().copied()
    }

    /// Waits for it.
    pub async fn cancelled(&self) {
        let mut told = pin!(self.inner.waiting.notified());
        // Queue up before looking: a cancellation between looking and waiting would otherwise go unnoticed.
        told.as_mut().enable();
        if self.at().is_none() {
            told.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn cancellation_before_and_after_waiting() {
        let cancel = Cancellation::default();
        let waiting = tokio::spawn({
            let cancel = cancel.clone();
            async move { cancel.cancelled().await }
        });
        tokio::task::yield_now().await;
        cancel.cancel(Timestamp::from_millis(1));
        cancel.cancel(Timestamp::from_millis(2));
        waiting.await.unwrap();
        cancel.cancelled().await;
        assert_eq!(cancel.at(), Some(Timestamp::from_millis(1)));
    }
}
