//! The caller of a request: the client's address and its access token.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request};
use axum::http::HeaderMap;
use refmcp_proto::engine::RequestContext;
use refmcp_server::transport::{MemoryAccount, Observed};
use refmcp_server::{Connection, Headers};

use crate::access::rate_limit::network;
use crate::access::resource_server::VerifiedToken;
use crate::request::headers;
use crate::request::observed::ObservedRequest;
use crate::session::quotas::ClientKey;

/// The client of a connection.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Client {
    /// The client's address; unknown where an application serves the router without `ConnectInfo`.
    pub(crate) address: Option<IpAddr>,
    /// The server's own address of the connection.
    pub(crate) local_address: Option<IpAddr>,
    /// Whether the connection is a Unix socket, which has no address.
    pub(crate) unix: bool,
    /// Whether a trusted proxy forwarded the request; the address is what the proxy reports, or its own.
    pub(crate) forwarded: bool,
}

impl Client {
    pub(crate) fn new(peer: SocketAddr, local: Option<SocketAddr>) -> Self {
        let ip = |address: SocketAddr| address.ip().to_canonical();
        Self { address: Some(ip(peer)), local_address: local.map(ip), ..Self::default() }
    }

    pub(crate) fn unix() -> Self {
        Self { unix: true, ..Self::default() }
    }

    /// The client of a request that an application serves.
    pub(crate) fn of_request(request: &Request) -> Self {
        let info = request.extensions().get::<ConnectInfo<SocketAddr>>();
        info.map(|ConnectInfo(peer)| Self::new(*peer, None)).unwrap_or_default()
    }

    /// Whether the client is known to be on this machine; behind a proxy that is unknown.
    pub(crate) fn is_local(&self) -> bool {
        !self.forwarded && self.address.map_or(self.unix, |address| address.is_loopback())
    }

    /// The client's address for logs; a Unix socket has none.
    pub(crate) fn shown_address(&self) -> Option<Cow<'static, str>> {
        let address = self.address.map(|address| Cow::Owned(address.to_string()));
        address.or(self.unix.then_some(Cow::Borrowed("unix")))
    }

    /// The address that the rate limit counts by; none if unknown.
    pub(crate) fn rate_key(&self) -> Option<IpAddr> {
        self.address.or(self.unix.then_some(IpAddr::V4(Ipv4Addr::LOCALHOST)))
    }
}

/// The client of a request, with its access token where one is required.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) client: Client,
    pub(crate) token: Option<Arc<VerifiedToken>>,
    /// The scheme and host that the client used, where a proxy reports them.
    pub(crate) origin: Option<Arc<str>>,
    /// The request, for the observer.
    pub(crate) observed: ObservedRequest,
    /// What the connection may hold in memory.
    pub(crate) memory: MemoryAccount,
}

impl Caller {
    pub(crate) fn principal(&self) -> Option<&Arc<str>> {
        self.token.as_ref().map(|token| &token.access.principal)
    }

    /// The client that its sessions count for.
    pub(crate) fn client_key(&self) -> ClientKey {
        let network = || self.client.rate_key().map(|address| ClientKey::Network(network(address)));
        let principal = self.principal().cloned().map(ClientKey::Principal);
        principal.or_else(network).unwrap_or(ClientKey::Unknown)
    }

    pub(crate) fn scopes(&self) -> Option<Arc<[Box<str>]>> {
        self.token.as_ref().map(|token| token.scopes.clone())
    }

    /// The connection as handlers see it.
    pub(crate) fn connection(&self, headers: Headers) -> Connection {
        Connection {
            transport: "http",
            local: self.client.is_local(),
            principal: self.principal().cloned(),
            // A session has no token: each of its requests has its own.
            scopes: None,
            origin: self.origin.clone(),
            headers,
            observed: Observed::default(),
            memory: Some(self.memory.clone()),
        }
    }

    /// The same for the calls of one request of a session.
    pub(crate) fn request_context(&self, session: &Connection, headers: HeaderMap) -> RequestContext {
        Arc::new(Connection {
            transport: session.transport,
            scopes: self.scopes(),
            observed: session.observed.clone(),
            ..self.connection(headers::of_request(headers, self.client.address))
        })
    }
}
