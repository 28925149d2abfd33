//! What comes back over a connection.

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
use hyper::client::conn::{http1, http2};
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

use super::dial::Stream;
use super::pool::IdleConnections;
use super::scope::AddressScope;

/// Bytes of a body that nobody wants, read so that its connection can be used again, and how long that may take.
const DRAINED: usize = 64 << 10;
const DRAIN_TIME: Duration = Duration::from_secs(1);
/// Room made at once for a body that comes in pieces; beyond it, room is made as it is needed.
const RESERVED: usize = 1 << 20;

/// A request that was not answered; with the request, when it never left.
pub(super) struct SendError {
    pub(super) why: String,
    pub(super) message: Option<Box<Request<Full<Bytes>>>>,
}

impl From<hyper::client::conn::TrySendError<Request<Full<Bytes>>>> for SendError {
    fn from(mut fault: hyper::client::conn::TrySendError<Request<Full<Bytes>>>) -> Self {
        let message = fault.take_message().map(Box::new);
        Self { why: describe(fault.error()), message }
    }
}

type Connection = http1::Connection<TokioIo<Stream>, Full<Bytes>>;

/// A connection of HTTP/1.1, driven by whoever holds it.
pub(super) struct Http1Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    /// Nothing once it has ended.
    connection: Option<Connection>,
    scope: AddressScope,
}

impl Http1Connection {
    pub(super) fn new(
        sender: http1::SendRequest<Full<Bytes>>,
        connection: Connection,
        scope: AddressScope,
    ) -> Self {
        Self { sender, connection: Some(connection), scope }
    }

    /// Whether another request can be sent.
    pub(super) fn is_usable(&mut self) -> bool {
        drive(&mut self.connection, &mut Context::from_waker(Waker::noop()));
        self.connection.is_some() && self.sender.is_ready()
    }

    /// Sends a request and waits for the head of the response.
    pub(super) async fn send(
        mut self: Box<Self>,
        request: Request<Full<Bytes>>,
        home: &Arc<IdleConnections>,
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
        Ok(HttpResponse::new(response, self.scope, Some((self, home.clone()))))
    }
}

/// A connection of HTTP/2, which others use as well.
#[derive(Debug, Clone)]
pub(super) struct Http2Connection {
    pub(super) sender: http2::SendRequest<Full<Bytes>>,
    pub(super) scope: AddressScope,
}

impl Http2Connection {
    /// Sends a request and waits for the head of the response.
    pub(super) async fn send(mut self, request: Request<Full<Bytes>>) -> Result<HttpResponse, SendError> {
        if let Err(fault) = self.sender.ready().await {
            return Err(SendError { why: describe(&fault), message: Some(Box::new(request)) });
        }
        Ok(HttpResponse::new(self.sender.try_send_request(request).await?, self.scope, None))
    }
}

/// Does whatever can be done now.
fn drive(connection: &mut Option<Connection>, cx: &mut Context<'_>) {
    if let Some(driven) = connection
        && let Poll::Ready(ended) = Pin::new(driven).poll(cx)
    {
        // Whoever waits for a response or its body is told by what they wait for.
        if let Err(fault) = ended {
            tracing::debug!(%fault, "a connection ended");
        }
        *connection = None;
    }
}

impl fmt::Debug for Http1Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http1Connection").field("open", &self.connection.is_some()).finish_non_exhaustive()
    }
}

/// A response whose head has come.
#[derive(Debug)]
pub(super) struct HttpResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
    /// Where whoever answers is.
    pub(super) scope: AddressScope,
}

impl HttpResponse {
    fn new(
        response: Response<Incoming>,
        scope: AddressScope,
        link: Option<(Box<Http1Connection>, Arc<IdleConnections>)>,
    ) -> Self {
        let (head, incoming) = response.into_parts();
        let body = Body { incoming, ended: false, link };
        Self { status: head.status, headers: head.headers, body, scope }
    }
}

/// Why a body cannot be had whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BodyError {
    TooLong,
    Broken(String),
}

/// The body of a response, and the connection it comes over when that is nobody else's.
#[derive(Debug)]
pub(super) struct Body {
    incoming: Incoming,
    ended: bool,
    link: Option<(Box<Http1Connection>, Arc<IdleConnections>)>,
}

impl Body {
    /// The next piece; nothing at the end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, String> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, String>> {
        let mut driven = false;
        loop {
            match Pin::new(&mut self.incoming).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => return Poll::Ready(Ok(Some(data))),
                    // Trailers say nothing to us.
                    Err(_) => continue,
                },
                Poll::Ready(Some(Err(fault))) => return Poll::Ready(Err(describe(&fault))),
                Poll::Ready(None) => {
                    self.ended = true;
                    return Poll::Ready(Ok(None));
                }
                Poll::Pending => {}
            }
            match &mut self.link {
                Some((link, _)) if !driven => drive(&mut link.connection, cx),
                _ => return Poll::Pending,
            }
            driven = true;
        }
    }

    /// Whether nothing more comes.
    pub(super) fn is_over(&self) -> bool {
        self.ended || self.incoming.is_end_stream()
    }

    /// All of it, in one piece and without a copy when it came in one piece.
    pub(super) async fn whole(&mut self, limit: usize) -> Result<Bytes, BodyError> {
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
        let mut all = Vec::with_capacity(announced.min(RESERVED).max(first.len()));
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

    /// The beginning of it, as much as comes in a short time.
    pub(super) async fn beginning(&mut self, limit: usize) -> Vec<u8> {
        let mut text = Vec::new();
        let reading = async {
            while let Ok(Some(chunk)) = self.chunk().await {
                text.extend_from_slice(chunk.get(..limit - text.len()).unwrap_or(&chunk));
                if text.len() >= limit {
                    break;
                }
            }
        };
        // What has come by then is what there is to show.
        let _late = timeout(DRAIN_TIME, reading).await;
        text
    }

    /// Nobody wants the rest. When it is short the connection goes on, else it ends.
    pub(super) async fn drain(mut self) {
        if !self.is_over() && self.beginning(DRAINED).await.len() >= DRAINED {
            return;
        }
        self.finish();
    }

    /// It was read; the connection is free for others. Without effect before the end: then it is dropped.
    pub(super) fn finish(self) {
        let over = self.is_over();
        if let Some((link, home)) = self.link.filter(|_| over) {
            drop(self.incoming);
            home.give_back(link);
        }
    }
}

/// What an error says, with what is behind it.
pub(super) fn describe(fault: &dyn Error) -> String {
    let mut text = fault.to_string();
    let mut source = fault.source();
    while let Some(fault) = source {
        let more = fault.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = fault.source();
    }
    text
}
