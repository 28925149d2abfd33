//! Histories of conversations: what clients and a server did, as plain data, and the invariants that hold of it.
//!
//! A [simulation](crate::simulation) records one, and so can a test of real processes: events that it cannot see, such as
//! what a handler did, are left out, and the invariants that need them hold.
//!
//! ```
//! use refmcp_testkit::history::{Event, Invariant, Outcome, check};
//!
//! let sent = Event::Sent { client: 1, request: 7, nonce: Some(3) };
//! let result = Event::Outcome { client: 1, request: 7, outcome: Outcome::Result };
//! assert!(check(&[sent.clone(), result.clone()]).is_empty());
//! let violations = check(&[sent, result.clone(), result]);
//! assert_eq!(violations[0].invariant, Invariant::OneOutcome);
//! ```

mod check;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

pub use check::check;

/// The number of a client. One that connects with a new session is another client.
pub type ClientNumber = u32;

/// The number of a request of one client.
pub type RequestNumber = u64;

/// A stream of one client, by the request that it belongs to.
pub type StreamNumber = u64;

/// The stream of messages that belong to no request.
pub const GET_STREAM: StreamNumber = 0;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// A client has made a request. All that is sent for it carries the nonce, which no other request has.
    Sent {
        /// The client.
        client: ClientNumber,
        /// The request.
        request: RequestNumber,
        /// The nonce, if it has one.
        nonce: Option<u64>,
    },
    /// A client has received a message.
    Received {
        /// The client.
        client: ClientNumber,
        /// The stream, if it is known.
        stream: Option<StreamNumber>,
        /// The number of the event on its stream, where events are numbered: 1 for the first.
        seq: Option<u64>,
        /// A hash of the message.
        hash: u64,
        /// The nonce in the message.
        nonce: Option<u64>,
        /// Whether it is the response to the request of its stream.
        is_response: bool,
    },
    /// A client knows what became of its request.
    Outcome {
        /// The client.
        client: ClientNumber,
        /// The request.
        request: RequestNumber,
        /// What became of it.
        outcome: Outcome,
    },
    /// A connection of a client has ended. What was sent on it may be lost.
    Disconnected {
        /// The client.
        client: ClientNumber,
    },
    /// A client reads a stream again, behind this event; `None` begins with whatever no reader was given.
    Resumed {
        /// The client.
        client: ClientNumber,
        /// The stream.
        stream: StreamNumber,
        /// The last event that the client has received.
        after: Option<u64>,
    },
    /// A handler did something that shows outside of it.
    SideEffect {
        /// The nonce of its request.
        nonce: u64,
        /// Which of its effects.
        effect: u32,
        /// The run of the handler. A handler runs again after input, so what stands above its last input request happens
        /// once in each round; what it keeps for later rounds happens in round 0.
        round: u32,
    },
    /// The server has sent the response to a request.
    Answered {
        /// The client.
        client: ClientNumber,
        /// The request, by its id on the wire.
        request: RequestNumber,
    },
    /// The server has processed the cancellation of a request.
    CancellationProcessed {
        /// The client.
        client: ClientNumber,
        /// The request, by its id on the wire.
        request: RequestNumber,
    },
    /// A side has reported that the other breaks the protocol.
    Reported {
        /// The client of the connection.
        client: ClientNumber,
        /// The rule, or what was ignored.
        what: Cow<'static, str>,
    },
    /// A fault was injected.
    Fault {
        /// The client that it concerns; `None` concerns all.
        client: Option<ClientNumber>,
        /// The only request that it concerns, if it concerns one.
        request: Option<RequestNumber>,
        /// The fault.
        fault: Fault,
    },
    /// Something is left at the end, when all clients have gone and all time has passed.
    Remaining {
        /// What.
        what: &'static str,
        /// How many.
        count: usize,
    },
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// A result.
    Result,
    /// An error of the server.
    ServerError,
    /// An error of the connection, after which nothing can come any more.
    Lost,
    /// No response came in time.
    TimedOut,
    /// The client cancelled it.
    Cancelled,
    /// The client refused the input that the server needed.
    Refused,
}

/// A fault that was injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// A connection was cut.
    Cut,
    /// The client has connected anew, while its old connection lived.
    Reconnected,
    /// The server was started again, without its sessions.
    SessionsLost,
    /// The server was started again and goes on with its sessions, without the calls that ran.
    Restarted,
    /// A handler fails.
    HandlerFails,
    /// A handler does not end by itself.
    HandlerHangs,
    /// The client refuses input.
    InputRefused,
    /// The client does not give input.
    InputWithheld,
    /// The log has dropped events that were not read.
    LogOverrun,
    /// The client does not send `initialized` in time.
    SlowOpening,
}

/// What holds of every history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// I1: each request has exactly one outcome.
    OneOutcome,
    /// I2: the events of a stream are numbered without holes, across resumes too, and a number is always the same event.
    ContiguousEvents,
    /// I3: no client receives what belongs to another, and no stream what belongs to another request.
    OwnNonces,
    /// I4: nothing follows the response on a stream.
    NothingAfterResponse,
    /// I5: a side effect happens once in each round of a request.
    EffectsOnce,
    /// I6: no request fails, and no side reports the other, without a fault that explains it.
    NoErrorWithoutFault,
    /// I7: a request gets no response after its cancellation was processed.
    NoAnswerAfterCancellation,
    /// I8: nothing is left at the end.
    NothingRemains,
}

/// An event that breaks an invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The invariant.
    pub invariant: Invariant,
    /// The index of the event; that of the request for one without an outcome.
    pub index: usize,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at event {}: {}", self.invariant, self.index, self.what)
    }
}
