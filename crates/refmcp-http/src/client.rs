//! Who is at the other end of a request, as far as the network tells.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, Request};

/// The two ends of a connection.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Client {
    /// Where the client is. A server that is mounted into an application may not know.
    pub(crate) address: Option<IpAddr>,
    /// The address of ours that it called.
    pub(crate) called: Option<IpAddr>,
}

impl Client {
    pub(crate) fn new(peer: SocketAddr, called: Option<SocketAddr>) -> Self {
        let ip = |address: SocketAddr| address.ip().to_canonical();
        Self { address: Some(ip(peer)), called: called.map(ip) }
    }

    /// What an application that we are mounted into says.
    pub(crate) fn of(request: &Request) -> Self {
        let info = request.extensions().get::<ConnectInfo<SocketAddr>>();
        info.map(|ConnectInfo(peer)| Self::new(*peer, None)).unwrap_or_default()
    }

    /// Whether it is on this machine; whoever is not known to be is not.
    pub(crate) fn is_local(&self) -> bool {
        self.address.is_some_and(|address| address.is_loopback())
    }
}
