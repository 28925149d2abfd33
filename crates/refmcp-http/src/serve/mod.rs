//! A listener of its own: takes connections, tells HTTP/1.1 from HTTP/2, and ends them in order.

mod head_timer;
pub(crate) mod listener;
mod ops;
pub(crate) mod shutdown;
mod signal;
mod socket;
#[cfg(feature = "tls")]
pub(crate) mod tls;
#[cfg(unix)]
pub(crate) mod unix;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::caller::Client;
use crate::endpoint::Endpoint;
use crate::options::Options;
use crate::refusal::{Reason, Refusal};
use head_timer::HeadTimer;
use listener::{Accepted, Listener, Peek};
use shutdown::{Phase, Shutdown};
use signal::Signal;
use socket::{ClientSocket, Lingers, Socket};

/// How long nothing is accepted when the system has run out of something.
const BREATH: Duration = Duration::from_millis(100);

/// Requests that one connection of HTTP/2 may have open.
const STREAMS_OF_A_CONNECTION: u32 = 256;

/// How often a connection of HTTP/2 is asked whether it is there, and how long it may take to answer.
const PING_EVERY: Duration = Duration::from_secs(20);

/// What a client is told for whom there is no connection.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n\
    content-type: text/plain\r\ncontent-length: 30\r\n\r\ntoo many connections are open\n";

/// When connections end.
#[derive(Debug, Clone, Default)]
struct Ends {
    /// They take no more requests.
    soon: Signal,
    /// They end whatever they do.
    now: Signal,
}

/// What connections are made of.
#[derive(Debug, Clone)]
enum Wrapping {
    Plain,
    #[cfg(feature = "tls")]
    Tls(tls::Tls),
}

/// The two versions of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HttpVersion {
    One,
    Two,
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

    /// Serves whatever comes in by a port or a Unix socket until the shutdown is triggered, and ends in its steps.
    pub async fn serve_with_shutdown(&self, listener: impl Into<Listener>, shutdown: &Shutdown) {
        let listener = listener.into();
        let (connections, ends) = (TaskTracker::new(), Ends::default());
        let mut ending = pin!(self.until_ending(shutdown));
        listener.log_listening();
        loop {
            tokio::select! {
                biased;
                () = &mut ending => break,
                accepted = listener.accept() => match accepted {
                    Ok(Accepted::Tcp(stream, peer, wrapping)) => {
                        let serving = self.clone().connection(stream, peer, wrapping, ends.clone());
                        connections.spawn(serving);
                    }
                    #[cfg(unix)]
                    Ok(Accepted::Unix(stream)) => {
                        connections.spawn(self.clone().unix_connection(stream, ends.clone()));
                    }
                    Err(fault) if is_of_one_connection(&fault) => {}
                    Err(fault) => {
                        tracing::warn!(%fault, "no connection can be accepted now");
                        sleep(BREATH).await;
                    }
                }
            }
        }
        // From here on, connecting fails at once instead of waiting for somebody who never comes.
        drop(listener);
        let inner = &self.inner;
        let (open, sessions) = (inner.metrics.connections.get(), inner.sessions.all().len());
        tracing::info!(target: "refmcp::http", connections = open, sessions, "stopping");
        self.shut_down();
        ends.soon.give();
        connections.close();
        tokio::select! {
            () = connections.wait() => {}
            () = sleep(shutdown.timeout()) => {
                tracing::info!(connections = connections.len(), "not all exchanges have ended in time");
            }
            () = shutdown.reached(Phase::Cut) => {
                tracing::info!(connections = connections.len(), "told again to stop: connections are cut");
            }
        }
        ends.now.give();
        for session in self.inner.sessions.all() {
            session.conversation.end();
        }
        inner.log_left_out();
        tracing::info!(target: "refmcp::http", "stopped");
    }

    /// Waits until nothing new is to be accepted. Before that there may be some time in which everything is served, but
    /// the server says that it is not ready.
    async fn until_ending(&self, shutdown: &Shutdown) {
        shutdown.reached(Phase::Draining).await;
        self.drain();
        tracing::info!(target: "refmcp::http", "told to stop: the server is not ready any more");
        shutdown.drained().await;
    }

    /// One connection, from its first byte to its last.
    async fn connection(self, stream: TcpStream, peer: SocketAddr, wrapping: Wrapping, ends: Ends) {
        let inner = &self.inner;
        let Some(_counted) = inner.metrics.connections.enter(inner.options.max_connections) else {
            let full = Refusal::full(Reason::Connections, "too many connections are open", 1);
            inner.refused(Client::new(peer, None), None, None, &full);
            if matches!(wrapping, Wrapping::Plain) {
                say_full(stream).await;
            }
            return;
        };
        // Small answers must not wait for company.
        if let Err(fault) = stream.set_nodelay(true) {
            tracing::debug!(%fault, "TCP_NODELAY");
        }
        let client = Client::new(peer, stream.local_addr().ok());
        let first_by = Instant::now() + inner.options.head_timeout;
        match wrapping {
            Wrapping::Plain => self.speak_plain(stream, client, first_by, ends).await,
            #[cfg(feature = "tls")]
            Wrapping::Tls(tls) => {
                let opened = tokio::select! {
                    opened = Box::pin(tls.accept(stream)) => opened,
                    () = sleep_until(first_by) => return,
                    () = ends.soon.given() => return,
                };
                match opened {
                    Ok((stream, version)) => self.speak(stream, version, client, ends).await,
                    Err(fault) => tracing::debug!(%fault, "no TLS"),
                }
            }
        }
    }

    /// The same of a Unix socket.
    #[cfg(unix)]
    async fn unix_connection(self, stream: UnixStream, ends: Ends) {
        let inner = &self.inner;
        let Some(_counted) = inner.metrics.connections.enter(inner.options.max_connections) else {
            inner.metrics.refused(Reason::Connections);
            return say_full(stream).await;
        };
        let first_by = Instant::now() + inner.options.head_timeout;
        self.speak_plain(stream, Client::unix(), first_by, ends).await;
    }

    /// Waits for the first bytes, which tell the version of HTTP, and speaks it.
    async fn speak_plain<S: Socket + Peek>(self, stream: S, client: Client, first_by: Instant, ends: Ends) {
        let version = tokio::select! {
            version = version_of(&stream) => version,
            () = sleep_until(first_by) => return,
            () = ends.soon.given() => return,
        };
        if let Some(version) = version {
            self.speak(stream, version, client, ends).await;
        }
    }

    /// Speaks HTTP until the connection ends or has to. Each version has a box of its own: there are many connections,
    /// and one version needs far more room than the other.
    async fn speak<S: Socket>(self, stream: S, version: HttpVersion, client: Client, ends: Ends) {
        let served = match version {
            HttpVersion::One => Box::pin(self.speak_one(stream, client, ends)).await,
            HttpVersion::Two => Box::pin(self.speak_two(stream, client, ends)).await,
        };
        if let Err(fault) = served {
            tracing::debug!(target: "refmcp::http", %fault, "a connection ended");
        }
    }

    async fn speak_one<S: Socket>(self, stream: S, client: Client, ends: Ends) -> hyper::Result<()> {
        let lingers = Lingers::default();
        let service = service_fn(|request: hyper::Request<Incoming>| async {
            let response = self.answer(client, request.map(Body::new)).await;
            if response.headers().contains_key(header::CONNECTION)
                && response.status() != StatusCode::SWITCHING_PROTOCOLS
            {
                lingers.yes();
            }
            Ok::<Response, Infallible>(response)
        });
        let stream =
            TokioIo::new(ClientSocket::new(stream, self.inner.options.write_timeout, lingers.clone()));
        let builder = http1(&self.inner.options);
        let mut connection = pin!(builder.serve_connection(stream, service).with_upgrades());
        let mut served = ends.soon.unless_given(connection.as_mut()).await;
        if served.is_none() {
            connection.as_mut().graceful_shutdown();
            served = ends.now.unless_given(connection).await;
        }
        let served = served.unwrap_or(Ok(()));
        if served.is_err() {
            lingers.yes();
        }
        served
    }

    async fn speak_two<S: Socket>(self, stream: S, client: Client, ends: Ends) -> hyper::Result<()> {
        let (builder, write_timeout) = (http2(&self.inner.options), self.inner.options.write_timeout);
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let endpoint = self.clone();
            async move { Ok::<_, Infallible>(endpoint.answer(client, request.map(Body::new)).await) }
        });
        let stream = TokioIo::new(ClientSocket::new(stream, write_timeout, Lingers::default()));
        let mut connection = pin!(builder.serve_connection(stream, service));
        if let Some(served) = ends.soon.unless_given(connection.as_mut()).await {
            return served;
        }
        connection.as_mut().graceful_shutdown();
        ends.now.unless_given(connection).await.unwrap_or(Ok(()))
    }
}

