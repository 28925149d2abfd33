//! Listeners: a port, with TLS or without, or a Unix socket.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpStream};

use super::Encryption;
#[cfg(feature = "tls")]
use super::tls::Tls;
#[cfg(unix)]
use super::unix::UnixSocket;

/// Where an endpoint listens.
#[derive(Debug)]
pub struct Listener(pub(super) ListenerKind);

#[derive(Debug)]
pub(super) enum ListenerKind {
    Tcp(TcpListener, Encryption),
    #[cfg(unix)]
    Unix(UnixSocket),
}

pub(super) enum Accepted {
    Tcp(TcpStream, SocketAddr, Encryption),
    #[cfg(unix)]
    Unix(tokio::net::UnixStream),
}

impl Listener {
    /// A port with TLS.
    #[cfg(feature = "tls")]
    pub fn tls(listener: TcpListener, tls: Tls) -> Self {
        Self(ListenerKind::Tcp(listener, Encryption::Tls(tls)))
    }

    pub(super) fn log_listening(&self) {
        match &self.0 {
            ListenerKind::Tcp(listener, encryption) => {
                let address = listener.local_addr().ok().map(tracing::field::display);
                let tls = !matches!(encryption, Encryption::Plain);
                tracing::info!(target: "refmcp::http", address, tls, "listening");
            }
            #[cfg(unix)]
            ListenerKind::Unix(socket) => {
                let path = tracing::field::display(socket.path().display());
                tracing::info!(target: "refmcp::http", path, "listening on a Unix socket");
            }
        }
    }

    pub(super) async fn accept(&self) -> io::Result<Accepted> {
        match &self.0 {
            ListenerKind::Tcp(listener, encryption) => {
                let (stream, peer) = listener.accept().await?;
                Ok(Accepted::Tcp(stream, peer, encryption.clone()))
            }
            #[cfg(unix)]
            ListenerKind::Unix(socket) => socket.accept().await.map(Accepted::Unix),
        }
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self(ListenerKind::Tcp(listener, Encryption::Plain))
    }
}

#[cfg(unix)]
impl From<UnixSocket> for Listener {
    fn from(socket: UnixSocket) -> Self {
        Self(ListenerKind::Unix(socket))
    }
}
