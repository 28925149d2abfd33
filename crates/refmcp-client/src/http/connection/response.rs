//! Requests over one connection, and their responses.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::{TrySendError, http1, http2};
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use refmcp_transport::observer::{Direction, Observed};
use tokio::time::timeout;

use super::address_scope::AddressScope;
use super::dial::{Io, Stream};
use super::pool::IdleConnections;

/// An unwanted body is read up to this size and time, so that its connection can be used again.
const MAX_DISCARDED: usize = 64 << 10;
const DISCARD_TIME: Duration = Duration::from_secs(1);
/// Bytes reserved at once for a body that comes in pieces.
const MAX_RESERVED: usize = 1 << 20;

/// A request that was not answered; with the request if it never left.
pub(crate) struct SendError {
    pub(crate) error: hyper::Error,
    pub(crate) unsent: Option<Box<Request<Full<Bytes>>>>,
}

impl From<TrySendError<Request<Full<Bytes>>>> for SendError {
    fn from(mut error: TrySendError<Request<Full<Bytes>>>) -> Self {
        let unsent = error.take_message().map(Box::new);
        Self { error: error.into_error(), unsent }
    }
}

type Connection = http1::Connection<TokioIo<Box<dyn Io>>, Full<Bytes>>;

/// A connection of HTTP/1.1. It has no task of its own: its holder drives it.
pub(crate) struct Http1Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    /// `None` once it has ended.
    connection: Option<Connection>,
    scope: AddressScope,
}

impl Http1Connection {
    pub(crate) async fn handshake(stream: Stream, builder: &http1::Builder) -> hyper::Result<Box<Self>> {
        let (sender, connection) = builder.handshake(TokioIo::new(stream.io)).await?;
        Ok(Box::new(Self { sender, connection: Some(connection), scope: stream.scope }))
    }

    /// True if another request can be sent.
    pub(crate) fn is_usable(&mut self) -> bool {
        drive(&mut self.connection, &mut Context::from_waker(Waker::noop()));
        self.connection.is_some() && self.sender.is_ready()
    }

    /// Sends a request and waits for the head of the response. Once the body is read, the connection goes to `idle`.
    pub(crate) async fn send(
        mut self: Box<Self>,
        request: Request<Full<Bytes>>,
        idle: Option<Arc<IdleConnections>>,
    ) -> Result<HttpResponse, SendError> {
        let response = {
            let mut sending = pin!(self.sender.try_send_request(request));
            let connection = &mut self.connection;
            poll_fn(|cx| {
                drive(connection, cx);
                sending.as_mut().poll(cx)
            })
            .await?
        };
        Ok(HttpResponse::new(response, self.scope, Some((self, idle))))
    }
}

/// A connection of HTTP/2, which several requests share.
#[derive(Debug, Clone)]
pub(crate) struct Http2Connection {
    pub(crate) sender: http2::SendRequest<Full<Bytes>>,
    pub(crate) scope: AddressScope,
}

impl Http2Connection {
    /// Sends a request and waits for the head of the response.
    pub(crate) async fn send(mut self, request: Request<Full<Bytes>>) -> Result<HttpResponse, SendError> {
        if let Err(error) = self.sender.ready().await {
            return Err(SendError { error, unsent: Some(Box::new(request)) });
        }
        Ok(HttpResponse::new(self.sender.try_send_request(request).await?, self.scope, None))
    }
}

/// Does what the connection can do now.
fn drive(connection: &mut Option<Connection>, cx: &mut Context<'_>) {
    if let Some(driven) = connection
        && let Poll::Ready(ended) = Pin::new(driven).poll(cx)
    {
        // The error shows up in the response or its body as well.
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended");
        }
        *connection = None;
    }
}

impl fmt::Debug for Http1Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http1Connection").field("open", &self.connection.is_some()).finish_non_exhaustive()
    }
}

/// An HTTP/1.1 connection in use, and where it waits afterwards.
type OwnedConnection = Option<(Box<Http1Connection>, Option<Arc<IdleConnections>>)>;

/// A response whose head has come.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
    /// Where the server is.
    pub(crate) scope: AddressScope,
    pub(crate) observed: Observed,
}

impl HttpResponse {
    /// The same response, which is told to an observer.
    #[must_use]
    pub(crate) fn observed_by(mut self, observed: &Observed) -> Self {
        self.observed = observed.clone();
        self.body.end.observed = observed.clone();
        self
    }