/// Tells a client that there is no room for it. Best effort: one that cannot take even this is gone.
async fn say_full(mut stream: impl Socket) {
    let _ = timeout(BREATH, stream.write_all(FULL)).await;
    let lingers = Lingers::default();
    lingers.yes();
    drop(ClientSocket::new(stream, BREATH, lingers));
}

/// For one connection: its requests share an alarm.
fn http1(options: &Options) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(HeadTimer::default())
        .header_read_timeout(options.head_timeout)
        .max_buf_size(options.head_bytes.max(8 << 10));
    builder
}

fn http2(options: &Options) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_EVERY)
        .max_concurrent_streams(STREAMS_OF_A_CONNECTION)
        .max_header_list_size(u32::try_from(options.head_bytes).unwrap_or(u32::MAX));
    builder
}

/// Which version the first bytes are of; they are left where they are. Nothing when there are none.
async fn version_of(stream: &impl Peek) -> Option<HttpVersion> {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0";
    let mut bytes = [0; PREFACE.len()];
    loop {
        let count = stream.peek(&mut bytes).await.ok().filter(|count| *count > 0)?;
        let seen = bytes.get(..count)?;
        if !PREFACE.starts_with(seen) {
            return Some(HttpVersion::One);
        }
        if count == PREFACE.len() {
            return Some(HttpVersion::Two);
        }
        // Nothing follows on a stream that was closed by then.
        if stream.is_read_closed().await.ok()? {
            return None;
        }
        // There is nothing to wait for: what is there can be read already.
        sleep(Duration::from_millis(5)).await;
    }
}

/// Whether a fault of accepting is about the connection that was accepted, and not about us.
fn is_of_one_connection(fault: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(fault.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every connection has room for it, also while it does nothing but read a stream.
    #[tokio::test]
    async fn answering_needs_little_room() {
        let server = refmcp_server::Server::builder("small", "1.0").build().unwrap();
        let endpoint = Endpoint::builder(server).build();
        let client = Client::new(([127, 0, 0, 1], 1).into(), None);
        let bytes = size_of_val(&endpoint.answer(client, axum::extract::Request::default()));
        assert!(bytes <= 1536, "{bytes}");
    }

    #[test]
    fn the_farewell_is_as_long_as_it_says() {
        let text = std::str::from_utf8(FULL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
    }
}
