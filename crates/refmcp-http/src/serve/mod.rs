//! Serving on a listener: accepts connections, tells HTTP/1.1 from HTTP/2, and shuts down in order.

mod http2;
mod http2_refusals;
pub(crate) mod listener;
mod malformed;
mod ops;
pub(crate) mod shutdown;
mod socket;
#[cfg(feature = "tls")]
pub(crate) mod tls;
#[cfg(unix)]
pub(crate) mod unix;

use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use refmcp_server::transport::{MemoryAccount, MemoryBudget, MemoryReservation};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
#[cfg(feature = "tls")]
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::caller::Client;
use crate::deadline::HeadTimer;
use crate::endpoint::Endpoint;
use crate::ops::metrics::GaugeGuard;
use crate::options::Options;
use crate::refusal::{Reason, Refusal};
use http2_refusals::watched;
use listener::{Accepted, Listener};
use shutdown::{Phase, Shutdown, StopSignal};
use socket::{ClientSocket, Socket, SocketState};

/// The pause after the system could not accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long a client that is refused for lack of room may take to read that.
const REFUSAL_TIMEOUT: Duration = Duration::from_millis(100);

/// What a connection costs besides what is reserved for it: buffers for reading and writing, a short head and a short
/// body, its task.
const CONNECTION_BYTES: usize = 16 << 10;

/// What it costs more with TLS, and with HTTP/2.
#[cfg(feature = "tls")]
const TLS_BYTES: usize = 48 << 10;
const HTTP2_BYTES: usize = 32 << 10;

/// The first byte of a client that begins with a TLS handshake.
const TLS_HANDSHAKE: u8 = 0x16;

/// The response when there are too many connections.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n\
    content-type: text/plain\r\ncontent-length: 30\r\n\r\ntoo many connections are open\n";

#[derive(Debug, Clone, Default)]
struct StopSignals {
    /// They accept no more requests.
    graceful: StopSignal,
    /// They are closed, whatever they do.
    immediate: StopSignal,
}

#[derive(Debug, Clone)]
enum Encryption {
    Plain,
    #[cfg(feature = "tls")]
    Tls(tls::Tls),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HttpVersion {
    Http1,
    Http2,
}

impl Endpoint {
    /// Serves until `stop` is cancelled; then streams end, and requests in flight get `timeout` to finish.
    pub async fn serve(&self, listener: impl Into<Listener>, stop: CancellationToken, timeout: Duration) {
        let shutdown = Shutdown::new(timeout);
        let serving = self.serve_with_shutdown(listener, &shutdown);
        let stopping = async {
            stop.cancelled().await;
            shutdown.trigger();
        };
        tokio::join!(serving, stopping);
    }

    /// Serves until the shutdown is triggered, and ends in its phases.
    pub async fn serve_with_shutdown(&self, listener: impl Into<Listener>, shutdown: &Shutdown) {
        let listener = listener.into();
        let (connections, signals) = (TaskTracker::new(), StopSignals::default());
        let mut ending = pin!(self.until_ending(shutdown));
        listener.log_listening();
        loop {
            tokio::select! {
                biased;
                () = &mut ending => break,
                accepted = listener.accept() => match accepted {
                    Ok(accepted) => {
                        connections.spawn(self.clone().serve_accepted(accepted, signals.clone()));
                    }
                    Err(error) => pause_after(&error).await,
                }
            }
        }
        // From now on connecting fails at once.
        drop(listener);
        let inner = &self.inner;
        let (open, sessions) = (inner.metrics.connections.get(), inner.sessions.all().len());
        tracing::info!(target: "refmcp::http", connections = open, sessions, "stopping");
        self.shut_down();
        signals.graceful.send();
        connections.close();
        tokio::select! {
            () = connections.wait() => {}
            () = sleep(shutdown.timeout) => {
                tracing::info!(connections = connections.len(), "not all exchanges have ended in time");
            }
            () = shutdown.reached(Phase::Closing) => {
                tracing::info!(connections = connections.len(), "told again to stop: connections are cut");
            }
        }
        signals.immediate.send();
        for session in inner.sessions.all() {
            session.driver.end();
        }
        inner.log_left_out();
        tracing::info!(target: "refmcp::http", "stopped");
    }

    /// Waits until no more connections are to be accepted. While the server drains before that, everything is served, but
    /// `/readyz` is not ready.
    async fn until_ending(&self, shutdown: &Shutdown) {
        shutdown.reached(Phase::Draining).await;
        self.drain();
        tracing::info!(target: "refmcp::http", "told to stop: the server is not ready any more");
        shutdown.drained().await;
    }

