//! The options of an endpoint; every limit is on by default.

use std::sync::Arc;
use std::time::Duration;

use refmcp_server::backplane::BackplaneSettings;

use crate::access::rate_limit::Rate;
use crate::access::resource_server::ResourceServer;
use crate::access::trusted_proxy::TrustedProxy;
use crate::extra_routes::ExtraRoutes;
use crate::ops::health::OpsRoutes;
use crate::routes::EndpointPath;

/// The options of an endpoint.
#[derive(Debug, Clone)]
pub struct Options {
    /// The path of the MCP endpoint.
    pub path: EndpointPath,
    /// Hosts that the server may be called by, besides the loopback names. One without a port allows any port.
    pub hosts: Vec<String>,
    /// Origins of web pages that may use the server, besides those on this machine.
    pub origins: Vec<String>,
    /// Proxies whose `Forwarded`, `X-Forwarded-For`, `-Proto` and `-Host` are believed.
    pub trusted_proxies: Vec<TrustedProxy>,
    /// Bytes of one message: of a request's body, of a WebSocket message.
    pub max_message_size: usize,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// Bytes of a request's head.
    pub head_bytes: usize,
    /// How long a head may take to arrive, and so how long a connection may be idle.
    pub head_timeout: Duration,
    /// How long a client may read nothing of what is sent to it.
    pub write_timeout: Duration,
    /// Connections of all clients.
    pub max_connections: usize,
    /// Requests in flight of all clients.
    pub max_in_flight: usize,
    /// The rate limit of each client.
    pub rate: Option<Rate>,
    /// Whether the rate limit holds for clients on this machine too.
    pub rate_on_loopback: bool,
    /// How long a client may take from `initialize` to `initialized`.
    pub initialize_within: Duration,
    /// Session timeout, which is an idle timeout: how long a session may go unused before it expires.
    #[doc(alias = "idle_timeout")]
    pub session_timeout: Duration,
    /// Sessions of all clients. Beyond it, the client with the most sessions loses the one that it has not used for the longest
    /// time, unless it is in use.
    pub max_sessions: usize,
    /// Sessions of one client: of one principal where access tokens are required, else of one address, or network of IPv6. Beyond
    /// it, the client loses the one that it has not used for the longest time. Without it, a quarter of all.
    pub max_sessions_per_client: Option<usize>,
    /// Streams of one session, both open and ended ones that can still be resumed.
    pub max_streams: usize,
    /// SSE streams that are read at once, of all clients.
    pub max_open_streams: usize,
    /// Bytes of messages that one stream keeps for a slow or absent reader.
    pub stream_bytes: usize,
    /// Bytes that are kept for one session.
    pub session_bytes: usize,
    /// Bytes that are kept for all sessions.
    pub total_bytes: usize,
    /// How long a stream that has ended can be resumed.
    pub retention: Duration,
    /// How long an answer may take before the response becomes an SSE stream.
    pub stream_after: Duration,
    /// The interval of keep-alive comments on a silent stream: its heartbeat.
    #[doc(alias = "heartbeat")]
    pub keep_alive: Duration,
    /// The retry delay that clients are told before they resume a stream.
    pub retry: Duration,
    /// Whether requests of a session must have the header `MCP-Protocol-Version`.
    pub require_version: bool,
    /// Whether requests that are answered must have an `Accept` header. One that is there counts in any case.
    pub require_accept: bool,
    /// Whether requests with the same id are served side by side; each has its own response.
    pub serve_duplicate_ids: bool,
    /// Where `/healthz`, `/readyz` and `/metrics` are served.
    pub ops: OpsRoutes,
    /// The access tokens that clients need. Without it, every client may use the server.
    pub resource_server: Option<ResourceServer>,
    /// Routes of another service on the same port.
    pub extra_routes: Option<Arc<dyn ExtraRoutes>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            path: EndpointPath::default(),
            hosts: Vec::new(),
            origins: Vec::new(),
            trusted_proxies: Vec::new(),
            max_message_size: 4 << 20,
            body_timeout: Duration::from_secs(30),
            head_bytes: 64 << 10,
            head_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(60),
            max_connections: 16_384,
            max_in_flight: 16_384,
            rate: Some(Rate::default()),
            rate_on_loopback: false,
            initialize_within: Duration::from_secs(60),
            session_timeout: Duration::from_secs(30 * 60),
            max_sessions: 20_000,
            max_sessions_per_client: None,
            max_streams: 4096,
            max_open_streams: 16_384,
            stream_bytes: 16 << 20,
            session_bytes: 32 << 20,
            total_bytes: 512 << 20,
            retention: Duration::from_secs(5 * 60),
            stream_after: Duration::from_millis(250),
            keep_alive: Duration::from_secs(15),
            retry: Duration::from_secs(1),
            require_version: true,
            require_accept: true,
            serve_duplicate_ids: false,
            ops: OpsRoutes::Public,
            resource_server: None,
            extra_routes: None,
        }
    }
}

impl Options {
    /// The sessions that one client may have.
    pub(crate) fn sessions_per_client(&self) -> usize {
        self.max_sessions_per_client.unwrap_or(self.max_sessions.div_ceil(4).max(1))
    }

    /// The limits of a backplane that follow from these options.
    pub fn backplane_settings(&self) -> BackplaneSettings {
        BackplaneSettings {
            sessions: self.max_sessions,
            streams: self.max_streams,
            stream_bytes: self.stream_bytes,
            session_bytes: self.session_bytes,
            total_bytes: self.total_bytes,
            retention: self.retention,
            ..BackplaneSettings::default()
        }
    }
}
