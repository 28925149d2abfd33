//! How the endpoint behaves; every limit is on by default.

use std::sync::Arc;
use std::time::Duration;

use refmcp_server::backplane::BackplaneSettings;

use crate::access::forwarded::TrustedProxy;
use crate::access::rate::Rate;
use crate::access::resource_server::ResourceServer;
use crate::extra_routes::ExtraRoutes;
use crate::ops::health::OpsRoutes;
use crate::routes::EndpointPath;

/// The settings of an endpoint.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the main endpoint is.
    pub path: EndpointPath,
    /// Names under which the server may be addressed, beside the loopback ones. Without a port, any port fits.
    pub hosts: Vec<String>,
    /// Origins of web pages that may use the server, beside those on this machine.
    pub origins: Vec<String>,
    /// Proxies that are believed about who asks, and by which name: `Forwarded`, `X-Forwarded-For`, `-Proto`, `-Host`.
    pub trusted_proxies: Vec<TrustedProxy>,
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// Bytes of a request's head.
    pub head_bytes: usize,
    /// How long a head may take to arrive, and so how long a connection may be idle.
    pub head_timeout: Duration,
    /// How long a client may take nothing of what is sent to it.
    pub write_timeout: Duration,
    /// How many connections there may be, of all clients.
    pub max_connections: usize,
    /// How many requests may be waiting for their answers, of all clients.
    pub max_in_flight: usize,
    /// How often one client may ask.
    pub rate: Option<Rate>,
    /// Whether clients on this machine are held to that rate too.
    pub rate_on_loopback: bool,
    /// How long a client that has opened a session may take to say that it is ready.
    pub initialize_within: Duration,
    /// How long a session may be silent.
    pub session_idle: Duration,
    /// How many sessions there may be.
    pub max_sessions: usize,
    /// Streams that one session may have, open ones and ended ones that can still be taken up again.
    pub max_streams: usize,
    /// Streams of events that may be read at once, by all clients.
    pub max_open_streams: usize,
    /// Bytes of messages that one stream keeps for a reader who is slow or away.
    pub stream_bytes: usize,
    /// Bytes that are kept for one session.
    pub session_bytes: usize,
    /// Bytes that are kept for all sessions.
    pub total_bytes: usize,
    /// How long a stream that has ended can be taken up again.
    pub retention: Duration,
    /// How long an answer may take before the exchange turns into a stream.
    pub stream_after: Duration,
    /// How often a silent stream shows that it is alive.
    pub keep_alive: Duration,
    /// What clients are told to wait before they come back.
    pub retry: Duration,
    /// Whether a session's requests must carry the version they agreed on.
    pub require_version: bool,
    /// Whether requests that are answered must carry an `Accept` header. One that is there counts in any case.
    pub require_accept: bool,
    /// Whether requests with the same id are served side by side; each has an exchange of its own.
    pub serve_duplicate_ids: bool,
    /// Where `/healthz`, `/readyz` and `/metrics` are served.
    pub ops: OpsRoutes,
    /// Who decides who may use the server. Without, everybody may who can reach it.
    pub resource_server: Option<ResourceServer>,
    /// What else is served on the same port.
    pub extra_routes: Option<Arc<dyn ExtraRoutes>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            path: EndpointPath::default(),
            hosts: Vec::new(),
            origins: Vec::new(),
            trusted_proxies: Vec::new(),
            body_bytes: 4 << 20,
            body_timeout: Duration::from_secs(30),
            head_bytes: 64 << 10,
            head_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(60),
            max_connections: 16_384,
            max_in_flight: 16_384,
            rate: Some(Rate::default()),
            rate_on_loopback: false,
            initialize_within: Duration::from_secs(60),
            session_idle: Duration::from_secs(30 * 60),
            max_sessions: 20_000,
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
    /// The limits of the memory that goes with these.
    pub(crate) fn memory(&self) -> BackplaneSettings {
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
