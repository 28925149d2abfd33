//! The connection pool of one origin.
//!
//! Over HTTP/1.1 a request owns its connection until the response is read, and drives it itself: there is no task behind
//! it that would have to be woken. Over HTTP/2 all requests share one connection, which has a task. hyper-util's pool
//! spawns a task for every connection, does not tell the address of the peer, and follows no request that never left.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper::{HeaderMap, Method, Request, header};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use refmcp_proto::engine::client::TransportError;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::address::RequestTarget;
use super::dial::Dialer;
use super::response::{Http1Connection, Http2Connection, HttpResponse, SendError, describe};

const MAX_IDLE: usize = 256;
/// How often a connection of HTTP/2 is pinged while it is used.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;

/// Connections to one origin.
#[derive(Debug)]
pub(crate) struct Pool {
    dialer: Dialer,
    idle: Arc<IdleConnections>,
    http2: Mutex<Option<SharedConnection>>,
    /// Held by the first request, which finds out whether the server speaks HTTP/2: the others then share its connection.
    probing: tokio::sync::Mutex<()>,
    known_http1: AtomicBool,
}

#[derive(Debug)]
struct SharedConnection {
    connection: Http2Connection,
    task: AbortHandle,
}

enum Connection {
    Http1(Box<Http1Connection>),
    Http2(Http2Connection),
}

impl Pool {
    pub(crate) fn new(dialer: Dialer) -> Self {
        let known_http1 = AtomicBool::new(!dialer.address().is_secure());
        let idle =
            Arc::new(IdleConnections { timeout: dialer.settings().idle_timeout, waiting: Mutex::default() });
        Self { dialer, idle, http2: Mutex::new(None), probing: tokio::sync::Mutex::new(()), known_http1 }
    }

    /// Sends a request and waits for the head of the response: no longer than `patience` once there is a connection.
    pub(crate) async fn send(
        &self,
        method: Method,
        target: &RequestTarget,
        headers: HeaderMap,
        body: Bytes,
        patience: Option<Duration>,
    ) -> Result<HttpResponse, TransportError> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.headers_mut() = headers;
        loop {
            let (connection, reused) = self.connection().await?;
            let sent = match connection {
                Connection::Http1(connection) => {
                    *request.uri_mut() = target.origin_form.clone();
                    in_time(patience, connection.send(request, Some(self.idle.clone()))).await?
                }
                Connection::Http2(connection) => {
                    *request.uri_mut() = target.absolute.clone();
                    // The URI has it already.
                    request.headers_mut().remove(header::HOST);
                    in_time(patience, connection.send(request)).await?
                }
            };
            match sent {
                Ok(response) => return Ok(response),
                // An idle connection may have ended just now. A request that never left is sent over another.
                Err(SendError { unsent: Some(unsent), .. }) if reused => request = *unsent,
                Err(SendError { error, .. }) => return Err(TransportError::Broken(describe(&error))),
            }
        }
    }

    /// A connection, and whether it was used before.
    async fn connection(&self) -> Result<(Connection, bool), TransportError> {
        if let Some(connection) = self.idle.take() {
            return Ok((Connection::Http1(connection), true));
        }
        if self.known_http1.load(Ordering::Relaxed) {
            return Ok((self.connect().await?, false));
        }
        if let Some(connection) = self.live_http2() {
            return Ok((Connection::Http2(connection), true));
        }
        let _probing = self.probing.lock().await;
        match self.live_http2() {
            Some(connection) => Ok((Connection::Http2(connection), true)),
            None => Ok((self.connect().await?, false)),
        }
    }

    async fn connect(&self) -> Result<Connection, TransportError> {
        let stream =
            self.dialer.dial().await.map_err(|error| TransportError::Unreachable(error.to_string()))?;
        let unusable = |error: hyper::Error| TransportError::Unreachable(describe(&error));
        self.known_http1.store(!stream.is_http2, Ordering::Relaxed);
        if !stream.is_http2 {
            let connection = Http1Connection::handshake(stream, &http1::Builder::new()).await;
            return Ok(Connection::Http1(connection.map_err(unusable)?));
        }
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW);
        let (sender, driver) = builder.handshake(TokioIo::new(stream.io)).await.map_err(unusable)?;
        let task = tokio::spawn(async move {
            // The error shows up in the responses as well.
            if let Err(error) = driver.await {
                tracing::debug!(%error, "a connection ended");
            }
        });
        // A connection that is replaced lives until its last request is answered.
        let connection = Http2Connection { sender, scope: stream.scope };
        *self.http2.lock() =
            Some(SharedConnection { connection: connection.clone(), task: task.abort_handle() });
        Ok(Connection::Http2(connection))
    }

    fn live_http2(&self) -> Option<Http2Connection> {
        let mut http2 = self.http2.lock();
        http2.take_if(|shared| shared.connection.sender.is_closed());
        http2.as_ref().map(|shared| shared.connection.clone())
    }

    /// Ends idle connections and the shared one, and keeps none from now on.
    pub(crate) fn close(&self) {
        self.idle.close();
        if let Some(shared) = self.http2.lock().take() {
            shared.task.abort();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.close();
    }
}

async fn in_time<T>(
    patience: Option<Duration>,
    sending: impl Future<Output = T>,
) -> Result<T, TransportError> {
    let Some(patience) = patience else { return Ok(sending.await) };
    let late = |_| TransportError::Broken(format!("the server sent no response within {patience:?}"));
    timeout(patience, sending).await.map_err(late)
}

/// Idle connections of HTTP/1.1, the longest waiting first.
#[derive(Debug)]
pub(crate) struct IdleConnections {
    timeout: Duration,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    connections: Vec<(Instant, Box<Http1Connection>)>,
    sweeper: Option<AbortHandle>,
    closed: bool,
}

impl IdleConnections {
    /// The connection that was used last and still lives.
    fn take(&self) -> Option<Box<Http1Connection>> {
        loop {
            let (since, mut connection) = self.waiting.lock().connections.pop()?;
            if since.elapsed() < self.timeout && connection.is_usable() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection for the next request, if it can carry one.
    pub(crate) fn give_back(self: &Arc<Self>, mut connection: Box<Http1Connection>) {
        if !connection.is_usable() {
            return;
        }
        let mut waiting = self.waiting.lock();
        if waiting.closed || waiting.connections.len() >= MAX_IDLE {
            return;
        }
        waiting.connections.push((Instant::now(), connection));
        if waiting.sweeper.is_none() {
            waiting.sweeper = Some(tokio::spawn(sweep(self.clone())).abort_handle());
        }
    }

    fn close(&self) {
        let mut waiting = self.waiting.lock();
        waiting.closed = true;
        waiting.connections.clear();
        if let Some(sweeper) = waiting.sweeper.take() {
            sweeper.abort();
        }
    }
}

/// Ends connections that were idle for too long, until none is left.
async fn sweep(idle: Arc<IdleConnections>) {
    loop {
        tokio::time::sleep(idle.timeout).await;
        let mut waiting = idle.waiting.lock();
        waiting.connections.retain(|(since, _)| since.elapsed() < idle.timeout);
        if waiting.connections.is_empty() {
            waiting.sweeper = None;
            return;
        }
    }
}
