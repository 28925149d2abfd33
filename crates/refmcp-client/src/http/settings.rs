//! Settings of HTTP connections: timeouts, limits, certificates.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of one message of a server that are kept unless something else is set: results may be large.
pub const MAX_MESSAGE_SIZE: usize = 64 << 20;

/// Looks up a host and port, in place of the system.
pub type Resolve = Arc<dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

/// Settings of HTTP connections.
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpSettings {
    /// How long a connection may take to come about, with the lookup of the name and TLS.
    pub connect_timeout: Duration,
    /// How long the head of a response may take, where that only acknowledges something or opens a stream. The response
    /// to a request may come as late as its answer, for which the request has a timeout.
    pub head_timeout: Duration,
    /// How long a connection is kept for the next request. Many servers end idle ones after five seconds, and a
    /// request that crosses with that end is lost.
    pub idle_timeout: Duration,
    /// Bytes of one message.
    pub max_message_size: usize,
    /// Requests in flight at once, each with a connection of its own unless it is HTTP/2; the others wait.
    pub max_requests: usize,
    /// Whether a session keeps the GET stream open, for requests and notifications that belong to no request. A client
    /// that makes one request can do without.
    pub get_stream: bool,
    /// Certificates, in DER, that are trusted besides those of the system.
    pub ca_certificates: Vec<Vec<u8>>,
    /// Looks up hosts in place of the system.
    pub resolver: Option<Resolve>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            head_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(4),
            max_message_size: MAX_MESSAGE_SIZE,
            max_requests: 1024,
            get_stream: true,
            ca_certificates: Vec::new(),
            resolver: None,
        }
    }
}

impl fmt::Debug for HttpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSettings")
            .field("connect_timeout", &self.connect_timeout)
            .field("head_timeout", &self.head_timeout)
            .field("idle_timeout", &self.idle_timeout)
            .field("max_message_size", &self.max_message_size)
            .field("max_requests", &self.max_requests)
            .field("get_stream", &self.get_stream)
            .field("ca_certificates", &self.ca_certificates.len())
            .field("resolver", &self.resolver.is_some())
            .finish()
    }
}
