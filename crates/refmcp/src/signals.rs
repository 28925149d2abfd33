//! The signals that a process hears instead of ending at once.

use anyhow::{Context, Result};

use crate::args::ExitReason;

/// A signal that ends a command or the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGINT, or ctrl-c.
    Interrupt,
    /// The process is to end.
    Terminate,
    /// The terminal is gone.
    Hangup,
}

impl Signal {
    /// What a process that ends for it exits with.
    pub(crate) fn reason(self) -> ExitReason {
        match self {
            Self::Interrupt => ExitReason::Interrupted,
            Self::Terminate => ExitReason::Terminated,
            Self::Hangup => ExitReason::HungUp,
        }
    }

    /// What is said of it.
    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupted",
            Self::Terminate => "terminated",
            Self::Hangup => "the terminal is gone",
        }
    }
}

/// Signals, from when this is made.
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    hangup: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub(crate) fn new() -> Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
            _ = self.hangup.recv() => Signal::Hangup,
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    #[allow(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {})
    }

    pub(crate) async fn next(&mut self) -> Signal {
        match tokio::signal::ctrl_c().await.context("cannot listen for signals") {
            Ok(()) => Signal::Interrupt,
            Err(_) => std::future::pending().await,
        }
    }
}
