//! What an observer sees of an HTTP request: its head and body once it is known to which session they belong, then what
//! becomes of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::FutureExt;
use parking_lot::Mutex;
use refmcp_proto::finding::Finding;
use refmcp_server::transport::Observed;
use refmcp_server::transport::clock::Clock;
use refmcp_server::transport::observer::{Direction, Observer, Refused, Side, StartLine, StreamId};

use crate::access::caller::Client;
use crate::endpoint::original_uri;
use crate::refusal::Refusal;
use crate::request::headers::LAST_EVENT_ID;
use crate::request::websocket;

/// A request, and its observer if there is one.
#[derive(Debug, Clone, Default)]
pub(crate) struct ObservedRequest(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    observer: Arc<dyn Observer>,
    clock: Clock,
    peer: String,
    /// None for a WebSocket, which has one stream each way.
    stream: Option<StreamId>,
    head: (Method, String, HeaderMap),
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    body: Option<Bytes>,
    /// The connection that the request belongs to, once it is known.
    connection: Option<Observed>,
    /// Why the connection is closed with the response.
    closes: Option<&'static str>,
}

impl ObservedRequest {
    pub(crate) fn new(observer: Arc<dyn Observer>, clock: Clock, client: Client, head: &Parts) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let is_get_stream = head.method == Method::GET && !head.headers.contains_key(LAST_EVENT_ID);
        let stream = match is_get_stream {
            true if websocket::is_upgrade(&head.headers) => None,
            true => Some(StreamId::GET),
            false => Some(StreamId(NEXT.fetch_add(1, Ordering::Relaxed))),
        };
        let peer = client.address.map(|address| address.to_string()).unwrap_or_default();
        let head = (
            head.method.clone(),
            original_uri(head).path_and_query().map_or_else(String::new, ToString::to_string),
            head.headers.clone(),
        );
        Self(Some(Arc::new(Inner { observer, clock, peer, stream, head, state: Mutex::default() })))
    }

    /// The body was read.
    pub(crate) fn read(&self, body: &Bytes) {
        if let Some(inner) = &self.0 {
            let mut state = inner.state.lock();
            state.body = Some(body.clone());
            if let Some(connection) = &state.connection {
                inner.of(connection).received(body);
            }
        }
    }

    /// The body, for the findings in it.
    pub(crate) fn body(&self) -> Option<Bytes> {
        self.0.as_ref().and_then(|inner| inner.state.lock().body.clone())
    }

    /// The request belongs to this connection.
    pub(crate) fn join(&self, connection: &Observed) {
        if let Some(inner) = &self.0 {
            inner.join(|| connection.clone());
        }
    }

    /// The request opens a connection.
    pub(crate) fn open(&self, transport: &'static str) -> Observed {
        self.0.as_ref().map(|inner| inner.join(|| inner.open(transport))).unwrap_or_default()
    }

    /// The stream of the request in its connection; one that belongs to none has a connection of its own.
    pub(crate) fn stream(&self) -> Observed {
        self.0.as_ref().map(|inner| inner.stream()).unwrap_or_default()
    }

    /// The client broke a rule in a message that no engine receives.
    /// Returns whether the observer has told of it.
    pub(crate) fn finding(&self, finding: &Finding) -> bool {
        self.0.is_some() && self.stream().finding(finding, self.body().as_deref())
    }

    /// Returns the refusal, which knows whether the observer has told of its finding.
    #[cold]
    pub(crate) fn refused(&self, refusal: Refusal) -> Refusal {
        if self.0.is_none() {
            return refusal;
        }
        let is_told = refusal.finding().is_some_and(|finding| self.finding(finding));
        let (status, reason) = (refusal.status.as_u16(), refusal.reason.name());
        self.stream().refused(&Refused { status, reason, why: &refusal.why });
        refusal.with_finding_told(is_told)
    }

    /// The connection of the request is closed with the response, for this reason.
    pub(crate) fn closes(&self, why: &'static str) {
        if let Some(inner) = &self.0 {
            inner.state.lock().closes = Some(why);
        }
    }

    /// Reports the response: its head, and its body where that is in memory. Events of a stream are reported as they are sent.
    pub(crate) fn responded(&self, response: Response) -> Response {
        let Some(inner) = &self.0 else { return response };
        let response = self.report_response(response);
        let closes = inner.state.lock().closes;
        if let Some(why) = closes {
            self.stream().closed(&why);
        }
        response
    }

    fn report_response(&self, response: Response) -> Response {
        let stream = self.stream();
        if !stream.is_observed() {
            return response;
        }
        let (head, body) = response.into_parts();
        let start = StartLine::Response { status: head.status.as_u16() };
        stream.head(Direction::Sent, start, fields(&head.headers));
        let is_switched = head.status == StatusCode::SWITCHING_PROTOCOLS;
        if is_switched || body.size_hint().exact().is_none() {
            return Response::from_parts(head, body);
        }
        // It is in memory as a whole: reading it neither waits nor fails.
        let body = to_bytes(body, usize::MAX).now_or_never().and_then(Result::ok).unwrap_or_default();
        match head.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes) {
            Some(b"application/json") => stream.sent(&body),
            Some(b"text/event-stream") => stream.sse_events(Direction::Sent, &body),
            _ => {}
        }
        stream.stream_ended(Direction::Sent);
        Response::from_parts(head, Body::from(body))
    }
}

impl Inner {
    fn open(&self, transport: &'static str) -> Observed {
        Observed::open(self.observer.clone(), Side::Server, transport, self.peer.clone(), self.clock)
    }

    /// Sets the connection, and reports the request there; the first connection stays.
    fn join(&self, connection: impl FnOnce() -> Observed) -> Observed {
        let mut state = self.state.lock();
        if let Some(connection) = &state.connection {
            return connection.clone();
        }
        let connection = state.connection.insert(connection()).clone();
        let (stream, (method, target, headers)) = (self.of(&connection), &self.head);
        let start = StartLine::Request { method: method.as_str(), target };
        stream.head(Direction::Received, start, fields(headers));
        if let Some(body) = &state.body {
            stream.received(body);
        }
        connection
    }

    fn stream(&self) -> Observed {
        self.of(&self.join(|| self.open("http")))
    }

    fn of(&self, connection: &Observed) -> Observed {
        self.stream.map_or_else(|| connection.clone(), |stream| connection.stream(stream))
    }
}

fn fields(headers: &HeaderMap) -> impl Iterator<Item = (&str, &[u8])> {
    headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()))
}
