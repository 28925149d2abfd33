//! Sees to it that a server's end is told, and that nothing of it is left behind.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use refmcp_proto::engine::client::TransportError;
use refmcp_transport::pipe::LineWriter;
use tokio::process::{Child, ChildStdin};
use tokio::time::{Instant, timeout, timeout_at};

use super::Patience;
use super::group::Group;
use super::stderr::LastWords;
use crate::pipe::{FLUSH_WITHIN, LAST_WORDS, Outbox, ShutdownSignal, Task, why_deaf};
use crate::transport::MessageSink;

/// How long a process that is killed may take to be gone; only one that hangs in the kernel takes any time.
const KILLED_WITHIN: Duration = Duration::from_secs(1);

/// Watches over a server from its start to its end.
pub(super) struct Supervisor {
    pub(super) child: Child,
    pub(super) group: Group,
    pub(super) outbox: Arc<Outbox<LineWriter<ChildStdin>>>,
    pub(super) sink: Arc<dyn MessageSink>,
    pub(super) reading: Task<io::Result<()>>,
    pub(super) flushing: Task<io::Result<()>>,
    pub(super) draining: Task<io::Result<()>>,
    pub(super) last_words: Arc<LastWords>,
    pub(super) patience: Patience,
    pub(super) shutdown: ShutdownSignal,
}

impl Supervisor {
    pub(super) async fn run(mut self) {
        let why = tokio::select! {
            status = self.child.wait() => self.exited(status).await,
            heard = &mut self.reading => {
                let otherwise = match heard {
                    Ok(()) => "the server closed its output".to_owned(),
                    Err(fault) => format!("the server's output cannot be read: {fault}"),
                };
                self.exited_or(TransportError::Broken(otherwise)).await
            }
            sent = &mut self.flushing => self.exited_or(why_deaf(sent)).await,
            () = self.shutdown.asked_to_close() => TransportError::Closed,
        };
        self.sink.closed(why);
        self.end().await;
        self.shutdown.done();
    }

    /// A server that closes one of its pipes is usually about to exit, and its status says more.
    async fn exited_or(&mut self, otherwise: TransportError) -> TransportError {
        match timeout(LAST_WORDS, self.child.wait()).await {
            Ok(status) => self.exited(status).await,
            Err(_) => otherwise,
        }
    }

    /// Why nothing more comes from a server that has exited. What it has written is heard first, but not for long:
    /// something that it has started may hold its pipes open.
    async fn exited(&mut self, status: io::Result<ExitStatus>) -> TransportError {
        let rest = async {
            let _ = (&mut self.reading).await;
            let _ = (&mut self.draining).await;
        };
        if timeout(LAST_WORDS, rest).await.is_err() {
            tracing::debug!("the server has exited, but its pipes are still held open");
        }
        let mut why = match status {
            Ok(status) => describe(status),
            Err(fault) => format!("the server's exit status is unknown: {fault}"),
        };
        if let Some(words) = self.last_words.quote() {
            why.push_str("; it last wrote:");
            why.push_str(&words);
        }
        TransportError::Broken(why)
    }

    /// Ends it in order: closes its input, tells the group to terminate, kills it.
    async fn end(&mut self) {
        self.outbox.hang_up();
        if timeout(FLUSH_WITHIN, &mut self.flushing).await.is_err() {
            tracing::debug!("the server did not take what was queued for it");
        }
        self.flushing.stop().await;
        self.outbox.shut();
        let exited = timeout(self.patience.closed, self.child.wait()).await.is_ok();
        if !exited || self.group.is_alive() {
            self.group.terminate();
            let deadline = Instant::now() + self.patience.terminated;
            // Reaped first, or it would count as alive for ever.
            let exited = timeout_at(deadline, self.child.wait()).await.is_ok();
            if !exited || !self.group.gone_by(deadline).await {
                self.kill().await;
            }
        }
        self.group.forget();
    }

    async fn kill(&mut self) {
        self.group.kill();
        if let Err(fault) = self.child.start_kill() {
            tracing::debug!(%fault, "the server was not killed alone");
        }
        let deadline = Instant::now() + KILLED_WITHIN;
        match timeout_at(deadline, self.child.wait()).await {
            Ok(Ok(status)) => tracing::debug!(%status, "the server had to be killed"),
            Ok(Err(fault)) => tracing::warn!(%fault, "whether the server is gone is unknown"),
            Err(_) => tracing::warn!("the server does not go, though it was killed"),
        }
    }
}

/// How a process ended, in words.
fn describe(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("the server ended with exit status {code}"),
        // By a signal, whose name the system's own words give.
        None => {
            let words = status.to_string();
            format!("the server was ended by {}", words.replacen("signal: ", "signal ", 1))
        }
    }
}
