//! A line in the log for each call, in the words of the server's log of calls.

use std::sync::Arc;
use std::time::Instant;

use refmcp_proto::jsonrpc::excerpt;
use tracing::Level;

/// A call that is logged when it ends, without its arguments. Dropped before, it was cancelled.
pub(crate) struct LoggedCall {
    method: Arc<str>,
    /// The tool, prompt or resource.
    subject: Option<Arc<str>>,
    began: Instant,
    ending: &'static str,
}

impl LoggedCall {
    /// Nothing where calls are not logged.
    pub(crate) fn begin(method: &Arc<str>, subject: Option<&Arc<str>>) -> Option<Self> {
        tracing::enabled!(target: "refmcp::calls", Level::INFO).then(|| Self {
            method: method.clone(),
            subject: subject.cloned(),
            began: Instant::now(),
            ending: "cancelled",
        })
    }

    pub(crate) fn end<T, E>(mut self, outcome: &Result<T, E>) {
        self.ending = if outcome.is_ok() { "done" } else { "failed" };
    }
}

impl Drop for LoggedCall {
    fn drop(&mut self) {
        tracing::info!(
            target: "refmcp::calls",
            method = &*self.method,
            subject = self.subject.as_deref().map(excerpt),
            seconds = self.began.elapsed().as_secs_f64(),
            ending = self.ending,
        );
    }
}
