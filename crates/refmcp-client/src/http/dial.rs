//! Connections: looking up a host, TCP, and TLS where the address wants it.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;

use super::address::Address;
use super::observer::ObservedStream;
use super::scope::{AddressPolicy, AddressScope};
use super::settings::HttpSettings;
use super::tls;

/// How long one address of a host is tried before the next is tried beside it.
const HEAD_START: Duration = Duration::from_millis(250);

/// A configuration of TLS that is made when it is first needed; those who share it make it once.
pub(super) type LazyTls = Arc<OnceLock<Result<Arc<ClientConfig>, String>>>;

/// Makes connections to one address.
#[derive(Debug)]
pub(crate) struct Dialer {
    address: Address,
    settings: HttpSettings,
    protocols: &'static [&'static [u8]],
    tls: LazyTls,
    guard: Option<AddressPolicy>,
}

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum DialError {
    #[error("{0}")]
    Forbidden(String),
    #[error("{0}")]
    Unreachable(String),
    #[error("no connection within {0:?}")]
    TooSlow(Duration),
}

impl Dialer {
    /// A dialer that offers these protocols inside of TLS, the most wanted first.
    pub(crate) fn new(address: Address, settings: HttpSettings, protocols: &'static [&'static [u8]]) -> Self {
        Self { address, settings, protocols, tls: LazyTls::default(), guard: None }
    }

    /// The same, which connects only where it may; and with a configuration that others use as well.
    pub(super) fn guarded(mut self, guard: AddressPolicy, tls: LazyTls) -> Self {
        self.guard = Some(guard);
        self.tls = tls;
        self
    }

    pub(crate) fn settings(&self) -> &HttpSettings {
        &self.settings
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// A new connection; an error says why there is none.
    pub(crate) async fn dial(&self) -> Result<Stream, String> {
        self.try_dial().await.map_err(|why| why.to_string())
    }

    /// The same; an error tells what may not be from what cannot be.
    pub(super) async fn try_dial(&self) -> Result<Stream, DialError> {
        let within = self.settings.connect_timeout;
        let dialed = timeout(within, self.dial_patiently()).await.map_err(|_| DialError::TooSlow(within))?;
        dialed.map(|stream| match &self.settings.observer {
            Some(observer) => Stream::ObservedStream(Box::new(ObservedStream::new(stream, observer.clone()))),
            None => stream,
        })
    }

    async fn dial_patiently(&self) -> Result<Stream, DialError> {
        let (host, port) = (self.address.host(), self.address.port());
        let looked_up = look_up(&self.settings, &host, port).await;
        let mut addresses = looked_up
            .map_err(|fault| DialError::Unreachable(format!("{host} cannot be looked up: {fault}")))?;
        if let Some(guard) = &self.guard {
            // These very addresses are connected to: were the name looked up again, it could mean another one.
            addresses = guard.allowed(&host, addresses).map_err(DialError::Forbidden)?;
        }
        let tcp = connect_any(&addresses)
            .await
            .map_err(|fault| DialError::Unreachable(format!("{}: {fault}", self.address.authority())))?;
        tcp.set_nodelay(true).map_err(|fault| DialError::Unreachable(fault.to_string()))?;
        if !self.address.is_secure() {
            return Ok(Stream::Plain(tcp));
        }
        let config = self.tls_config().await.map_err(DialError::Unreachable)?;
        let wrapped = tls::wrap(config, host, tcp).await.map_err(DialError::Unreachable)?;
        Ok(Stream::Tls(Box::new(wrapped)))
    }

    /// The configuration, made on a thread that may wait: the certificates of the system are in files.
    async fn tls_config(&self) -> Result<Arc<ClientConfig>, String> {
        if let Some(config) = self.tls.get() {
            return config.clone();
        }
        let (extra, protocols) = (self.settings.ca_certificates.clone(), self.protocols);
        let made = tokio::task::spawn_blocking(move || tls::config(&extra, protocols)).await;
        let made = made.unwrap_or_else(|fault| Err(fault.to_string()));
        self.tls.get_or_init(|| made).clone()
    }
}

/// The addresses of a host.
async fn look_up(settings: &HttpSettings, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    match &settings.resolver {
        Some(resolve) => resolve(host, port),
        None => tokio::net::lookup_host((host, port)).await.map(Iterator::collect),
    }
}

/// Connects to whichever address answers first; each has a head start before the next.
async fn connect_any(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    if let [only] = addresses {
        return TcpStream::connect(only).await;
    }
    let mut attempts = JoinSet::new();
    let mut waiting = addresses.iter().copied();
    let mut fault = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    loop {
        let next = waiting.next();
        let last = next.is_none();
        if let Some(address) = next {
            attempts.spawn(TcpStream::connect(address));
        }
        let finished = if last {
            attempts.join_next().await
        } else {
            match timeout(HEAD_START, attempts.join_next()).await {
                Ok(finished) => finished,
                Err(_) => continue,
            }
        };
        match finished {
            Some(Ok(Ok(stream))) => return Ok(stream),
            Some(Ok(Err(failed))) => fault = failed,
            Some(Err(failed)) => fault = io::Error::other(failed),
            None => return Err(fault),
        }
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    ObservedStream(Box<ObservedStream>),
}

impl Stream {
    /// Whether HTTP/2 was agreed on.
    pub(super) fn speaks_http2(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(b"h2"),
            Self::ObservedStream(tapped) => tapped.stream().speaks_http2(),
        }
    }

    /// Where the other end is: of this very connection, whatever its name means by now.
    pub(crate) fn scope(&self) -> AddressScope {
        let tcp = match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => stream.get_ref().0,
            Self::ObservedStream(tapped) => return tapped.stream().scope(),
        };
        // Whoever is gone already is nobody near.
        tcp.peer_addr().map_or(AddressScope::Reserved, |peer| AddressScope::of(peer.ip()))
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::ObservedStream(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::ObservedStream(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
            Self::ObservedStream(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::ObservedStream(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::ObservedStream(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
            Self::ObservedStream(stream) => stream.is_write_vectored(),
        }
    }
}