    /// Serves a connection. What only its beginning needs is freed with the future of that: there are many connections.
    fn serve_accepted(self, accepted: Accepted, signals: StopSignals) -> Serving {
        match accepted {
            Accepted::Tcp(stream, peer, encryption) => {
                // Small responses must not wait in the kernel's buffer.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "TCP_NODELAY");
                }
                let client = Client::new(peer, stream.local_addr().ok());
                match encryption {
                    Encryption::Plain => Serving::begin(self.begin_plain(stream, client, signals)),
                    #[cfg(feature = "tls")]
                    Encryption::Tls(tls) => Serving::begin(self.begin_tls(stream, client, tls, signals)),
                }
            }
            #[cfg(unix)]
            Accepted::Unix(stream) => Serving::begin(self.begin_plain(stream, Client::unix(), signals)),
        }
    }

    /// Counts a connection and reserves memory for it, unless there are too many.
    fn admit(self, client: Client, bytes: usize, signals: StopSignals) -> Option<Connection> {
        let inner = &self.inner;
        let memory = inner.memory.connection(client, &inner.options.trusted_proxies);
        let full = || Refusal::unavailable(Reason::Connections, "too many connections are open", 1);
        let counted = inner.metrics.connections.enter(inner.options.max_connections).ok_or_else(full);
        let admitted =
            counted.and_then(|counted| Ok((counted, memory.open(bytes).map_err(Refusal::no_memory)?)));
        let (counted, memory) =
            admitted.inspect_err(|refusal| inner.refused(client, None, None, refusal)).ok()?;
        let state = SocketState::default();
        Some(Connection { endpoint: self, client, signals, state, memory, _counted: counted })
    }

    async fn begin_plain<S: Socket>(
        self,
        mut stream: S,
        client: Client,
        signals: StopSignals,
    ) -> Option<BoxFuture> {
        let Some(connection) = self.admit(client, CONNECTION_BYTES, signals) else {
            refuse_full(stream).await;
            return None;
        };
        let inner = &connection.endpoint.inner;
        // The first bytes tell the version of HTTP.
        let (version, prefix) = tokio::select! {
            read = read_version(&mut stream) => read?,
            () = sleep(inner.options.head_timeout) => {
                inner.refused_slow_head(client);
                return None;
            }
            () = connection.signals.graceful.sent() => return None,
        };
        connection.serve(stream, prefix, version)
    }

    #[cfg(feature = "tls")]
    async fn begin_tls(
        self,
        stream: TcpStream,
        client: Client,
        tls: tls::Tls,
        signals: StopSignals,
    ) -> Option<BoxFuture> {
        let connection = self.admit(client, CONNECTION_BYTES + TLS_BYTES, signals)?;
        let inner = &connection.endpoint.inner;
        let stopped = &connection.signals.graceful;
        let (mut late, mut first) = (pin!(sleep(inner.options.head_timeout)), [0]);
        let begun = tokio::select! {
            begun = stream.peek(&mut first) => begun.is_ok_and(|bytes| bytes > 0),
            () = &mut late => {
                inner.refused_handshake(client, None);
                return None;
            }
            () = stopped.sent() => return None,
        };
        // A client that closes at once, as checks of a port do, is not refused.
        if !begun {
            tracing::debug!(target: "refmcp::http", "no TLS handshake was begun");
            return None;
        }
        let opened = tokio::select! {
            opened = tls.accept(stream) => opened.map_err(Some),
            () = &mut late => Err(None),
            () = stopped.sent() => return None,
        };
        match opened {
            Ok((stream, version)) => connection.serve(stream, Bytes::new(), version),
            Err(error) => {
                inner.refused_handshake(client, error.as_ref());
                None
            }
        }
    }
}

type BoxFuture<T = ()> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The work on a connection.
enum Serving {
    /// Until it is known how it is served.
    Beginning(BoxFuture<Option<BoxFuture>>),
    /// Until it ends.
    Requests(BoxFuture),
}

impl Serving {
    fn begin(beginning: impl Future<Output = Option<BoxFuture>> + Send + 'static) -> Self {
        Self::Beginning(Box::pin(beginning))
    }
}

