//! Who is at the other end of a request, as far as the network tells.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request};
use refmcp_server::{Connection, Headers};

use crate::access::resource_server::VerifiedToken;

/// The two ends of a connection.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Client {
    /// Where the client is. A server that is mounted into an application may not know.
    pub(crate) address: Option<IpAddr>,
    /// The address of ours that it called.
    pub(crate) called: Option<IpAddr>,
    /// Whether it came by a Unix socket, and so has no address.
    pub(crate) unix: bool,
    /// Whether a proxy passed its request on; the address is then what that proxy says, or the proxy's own.
    pub(crate) forwarded: bool,
}

impl Client {
    pub(crate) fn new(peer: SocketAddr, called: Option<SocketAddr>) -> Self {
        let ip = |address: SocketAddr| address.ip().to_canonical();
        Self { address: Some(ip(peer)), called: called.map(ip), ..Self::default() }
    }

    /// Of a Unix socket.
    pub(crate) fn unix() -> Self {
        Self { unix: true, ..Self::default() }
    }

    /// What an application that we are mounted into says.
    pub(crate) fn of(request: &Request) -> Self {
        let info = request.extensions().get::<ConnectInfo<SocketAddr>>();
        info.map(|ConnectInfo(peer)| Self::new(*peer, None)).unwrap_or_default()
    }

    /// Whether it is known to be on this machine; behind a proxy that cannot be known.
    pub(crate) fn is_local(&self) -> bool {
        !self.forwarded && self.address.map_or(self.unix, |address| address.is_loopback())
    }

    /// Whose requests are counted together; nothing where it is not known who asks.
    pub(crate) fn counted_as(&self) -> Option<IpAddr> {
        self.address.or(self.unix.then_some(IpAddr::V4(Ipv4Addr::LOCALHOST)))
    }
}

/// Who asks: from where, and with what leave, where leave is needed.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) client: Client,
    pub(crate) grant: Option<Arc<VerifiedToken>>,
    /// By which scheme and host, where a proxy says so.
    pub(crate) origin: Option<Arc<str>>,
}

impl Caller {
    /// Who it is, where anybody asks.
    pub(crate) fn principal(&self) -> Option<&Arc<str>> {
        self.grant.as_ref().map(|grant| &grant.granted.principal)
    }

    /// What their token is good for, where anybody asks.
    pub(crate) fn scopes(&self) -> Option<Arc<[Box<str>]>> {
        self.grant.as_ref().map(|grant| grant.scopes.clone())
    }

    /// What handlers are told of the connection.
    pub(crate) fn connection(&self, headers: Headers) -> Connection {
        Connection {
            transport: "http",
            local: self.client.is_local(),
            principal: self.principal().cloned(),
            // Every request of a session brings a token of its own, and is looked at before anything is done for it.
            scopes: None,
            origin: self.origin.clone(),
            headers,
        }
    }
}