    fn new(response: Response<Incoming>, scope: AddressScope, connection: OwnedConnection) -> Self {
        let (head, incoming) = response.into_parts();
        let is_over = incoming.is_end_stream();
        let end = BodyEnd { observed: Observed::default(), is_over, is_broken: false };
        let body = Body { incoming, end, connection };
        Self { status: head.status, headers: head.headers, body, scope, observed: Observed::default() }
    }

    /// Discards the body; an observer sees its beginning. The connection is kept if the rest is short, else it ends.
    pub(crate) async fn discard(mut self) {
        if !self.body.is_over() {
            let beginning = self.body.beginning(MAX_DISCARDED).await;
            if !beginning.is_empty() {
                self.observed.received(&beginning);
            }
            if beginning.len() >= MAX_DISCARDED {
                return;
            }
        }
        self.body.finish();
    }
}

/// Why a body cannot be read whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BodyError {
    TooLong,
    Broken(String),
}

/// The body of a response, with the connection it comes over unless that is shared.
#[derive(Debug)]
pub(crate) struct Body {
    incoming: Incoming,
    end: BodyEnd,
    connection: OwnedConnection,
}

/// How far a body was read. The end is told as it is dropped, behind what was read.
#[derive(Debug)]
struct BodyEnd {
    observed: Observed,
    is_over: bool,
    is_broken: bool,
}

impl Drop for BodyEnd {
    fn drop(&mut self) {
        // What broke has neither ended nor been left.
        if !self.is_broken {
            self.observed.stream_ended(if self.is_over { Direction::Received } else { Direction::Sent });
        }
    }
}

impl Body {
    /// The next piece; `None` at the end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, String> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, String>> {
        let mut driven = false;
        loop {
            match Pin::new(&mut self.incoming).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => return Poll::Ready(Ok(Some(data))),
                    // Trailers are not used.
                    Err(_) => continue,
                },
                Poll::Ready(Some(Err(error))) => {
                    self.end.is_broken = true;
                    return Poll::Ready(Err(describe(&error)));
                }
                Poll::Ready(None) => {
                    self.end.is_over = true;
                    return Poll::Ready(Ok(None));
                }
                Poll::Pending => {}
            }
            match &mut self.connection {
                Some((owned, _)) if !driven => drive(&mut owned.connection, cx),
                _ => return Poll::Pending,
            }
            driven = true;
        }
    }

    /// True if nothing more comes.
    pub(crate) fn is_over(&self) -> bool {
        self.end.is_over || self.incoming.is_end_stream()
    }

    /// The whole body, without a copy if it came in one piece.
    pub(crate) async fn whole(&mut self, limit: usize) -> Result<Bytes, BodyError> {
        let announced = usize::try_from(self.incoming.size_hint().lower()).unwrap_or(usize::MAX);
        if announced > limit {
            return Err(BodyError::TooLong);
        }
        let Some(first) = self.chunk().await.map_err(BodyError::Broken)? else { return Ok(Bytes::new()) };
        if first.len() > limit {
            return Err(BodyError::TooLong);
        }
        if self.is_over() {
            return Ok(first);
        }
        let mut next = self.chunk().await.map_err(BodyError::Broken)?;
        if next.is_none() {
            return Ok(first);
        }
        let mut all = Vec::with_capacity(announced.min(MAX_RESERVED).max(first.len()));
        all.extend_from_slice(&first);
        drop(first);
        while let Some(chunk) = next {
            if all.len().saturating_add(chunk.len()) > limit {
                return Err(BodyError::TooLong);
            }
            all.extend_from_slice(&chunk);
            next = if self.is_over() { None } else { self.chunk().await.map_err(BodyError::Broken)? };
        }
        Ok(all.into())
    }

    /// The first bytes, as many as come in a short time.
    pub(crate) async fn beginning(&mut self, limit: usize) -> Vec<u8> {
        let mut text = Vec::new();
        let reading = async {
            while let Ok(Some(chunk)) = self.chunk().await {
                text.extend_from_slice(chunk.get(..limit - text.len()).unwrap_or(&chunk));
                if text.len() >= limit {
                    break;
                }
            }
        };
        // A timeout is fine: the bytes that came are used.
        let _late = timeout(DISCARD_TIME, reading).await;
        text
    }

    /// Frees the connection for other requests if the body was read to its end, and drops it otherwise.
    pub(crate) fn finish(mut self) {
        let over = self.is_over();
        self.end.is_over = over;
        if let Some((connection, Some(idle))) = self.connection.filter(|_| over) {
            drop(self.incoming);
            idle.give_back(connection);
        }
    }
}

/// The text of an error, with its sources.
pub(crate) fn describe(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = error.source();
    }
    text
}
