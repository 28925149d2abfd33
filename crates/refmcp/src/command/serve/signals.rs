//! What signals ask of a running server: SIGTERM and SIGINT to end, SIGHUP to read its certificate again.

use anyhow::{Context, Result};
use refmcp_http::{Shutdown, Tls};
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that are heard from now on.
pub(super) struct Signals {
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    hangup: Signal,
}

impl Signals {
    /// Begins to hear them. Until then each of them would end the process.
    ///
    /// # Errors
    ///
    /// The system does not let us.
    #[cfg(unix)]
    pub(super) fn listen() -> Result<Self> {
        let of = |kind: SignalKind| signal(kind).context("cannot listen to signals");
        Ok(Self {
            terminate: of(SignalKind::terminate())?,
            interrupt: of(SignalKind::interrupt())?,
            hangup: of(SignalKind::hangup())?,
        })
    }

    #[cfg(not(unix))]
    pub(super) fn listen() -> Result<Self> {
        Ok(Self {})
    }

    /// Does what they ask for; ends when the task is aborted.
    #[cfg(unix)]
    pub(super) async fn obey(mut self, shutdown: Shutdown, tls: Option<Tls>) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => shutdown.trigger(),
                _ = self.interrupt.recv() => shutdown.trigger(),
                _ = self.hangup.recv() => {
                    let tls = tls.clone();
                    // Reading files may block; the signals that end the server must still be heard.
                    tokio::task::spawn_blocking(move || reload(tls.as_ref()));
                }
            }
        }
    }

    #[cfg(not(unix))]
    pub(super) async fn obey(self, shutdown: Shutdown, _: Option<Tls>) {
        while tokio::signal::ctrl_c().await.is_ok() {
            shutdown.trigger();
        }
    }
}

#[cfg(unix)]
fn reload(tls: Option<&Tls>) {
    match tls.map(Tls::reload) {
        None => tracing::warn!("SIGHUP: there is no certificate to read again (--tls-cert); nothing changes"),
        Some(Ok(())) => tracing::info!("SIGHUP: new connections get the certificate that was read now"),
        Some(Err(fault)) => {
            let why = format!("{:#}", anyhow::Error::new(fault));
            tracing::error!(why, "SIGHUP: the new certificate cannot be used; the old one stays in use");
        }
    }
}
