//! Connections to one origin, and those of them that wait for work.
//!
//! Over HTTP/1.1 whoever sends a request owns the connection until the answer is read, and drives it itself; there is
//! no task behind it that would have to be woken. Over HTTP/2 all share one connection, which has a task.

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

use super::address::Target;
use super::dial::Dialer;
use super::response::{Http1Connection, Http2Connection, HttpResponse, SendError, describe};

/// Connections that may wait for work.
const MOST_IDLE: usize = 256;
/// How often a shared connection is asked whether it is alive while something is going on.
const PING_EVERY: Duration = Duration::from_secs(20);
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;

/// Connections to one origin.
#[derive(Debug)]
pub(super) struct Pool {
    dialer: Dialer,
    idle: Arc<IdleConnections>,
    shared: Mutex<Option<Shared>>,
    /// Held while it is found out whether a connection can be shared, so that not everybody makes one.
    turn: tokio::sync::Mutex<()>,
    known_unshared: AtomicBool,
}

/// A connection for all.
#[derive(Debug)]
struct Shared {
    common: Http2Connection,
    task: AbortHandle,
}

/// Where a request can be sent.
enum Channel {
    Own { link: Box<Http1Connection>, used: bool },
    Shared { common: Http2Connection, used: bool },
}

impl Pool {
    pub(super) fn new(dialer: Dialer) -> Self {
        let known_unshared = AtomicBool::new(!dialer.address().is_secure());
        let idle =
            Arc::new(IdleConnections { patience: dialer.settings().idle_timeout, waiting: Mutex::default() });
        Self { dialer, idle, shared: Mutex::new(None), turn: tokio::sync::Mutex::new(()), known_unshared }
    }

    /// Sends a request and waits for the head of the response, no longer than this once there is a connection.
    pub(super) async fn send(
        &self,
        method: Method,
        target: &Target,
        headers: HeaderMap,
        body: Bytes,
        patience: Option<Duration>,
    ) -> Result<HttpResponse, TransportError> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.headers_mut() = headers;
        loop {
            let (sent, used) = match self.channel().await? {
                Channel::Own { link, used } => {
                    *request.uri_mut() = target.in_origin.clone();
                    (in_time(patience, link.send(request, &self.idle)).await?, used)
                }
                Channel::Shared { common, used } => {
                    *request.uri_mut() = target.absolute.clone();
                    // The address says it; the header would say it twice.
                    request.headers_mut().remove(header::HOST);
                    (in_time(patience, common.send(request)).await?, used)
                }
            };
            match sent {
                Ok(answer) => return Ok(answer),
                // A connection that waited may have ended just now. What never left is sent over another.
                Err(SendError { message: Some(unsent), .. }) if used => request = *unsent,
                Err(SendError { why, .. }) => return Err(TransportError::Broken(why)),
            }
        }
    }

    async fn channel(&self) -> Result<Channel, TransportError> {
        if let Some(link) = self.idle.take() {
            return Ok(Channel::Own { link, used: true });
        }
        if self.known_unshared.load(Ordering::Relaxed) {
            return self.own().await;
        }
        if let Some(common) = self.live_shared() {
            return Ok(Channel::Shared { common, used: true });
        }
        let _turn = self.turn.lock().await;
        match self.live_shared() {
            Some(common) => Ok(Channel::Shared { common, used: true }),
            None => self.own().await,
        }
    }

    /// A new connection.
    async fn own(&self) -> Result<Channel, TransportError> {
        let stream = self.dialer.dial().await.map_err(TransportError::Unreachable)?;
        let scope = stream.scope();
        let unusable = |fault: hyper::Error| TransportError::Unreachable(describe(&fault));
        if stream.speaks_http2() {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder
                .timer(TokioTimer::new())
                .keep_alive_interval(PING_EVERY)
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW);
            let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(unusable)?;
            let task = tokio::spawn(async move {
                // Whoever waits for something over it is told as well.
                if let Err(fault) = connection.await {
                    tracing::debug!(%fault, "a connection ended");
                }
            });
            // One that is replaced lives on for as long as somebody uses it.
            let common = Http2Connection { sender, scope };
            *self.shared.lock() = Some(Shared { common: common.clone(), task: task.abort_handle() });
            self.known_unshared.store(false, Ordering::Relaxed);
            return Ok(Channel::Shared { common, used: false });
        }
        self.known_unshared.store(true, Ordering::Relaxed);
        let (sender, connection) =
            http1::Builder::new().handshake(TokioIo::new(stream)).await.map_err(unusable)?;
        Ok(Channel::Own { link: Box::new(Http1Connection::new(sender, connection, scope)), used: false })
    }

    fn live_shared(&self) -> Option<Http2Connection> {
        let mut shared = self.shared.lock();
        if shared.as_ref().is_some_and(|shared| shared.common.sender.is_closed()) {
            *shared = None;
        }
        shared.as_ref().map(|shared| shared.common.clone())
    }

    /// Ends every connection that nobody uses, and keeps none from now on.
    pub(super) fn close(&self) {
        self.idle.close();
        if let Some(shared) = self.shared.lock().take() {
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

/// Connections that wait for work, the longest waiting first.
#[derive(Debug)]
pub(super) struct IdleConnections {
    patience: Duration,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    links: Vec<(Instant, Box<Http1Connection>)>,
    sweeper: Option<AbortHandle>,
    closed: bool,
}

impl IdleConnections {
    /// The one that waited for the shortest time and still lives.
    fn take(&self) -> Option<Box<Http1Connection>> {
        loop {
            let (since, mut link) = self.waiting.lock().links.pop()?;
            if since.elapsed() < self.patience && link.is_usable() {
                return Some(link);
            }
        }
    }

    /// Keeps a connection for the next request, if it can carry one.
    pub(super) fn give_back(self: &Arc<Self>, mut link: Box<Http1Connection>) {
        if !link.is_usable() {
            return;
        }
        let mut waiting = self.waiting.lock();
        if waiting.closed || waiting.links.len() >= MOST_IDLE {
            return;
        }
        waiting.links.push((Instant::now(), link));
        if waiting.sweeper.is_none() {
            waiting.sweeper = Some(tokio::spawn(sweep(self.clone())).abort_handle());
        }
    }

    fn close(&self) {
        let mut waiting = self.waiting.lock();
        waiting.closed = true;
        waiting.links.clear();
        if let Some(sweeper) = waiting.sweeper.take() {
            sweeper.abort();
        }
    }
}

/// Ends connections that waited too long, until none is left.
async fn sweep(idle: Arc<IdleConnections>) {
    loop {
        tokio::time::sleep(idle.patience).await;
        let mut waiting = idle.waiting.lock();
        waiting.links.retain(|(since, _)| since.elapsed() < idle.patience);
        if waiting.links.is_empty() {
            waiting.sweeper = None;
            return;
        }
    }
}
