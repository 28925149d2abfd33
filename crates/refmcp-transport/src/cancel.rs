//! Telling work that nobody wants its outcome any more.

use std::sync::{Arc, OnceLock};

use refmcp_proto::time::Timestamp;
use tokio_util::sync::CancellationToken;

/// A cancellation: seen by whoever works on a call, with the time it came.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    token: CancellationToken,
    at: Arc<OnceLock<Timestamp>>,
}

impl Cancel {
    /// Cancels; only the first time counts.
    pub fn cancel(&self, now: Timestamp) {
        self.at.get_or_init(|| now);
        self.token.cancel();
    }

    /// When it was cancelled, if it was.
    pub fn at(&self) -> Option<Timestamp> {
        self.at.get().copied()
    }

    /// Waits for it.
    pub async fn cancelled(&self) {
        self.token.cancelled().await;
    }
}