impl Future for Serving {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if let Self::Beginning(beginning) = &mut *self {
            let Some(requests) = ready!(beginning.as_mut().poll(context)) else { return Poll::Ready(()) };
            *self = Self::Requests(requests);
        }
        match &mut *self {
            Self::Requests(requests) => requests.as_mut().poll(context),
            Self::Beginning(_) => Poll::Pending,
        }
    }
}

/// A connection that is counted.
struct Connection {
    endpoint: Endpoint,
    client: Client,
    signals: StopSignals,
    state: SocketState,
    memory: MemoryReservation,
    _counted: GaugeGuard,
}

impl Connection {
    /// Serves requests until the connection ends. The future of each version has its own box: one needs far more memory than
    /// the other.
    fn serve<S: Socket>(mut self, stream: S, prefix: Bytes, version: HttpVersion) -> Option<BoxFuture> {
        let is_tls = prefix.first() == Some(&TLS_HANDSHAKE);
        if version == HttpVersion::Http2 {
            // h2 has limits of its own for heads.
            self.state.begin_request();
            if let Err(error) = self.memory.try_grow(HTTP2_BYTES) {
                self.endpoint.inner.refused(self.client, None, None, &Refusal::no_memory(error));
                return None;
            }
        }
        let (write_timeout, state) = (self.endpoint.inner.options.write_timeout, self.state.clone());
        let stream = ClientSocket::new(stream, prefix, write_timeout, state, self.memory.account());
        Some(match version {
            HttpVersion::Http1 => Box::pin(self.serve_http1(stream, is_tls)),
            HttpVersion::Http2 => Box::pin(self.serve_http2(stream)),
        })
    }

    async fn serve_http1<S: Socket>(self, stream: ClientSocket<S>, is_tls: bool) {
        let Self { endpoint, signals, state, .. } = &self;
        // In a box, because a connection keeps the room for it also while it only reads a stream.
        let answer = |request| Box::pin(self.answer(request));
        let connection =
            http1(&endpoint.inner.options).serve_connection(TokioIo::new(stream), service_fn(answer));
        let mut connection = pin!(connection.with_upgrades());
        let mut served = signals.graceful.run_until_sent(connection.as_mut()).await;
        if served.is_none() {
            connection.as_mut().graceful_shutdown();
            served = signals.immediate.run_until_sent(connection).await;
        }
        if let Some(Err(error)) = served {
            state.drain_on_close();
            self.ended(&error, is_tls, state.is_head_begun());
        }
    }

    /// Answers a request of HTTP/1.1.
    async fn answer(&self, request: hyper::Request<Incoming>) -> Result<Response, Infallible> {
        self.state.begin_request();
        let request = request.map(Body::new);
        let response = self.endpoint.answer(self.client, self.memory.account(), request).await;
        // What comes after an upgrade is no head of a request.
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            self.state.end_request();
            if response.headers().contains_key(header::CONNECTION) {
                self.state.drain_on_close();
            }
        }
        Ok(response)
    }

    async fn serve_http2<S: Socket>(self, stream: ClientSocket<S>) {
        let Self { endpoint, client, signals, memory, .. } = &self;
        let client = *client;
        let builder = http2::builder(&endpoint.inner, client);
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let (endpoint, memory) = (endpoint.clone(), memory.account().clone());
            Box::pin(
                async move { Ok::<_, Infallible>(endpoint.answer_http2(client, &memory, request).await) },
            )
        });
        let most = http2::most_head_bytes(&endpoint.inner.options);
        let stream = watched(stream, endpoint.inner.clone(), client, most);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        let mut served = signals.graceful.run_until_sent(connection.as_mut()).await;
        if served.is_none() {
            connection.as_mut().graceful_shutdown();
            served = signals.immediate.run_until_sent(connection).await;
        }
        if let Some(Err(error)) = served {
            self.ended(&error, false, false);
        }
    }

    /// Reports how a connection has ended, where that is a fault.
    fn ended(&self, error: &hyper::Error, is_tls: bool, head_begun: bool) {
        tracing::debug!(target: "refmcp::http", %error, "a connection ended");
        self.endpoint.inner.refused_head(self.client, error, is_tls, head_begun);
    }
}

impl Endpoint {
    async fn answer_http2(
        &self,
        client: Client,
        memory: &MemoryAccount,
        request: hyper::Request<Incoming>,
    ) -> Response {
        let (head, body) = request.into_parts();
        match http2::reserve(memory, &head) {
            Ok(reserved) => {
                let request = hyper::Request::from_parts(head, Body::new(body));
                http2::in_parts(self.answer(client, memory, request).await, reserved)
            }
            Err(error) => {
                let refusal = Refusal::no_memory(error);
                self.inner.refused(client, Some(&head.method), None, &refusal);
                refusal.into_response()
            }
        }
    }
}

