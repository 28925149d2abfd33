//! Observing: each message, HTTP head and finding of a connection as it passes, for both sides and every transport.
//!
//! An [`Observer`] is what audit logs, recordings, traces and metrics are built on. It gets borrowed data, and decides
//! itself what to keep:
//!
//! ```
//! use std::sync::atomic::{AtomicUsize, Ordering};
//! use refmcp_transport::observer::{Direction, EventContext, MessageEvent, Observer};
//!
//! #[derive(Default)]
//! struct SentBytes(AtomicUsize);
//!
//! impl Observer for SentBytes {
//!     fn message(&self, _: &EventContext<'_>, message: &MessageEvent<'_>) {
//!         if message.direction == Direction::Sent {
//!             self.0.fetch_add(message.bytes.len(), Ordering::Relaxed);
//!         }
//!     }
//! }
//! ```
//!
//! Transports and drivers hold an [`Observed`]. Without an observer it is a null pointer, and each of its functions is one
//! branch. An observer may decline connections ([`Observer::wants_connection`]) and leave them ([`Observer::wants_more`]): then
//! nothing of them is decoded or formatted any more.

mod observed;

use std::fmt;
use std::sync::Arc;

use refmcp_proto::engine::ExchangeId;
use refmcp_proto::finding::Finding;
use refmcp_proto::jsonrpc::Incoming;
use refmcp_proto::revision::Revision;
use refmcp_proto::time::Timestamp;
use serde::{Deserialize, Serialize};

pub use observed::Observed;

/// Is called with what passes, in the order of each connection. It is called on the path of messages and partly under
/// locks: a function returns soon, and calls no client and no server.
///
/// Messages and heads hold secrets, such as access tokens and arguments of calls.
pub trait Observer: Send + Sync + 'static {
    /// Whether it wants to see a connection that is opened now. Nothing is told of one that it does not want.
    fn wants_connection(&self, _now: Timestamp) -> bool {
        true
    }

    /// Whether it wants to see more of a connection. It is asked after each event; once it says no, nothing more is told of
    /// the connection, not even its end.
    fn wants_more(&self, _connection: ConnectionId) -> bool {
        true
    }

    /// A connection is opened. The client's is opened before it is known whether the server can be reached.
    fn opened(&self, _context: &EventContext<'_>) {}

    /// A message, or a batch of them.
    fn message(&self, _context: &EventContext<'_>, _message: &MessageEvent<'_>) {}

    /// Input that is no message: a line of text, malformed JSON, an HTTP body that is no JSON, a message over the limit.
    fn invalid_input(&self, _context: &EventContext<'_>, _input: &InvalidInput<'_>) {}

    /// The head of an HTTP request or response. It comes before the messages of its body. A server reports a request once it
    /// knows to which session it belongs.
    fn head(&self, _context: &EventContext<'_>, _head: &Head<'_>) {}

    /// An SSE event without a message: one to resume from, the URI that HTTP+SSE posts to, a retry delay. A delay that stands in
    /// the same event as something else is told by itself, before it.
    fn sse_event(&self, _context: &EventContext<'_>, _event: &SseControlEvent<'_>) {}

    /// The body of an HTTP response has ended as it should: then the direction is that of the body; or its reader has left,
    /// which is the other direction.
    fn stream_ended(&self, _context: &EventContext<'_>, _direction: Direction) {}

    /// A server refuses an HTTP request.
    fn refused(&self, _context: &EventContext<'_>, _refusal: &Refused<'_>) {}

    /// An HTTP request of a client failed, or its stream ended without the answer.
    fn stream_failed(&self, _context: &EventContext<'_>, _why: &str) {}

    /// The peer broke a rule: each once in a connection, with the message in which it was found first, if any. Returns whether
    /// the observer has told a person of it already, so that the log needs no line.
    fn finding(&self, _context: &EventContext<'_>, _finding: &Finding, _message: Option<&[u8]>) -> bool {
        false
    }

    /// A server that is a child process wrote to its standard error.
    fn stderr(&self, _context: &EventContext<'_>, _bytes: &[u8]) {}

    /// A connection has ended, for this reason. Each that was opened is closed once.
    fn closed(&self, _context: &EventContext<'_>, _why: &str) {}
}

impl fmt::Debug for dyn Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

/// Several observers, called one after the other. Each sees the connections that any of them wants.
impl Observer for Vec<Arc<dyn Observer>> {
    fn wants_connection(&self, now: Timestamp) -> bool {
        self.iter().any(|it| it.wants_connection(now))
    }

    fn wants_more(&self, connection: ConnectionId) -> bool {
        self.iter().any(|it| it.wants_more(connection))
    }

    fn opened(&self, context: &EventContext<'_>) {
        self.iter().for_each(|it| it.opened(context));
    }

    fn message(&self, context: &EventContext<'_>, message: &MessageEvent<'_>) {
        self.iter().for_each(|it| it.message(context, message));
    }

    fn invalid_input(&self, context: &EventContext<'_>, input: &InvalidInput<'_>) {
        self.iter().for_each(|it| it.invalid_input(context, input));
    }

    fn head(&self, context: &EventContext<'_>, head: &Head<'_>) {
        self.iter().for_each(|it| it.head(context, head));
    }

    fn sse_event(&self, context: &EventContext<'_>, event: &SseControlEvent<'_>) {
        self.iter().for_each(|it| it.sse_event(context, event));
    }

    fn stream_ended(&self, context: &EventContext<'_>, direction: Direction) {
        self.iter().for_each(|it| it.stream_ended(context, direction));
    }

    fn refused(&self, context: &EventContext<'_>, refusal: &Refused<'_>) {
        self.iter().for_each(|it| it.refused(context, refusal));
    }

    fn stream_failed(&self, context: &EventContext<'_>, why: &str) {
        self.iter().for_each(|it| it.stream_failed(context, why));
    }

    fn finding(&self, context: &EventContext<'_>, finding: &Finding, message: Option<&[u8]>) -> bool {
        // Each is called, whatever the others have told.
        self.iter().filter(|it| it.finding(context, finding, message)).count() > 0
    }

    fn stderr(&self, context: &EventContext<'_>, bytes: &[u8]) {
        self.iter().for_each(|it| it.stderr(context, bytes));
    }

    fn closed(&self, context: &EventContext<'_>, why: &str) {
        self.iter().for_each(|it| it.closed(context, why));
    }
}

/// When an event happened, and where it belongs.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct EventContext<'a> {
    /// When.
    pub time: Timestamp,
    /// The connection.
    pub connection: ConnectionId,
    /// Which side of it this process is.
    pub side: Side,
    /// The kind of transport: `stdio`, `http`, `http+sse`, `websocket`, `memory`.
    pub transport: &'static str,
    /// The name of the server, or the address of the client where it is known.
    pub peer: &'a str,
    /// The id of the session over HTTP, a secret.
    pub session: Option<&'a str>,
    /// The negotiated revision; none before, and none where each request has its own.
    pub revision: Option<Revision>,
    /// The HTTP request and its response; none on a pipe, which has one stream each way.
    pub stream: Option<StreamId>,
}

/// The number of a connection, unique in the process. A connection is a pipe, a WebSocket, what a client has with a server
/// over HTTP, and what a server over HTTP has with a client: a session, or a request without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// The number of an HTTP request within its connection, and of the stream that answers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

impl StreamId {
    /// The stream for messages of the server that belong to no request.
    pub const GET: Self = Self(0);
}

impl From<ExchangeId> for StreamId {
    fn from(exchange: ExchangeId) -> Self {
        Self(exchange.0)
    }
}

/// A side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// This process is the client.
    Client,
    /// This process is the server.
    Server,
}

/// Which way something passes, as seen from this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// To the peer.
    Sent,
    /// From the peer.
    Received,
}

/// A message.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct MessageEvent<'a> {
    /// Which way.
    pub direction: Direction,
    /// The message, without the line break or the frame around it.
    pub bytes: &'a [u8],
    /// The same, decoded: method, id, parameters as text.
    pub decoded: &'a Incoming<'a>,
    /// The id that the SSE event around it gave.
    pub event_id: Option<&'a str>,
}

