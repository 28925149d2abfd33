//! Supervises a child process: reports its end, and leaves nothing of it running.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use refmcp_proto::engine::client::TransportError;
use refmcp_transport::pipe::LineWriter;
use tokio::process::{Child, ChildStdin};
use tokio::time::{Instant, timeout, timeout_at};

use super::ShutdownTimeouts;
use super::group::Group;
use super::stderr::StderrTail;
use crate::pipe::{FLUSH_TIMEOUT, PipeTasks, READ_ON_TIMEOUT, Task, write_error};
use crate::transport::MessageSink;

/// How long a killed process may take to be gone; only one that hangs in the kernel takes any time.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) struct Supervisor {
    pub(super) child: Child,
    pub(super) group: Group,
    pub(super) pipe: PipeTasks<LineWriter<ChildStdin>>,
    pub(super) sink: Arc<dyn MessageSink>,
    pub(super) draining: Task,
    pub(super) stderr_tail: Arc<StderrTail>,
    pub(super) shutdown_timeouts: ShutdownTimeouts,
}

impl Supervisor {
    pub(super) async fn run(mut self) {
        let why = tokio::select! {
            status = self.child.wait() => self.exited(status).await,
            read = &mut self.pipe.reading => {
                let otherwise = match read {
                    Ok(()) => "the server closed its output".to_owned(),
                    Err(error) => format!("the server's output cannot be read: {error}"),
                };
                self.exited_or(TransportError::Broken(otherwise)).await
            }
            written = &mut self.pipe.flushing => self.exited_or(write_error(written)).await,
            () = self.pipe.shutdown.requested() => TransportError::Closed,
        };
        self.sink.closed(why);
        self.end().await;
        self.pipe.shutdown.done();
    }

    /// A server that closes one of its pipes usually exits soon, and its exit status is the better error.
    async fn exited_or(&mut self, otherwise: TransportError) -> TransportError {
        match timeout(READ_ON_TIMEOUT, self.child.wait()).await {
            Ok(status) => self.exited(status).await,
            Err(_) => otherwise,
        }
    }

    /// The error of a server that has exited. Its output is read to the end first, but not for long: a process that it has
    /// started may hold the pipes open.
    async fn exited(&mut self, status: io::Result<ExitStatus>) -> TransportError {
        let rest = async {
            let _ = (&mut self.pipe.reading).await;
            let _ = (&mut self.draining).await;
        };
        if timeout(READ_ON_TIMEOUT, rest).await.is_err() {
            tracing::debug!("the server has exited, but its pipes are still held open");
        }
        let mut why = match status {
            Ok(status) => describe(status),
            Err(error) => format!("the server's exit status is unknown: {error}"),
        };
        if let Some(words) = self.stderr_tail.quote() {
            why.push_str("; it last wrote:");
            why.push_str(&words);
        }
        TransportError::Broken(why)
    }

    /// Ends the server in order: closes its input, then SIGTERM, then SIGKILL.
    async fn end(&mut self) {
        self.pipe.outbox.finish();
        if timeout(FLUSH_TIMEOUT, &mut self.pipe.flushing).await.is_err() {
            tracing::debug!("the server did not take what was queued for it");
        }
        self.pipe.flushing.stop().await;
        self.pipe.outbox.shut();
        let exited = timeout(self.shutdown_timeouts.closed, self.child.wait()).await.is_ok();
        if !exited || self.group.is_alive() {
            self.group.terminate();
            let deadline = Instant::now() + self.shutdown_timeouts.terminated;
            // Reaped first, or it would count as alive forever.
            let exited = timeout_at(deadline, self.child.wait()).await.is_ok();
            if !exited || !self.group.gone_by(deadline).await {
                self.kill().await;
            }
        }
        self.group.forget();
    }

    async fn kill(&mut self) {
        self.group.kill();
        if let Err(error) = self.child.start_kill() {
            tracing::debug!(%error, "the server was not killed alone");
        }
        let deadline = Instant::now() + KILL_TIMEOUT;
        match timeout_at(deadline, self.child.wait()).await {
            Ok(Ok(status)) => tracing::debug!(%status, "the server had to be killed"),
            Ok(Err(error)) => tracing::warn!(%error, "whether the server is gone is unknown"),
            Err(_) => tracing::warn!("the server does not go, though it was killed"),
        }
    }
}

fn describe(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("the server ended with exit status {code}"),
        // By a signal, whose name the system gives.
        None => {
            let words = status.to_string();
            format!("the server was ended by {}", words.replacen("signal: ", "signal ", 1))
        }
    }
}