/// Refuses a connection because there are too many, or no memory for more. Best effort: the client may be gone.
async fn refuse_full(mut stream: impl Socket) {
    let _ = timeout(REFUSAL_TIMEOUT, stream.write_all(FULL)).await;
    let state = SocketState::default();
    state.drain_on_close();
    let memory = MemoryBudget::new(0).account();
    drop(ClientSocket::new(stream, Bytes::new(), REFUSAL_TIMEOUT, state, &memory));
}

/// A builder for one connection, whose requests share a timer.
fn http1(options: &Options) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(HeadTimer::default())
        .header_read_timeout(options.head_timeout)
        .max_buf_size(options.head_bytes.max(8 << 10));
    builder
}

/// Reads the first bytes and the version of HTTP that they are of; none if the client closes before.
async fn read_version(stream: &mut impl Socket) -> Option<(HttpVersion, Bytes)> {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0";
    let mut bytes = BytesMut::with_capacity(1024);
    while stream.read_buf(&mut bytes).await.ok()? > 0 {
        if bytes.starts_with(PREFACE) {
            return Some((HttpVersion::Http2, bytes.freeze()));
        }
        if !PREFACE.starts_with(&bytes) {
            return Some((HttpVersion::Http1, bytes.freeze()));
        }
    }
    None
}

/// Pauses after a fault of accepting, unless it is one of the accepted connection alone.
async fn pause_after(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if !matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        tracing::warn!(%error, "no connection can be accepted now");
        sleep(ACCEPT_PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
    use tokio::time::Instant;

    use super::*;

    /// Every connection holds these futures, also while it only reads a stream.
    #[tokio::test]
    async fn a_connection_needs_little_memory() {
        let server = refmcp_server::Server::builder("small", "1.0").build().unwrap();
        let endpoint = Endpoint::builder(server).build();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let admitted = endpoint.admit(Client::new(address, None), 0, StopSignals::default());
        let connection = admitted.unwrap();
        let (state, memory) = (connection.state.clone(), connection.memory.account().clone());
        let socket = ClientSocket::new(stream, Bytes::new(), ACCEPT_PAUSE, state, &memory);
        let http1 = size_of_val(&connection.serve_http1(socket, false));
        assert!(http1 <= 1280, "{http1}");
        assert!(size_of::<Serving>() <= 24);
    }

    /// A stream that counts how often it is polled.
    struct Counted<S>(S, Arc<AtomicUsize>);

    impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            self.1.fetch_add(1, Ordering::Relaxed);
            Pin::new(&mut self.0).poll_read(context, buffer)
        }
    }

    impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
        fn poll_write(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.0).poll_write(context, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_flush(context)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_shutdown(context)
        }
    }

    /// Thousands of such connections must not keep the server busy.
    #[tokio::test(start_paused = true)]
    async fn a_connection_with_a_part_of_the_preface_waits_without_waking_up() {
        let server = refmcp_server::Server::builder("quiet", "1.0").build().unwrap();
        let endpoint = Endpoint::builder(server).build();
        let (timeout, began) = (endpoint.inner.options.head_timeout, Instant::now());
        for part in [&b""[..], b"P", b"PRI * HTTP/2."] {
            let ((near, mut far), polls) = (tokio::io::duplex(64), Arc::new(AtomicUsize::new(0)));
            far.write_all(part).await.unwrap();
            let stream = Counted(near, polls.clone());
            let served = Serving::begin(endpoint.clone().begin_plain(
                stream,
                Client::default(),
                StopSignals::default(),
            ));
            let ended = tokio::spawn(async move {
                served.await;
                Instant::now()
            });
            let idle_from = Instant::now();
            sleep(timeout - Duration::from_millis(1)).await;
            // The bytes, and that there are no more.
            assert!(polls.load(Ordering::Relaxed) <= 2, "{polls:?} of {part:?}");
            assert!(!ended.is_finished(), "{part:?}");
            assert_eq!(ended.await.unwrap() - idle_from, timeout, "{part:?}");
        }
        assert_eq!(began.elapsed(), timeout * 3);
    }

    #[test]
    fn the_full_response_has_its_content_length() {
        let text = std::str::from_utf8(FULL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
    }
}
