//! An event of a recording.

use refmcp_proto::revision::Revision;
use refmcp_transport::observer::{Direction, Side};

use super::line::RecordLine;

/// Something that happened on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When, in milliseconds since the Unix epoch.
    pub at: u64,
    /// The number of the connection in the recording.
    pub connection: u64,
    /// The negotiated revision, once there is one.
    pub revision: Option<Revision>,
    /// The HTTP request that it belongs to; 0 is the GET stream of a session.
    pub stream: Option<u64>,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// A connection is opened.
    Opened {
        /// The side of the process that records.
        side: Side,
        /// The kind of transport: `stdio`, `http`, `http+sse`, `websocket`, `memory`.
        transport: String,
        /// The name of the server, or the address of the client.
        peer: String,
    },
    /// A message, or a batch of them.
    Message {
        /// Which way it went, as seen from the recording process.
        direction: Direction,
        /// The message as it was sent, but for line breaks between its members.
        text: String,
        /// The id of the SSE event that carried it.
        event_id: Option<String>,
    },
    /// What should have been a message and is none.
    Invalid {
        /// Which way it went.
        direction: Direction,
        /// What was sent; empty where it was too long to be kept.
        bytes: Vec<u8>,
        /// Why it is no message.
        why: String,
    },
    /// The head of an HTTP request.
    Request {
        /// Which way it went.
        direction: Direction,
        /// The method.
        method: String,
        /// The path and the query.
        target: String,
        /// The header fields.
        headers: Vec<Header>,
    },
    /// The head of an HTTP response.
    Response {
        /// Which way it went.
        direction: Direction,
        /// The status.
        status: u16,
        /// The header fields.
        headers: Vec<Header>,
    },
    /// An SSE event without a message.
    Sse {
        /// Which way it went.
        direction: Direction,
        /// The name of the event, where it has one.
        name: Option<String>,
        /// The id of the event.
        event_id: Option<String>,
        /// The delay before a client connects again, in milliseconds.
        retry: Option<u64>,
        /// The data, such as the URI of `endpoint`; empty where there is none.
        data: String,
    },
    /// The body of an HTTP response ends.
    Ended {
        /// The direction of the body; the other one where its reader has left.
        direction: Direction,
    },
    /// A server refuses an HTTP request.
    Refused {
        /// The status of the response.
        status: u16,
        /// The name of the reason.
        reason: String,
        /// What is wrong, for people.
        why: String,
    },
    /// An HTTP request of a client failed, or its response ended too early.
    Failed {
        /// Why.
        why: String,
    },
    /// The recording process found a broken rule.
    Finding {
        /// The id of the rule.
        rule: String,
        /// What happened.
        what: String,
        /// What is expected instead.
        expected: String,
    },
    /// A child process wrote to its standard error.
    Stderr {
        /// What it wrote.
        bytes: Vec<u8>,
    },
    /// A connection has ended.
    Closed {
        /// Why.
        why: String,
    },
}

/// The name of a header field, in lower case, and its value.
pub type Header = (String, String);

impl Event {
    /// The event as a line of a recording, with the line break.
    pub fn to_line(&self) -> String {
        RecordLine::from(self).to_text()
    }
}
