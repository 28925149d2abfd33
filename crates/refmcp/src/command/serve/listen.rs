//! Opening the port or the Unix socket that the options name.

use anyhow::{Context, Result};
use refmcp_http::{Listener, Tls};
use tokio::net::TcpListener;

use super::addresses::ListenAddress;
use crate::args::{ServeOptions, UsageError};

/// Opens it; gives where it really is.
///
/// # Errors
///
/// It is taken, or the system refuses it.
pub(super) async fn open(options: &ServeOptions, tls: Option<&Tls>) -> Result<(Listener, ListenAddress)> {
    #[cfg(unix)]
    if let Some(path) = &options.listen.unix {
        let socket = refmcp_http::UnixSocket::bind(path, options.listen.unix_mode).await;
        let socket = socket.context("cannot listen on the Unix socket")?;
        return Ok((socket.into(), ListenAddress::Unix(path.clone())));
    }
    if let Some(path) = options.host.strip_prefix("unix:") {
        let what = format!("--host is the address of a port; for a Unix socket say --unix {path}");
        return Err(UsageError::new(what).into());
    }
    if options.host.contains('/') {
        let what = "--host is an address or a name of this machine, such as 0.0.0.0, and no URL";
        return Err(UsageError::new(what).into());
    }
    let at = format!("{}:{}", options.host, options.port);
    let listener = TcpListener::bind(&at).await.with_context(|| format!("cannot listen on {at}"))?;
    let address = listener.local_addr().context("no address")?;
    let listener = match tls {
        Some(tls) => Listener::tls(listener, tls.clone()),
        None => listener.into(),
    };
    Ok((listener, ListenAddress::Address(address)))
}
