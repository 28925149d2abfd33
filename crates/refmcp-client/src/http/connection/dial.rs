//! Dialing: looks up a host, connects by TCP, and does the TLS handshake where the address wants it.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use refmcp_proto::engine::client::TransportError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::rustls::ClientConfig;

use super::address::Address;
use super::address_scope::{AddressPolicy, AddressScope};
use super::tls;
use crate::http::HttpSettings;

/// How long one address of a host is tried before the next is tried beside it.
const HAPPY_EYEBALLS_DELAY: Duration = Duration::from_millis(250);

/// A TLS configuration that is made when it is first needed, once for all clones.
pub(crate) type LazyTls = Arc<OnceLock<Result<Arc<ClientConfig>, String>>>;

/// Makes connections to one address: looks up its host, connects by TCP, and does the TLS handshake where it wants one.
#[derive(Debug)]
pub struct Dialer {
    address: Address,
    settings: HttpSettings,
    protocols: &'static [&'static [u8]],
    tls: LazyTls,
    policy: Option<AddressPolicy>,
}

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DialError {
    #[error("{0}")]
    Forbidden(String),
    #[error("{0}")]
    Unreachable(String),
    #[error("no connection within {0:?}")]
    TooSlow(Duration),
}

impl Dialer {
    /// A dialer for programs that speak HTTP/1.1 themselves over what [`open`](Self::open) gives.
    pub fn http1(address: Address, settings: HttpSettings) -> Self {
        Self::new(address, settings, &[b"http/1.1"])
    }

    /// A new connection.
    ///
    /// # Errors
    /// There is none; [`TransportError::Unreachable`] says why.
    pub async fn open(&self) -> Result<Box<dyn Io>, TransportError> {
        let stream = self.dial().await.map_err(|error| TransportError::Unreachable(error.to_string()))?;
        Ok(stream.io)
    }

    /// A dialer that offers these protocols inside of TLS, the preferred one first.
    pub(crate) fn new(address: Address, settings: HttpSettings, protocols: &'static [&'static [u8]]) -> Self {
        Self { address, settings, protocols, tls: LazyTls::default(), policy: None }
    }

    /// The same, restricted to the addresses that a policy allows, and with a shared TLS configuration.
    pub(crate) fn restricted(mut self, policy: AddressPolicy, tls: LazyTls) -> Self {
        self.policy = Some(policy);
        self.tls = tls;
        self
    }

    pub(crate) fn settings(&self) -> &HttpSettings {
        &self.settings
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    pub(crate) async fn dial(&self) -> Result<Stream, DialError> {
        let within = self.settings.connect_timeout;
        timeout(within, self.connect()).await.map_err(|_| DialError::TooSlow(within))?
    }

    async fn connect(&self) -> Result<Stream, DialError> {
        let (host, port) = (self.address.host(), self.address.port());
        let mut addresses = match &self.settings.resolver {
            Some(resolve) => resolve(&host, port),
            None => tokio::net::lookup_host((host.as_str(), port)).await.map(Iterator::collect),
        }
        .map_err(|error| DialError::Unreachable(format!("{host} cannot be looked up: {error}")))?;
        if let Some(policy) = &self.policy {
            // These very addresses are connected to: were the name looked up again, it could mean another one.
            addresses = policy.allowed(&host, addresses).map_err(DialError::Forbidden)?;
        }
        let tcp = connect_any(&addresses)
            .await
            .map_err(|error| DialError::Unreachable(format!("{}: {error}", self.address.authority())))?;
        tcp.set_nodelay(true).map_err(|error| DialError::Unreachable(error.to_string()))?;
        // The address of this very connection counts, not what the name means by now.
        let scope =
            tcp.peer_addr().map_or(AddressScope::Reserved, |peer| AddressScope::of_address(peer.ip()));
        if !self.address.is_secure() {
            return Ok(Stream { io: Box::new(tcp), is_http2: false, scope });
        }
        let config = self.tls_config().await.map_err(DialError::Unreachable)?;
        let tls = tls::wrap(config, host, tcp).await.map_err(DialError::Unreachable)?;
        let is_http2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok(Stream { io: Box::new(tls), is_http2, scope })
    }

    /// The TLS configuration, made on a blocking thread: the certificates of the system are in files.
    async fn tls_config(&self) -> Result<Arc<ClientConfig>, String> {
        if let Some(config) = self.tls.get() {
            return config.clone();
        }
        let (extra, protocols) = (self.settings.ca_certificates.clone(), self.protocols);
        let made = tokio::task::spawn_blocking(move || tls::config(&extra, protocols)).await;
        let made = made.unwrap_or_else(|error| Err(error.to_string()));
        self.tls.get_or_init(|| made).clone()
    }
}

/// Connects to whichever address answers first; each has a head start before the next.
async fn connect_any(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    if let [only] = addresses {
        return TcpStream::connect(only).await;
    }
    let mut attempts = JoinSet::new();
    let mut waiting = addresses.iter().copied();
    let mut error = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    loop {
        let next = waiting.next();
        let last = next.is_none();
        if let Some(address) = next {
            attempts.spawn(TcpStream::connect(address));
        }
        let finished = if last {
            attempts.join_next().await
        } else {
            match timeout(HAPPY_EYEBALLS_DELAY, attempts.join_next()).await {
                Ok(finished) => finished,
                Err(_) => continue,
            }
        };
        match finished {
            Some(Ok(Ok(stream))) => return Ok(stream),
            Some(Ok(Err(failed))) => error = failed,
            Some(Err(failed)) => error = io::Error::other(failed),
            None => return Err(error),
        }
    }
}

/// Any byte stream, both ways.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A new connection.
pub(crate) struct Stream {
    pub(crate) io: Box<dyn Io>,
    /// True if HTTP/2 was agreed on.
    pub(crate) is_http2: bool,
    /// Where the peer is.
    pub(crate) scope: AddressScope,
}