/// An SSE event without a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SseControlEvent<'a> {
    /// Which way.
    pub direction: Direction,
    /// The name, unless it is `message`, which needs not be written.
    pub name: Option<&'a str>,
    /// The id that it gives.
    pub id: Option<&'a str>,
    /// The time to wait before the stream is asked for again, in milliseconds.
    pub retry: Option<u64>,
    /// The data, empty where there is none.
    pub data: &'a str,
}

/// Input that is no message.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct InvalidInput<'a> {
    /// Which way; a client that relays messages sends what it was given.
    pub direction: Direction,
    /// The input; empty where it was too long to be kept.
    pub bytes: &'a [u8],
    /// Why it is no message.
    pub why: &'a str,
}

/// The head of an HTTP request or response.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Head<'a> {
    /// Which way.
    pub direction: Direction,
    /// The start line.
    pub start: StartLine<'a>,
    /// Names, in lower case, and values of the header fields.
    pub fields: &'a [(&'a str, &'a [u8])],
}

/// The start line of an HTTP message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartLine<'a> {
    /// Of a request.
    Request {
        /// The method.
        method: &'a str,
        /// The path and the query.
        target: &'a str,
    },
    /// Of a response.
    Response {
        /// The status.
        status: u16,
    },
}

/// An HTTP request that a server refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused<'a> {
    /// The status of the response.
    pub status: u16,
    /// The name of the reason, as in metrics and logs.
    pub reason: &'static str,
    /// What is wrong, for people.
    pub why: &'a str,
}
