//! Outcomes of the methods of a backplane.

use std::sync::Arc;

use bytes::Bytes;
use refmcp_proto::jsonrpc::RequestId;

use super::{Event, ReaderToken, SessionRecord, StreamNumber};

/// What became of a new session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateOutcome {
    /// It is open.
    Created,
    /// The id is in use.
    Taken,
    /// There are as many as there may be, or no room is left.
    Full,
    /// The facts are longer than they may be.
    TooLarge,
}

/// What became of a change of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdateOutcome {
    /// It was made; this is the new version.
    Updated(u64),
    /// The session has another version; this is its record.
    Conflict(SessionRecord),
    /// There is no such session.
    Unknown,
    /// The facts are longer than they may be.
    TooLarge,
    /// No room is left for them.
    Full,
}

/// What became of a new stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenStreamOutcome {
    /// It is open, and the caller is its writer.
    Opened(StreamNumber),
    /// The session has as many as it may, or no room is left.
    Full,
    /// There is no such session.
    Unknown,
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendOutcome {
    /// It is stored.
    Stored,
    /// It was stored before; nothing has changed.
    Already,
    /// Its number is not the next one.
    Gap {
        /// The number of the last event that is stored.
        last: u64,
    },
    /// Another engine has claimed the call of this stream, and writes it now.
    Fenced,
    /// The stream has ended.
    Ended,
    /// The request was cancelled, and its stream has ended with that.
    Cancelled,
    /// One event may not be so long.
    TooLarge,
    /// No room is left, and none could be made without dropping the ends of other streams. Older events of this stream
    /// may have been dropped in trying.
    Full,
    /// There is no such stream.
    Unknown,
}

/// What became of something that was posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostOutcome {
    /// It is stored under this number.
    Stored(u64),
    /// It was stored before under this number.
    Already(u64),
    /// One event may not be so long.
    TooLarge,
    /// No room is left.
    Full,
    /// There is no such session.
    Unknown,
}

/// Why a writer should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriterStop {
    /// The request was cancelled.
    Cancelled,
    /// The stream has ended.
    Ended,
    /// There is no such stream, or no longer.
    Unknown,
}

/// What became of an attempt to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttachOutcome {
    /// The caller is the reader.
    Reading {
        /// What it reads with.
        reader: ReaderToken,
        /// Behind which event it begins.
        after: u64,
        /// How many events were dropped unread. Readers that name an event get [`AttachOutcome::Gone`] instead.
        missed: u64,
    },
    /// What follows is no longer kept.
    Gone {
        /// The request that the stream answers, if that is still known.
        request: Option<RequestId>,
    },
    /// The stream has no event of this number yet.
    Beyond,
    /// The stream has ended with exactly this event; nothing follows.
    Ended,
    /// There never was such a stream, or its session is over.
    Unknown,
}

/// What there is to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadOutcome {
    /// These follow, without holes; at least one.
    Events(Vec<Event>),
    /// Nothing yet.
    Nothing,
    /// Nothing more: the stream has ended.
    End,
    /// Another reader has come.
    Replaced,
    /// The reader was detached, and may attach again.
    Detached,
    /// What follows is no longer kept.
    Gone {
        /// The request that the stream answers, if that is still known.
        request: Option<RequestId>,
    },
    /// There is no such stream; most likely its session is over.
    Unknown,
}

/// The outcome of [`expect_response`](super::Backplane::expect_response).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectOutcome {
    /// The response is waited for.
    Expected,
    /// Too many are.
    Full,
    /// There is no such session.
    Unknown,
}

/// What became of a response that was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliverOutcome {
    /// It is accepted.
    Taken,
    /// It was expected once, but its time is over or another came first.
    Late,
    /// No room is left for it.
    Full,
    /// No such request is registered, or no longer.
    Unknown,
}

/// The outcome of [`wait_response`](super::Backplane::wait_response).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseOutcome {
    /// The response.
    Body(Bytes),
    /// There was none in time.
    Overdue,
    /// No such request is registered, or no longer, or the session is over.
    Unknown,
}

/// What became of a detached call that is to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParkOutcome {
    /// It is kept.
    Parked,
    /// One was parked under this key before; nothing has changed.
    Already,
    /// Too many are kept, or no room is left.
    Full,
    /// There is no such session.
    Unknown,
}

/// A parked call that was claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedCall {
    /// The call, as it was parked.
    pub state: Bytes,
    /// The number of the last event of its stream; 0 where it has none.
    pub last: u64,
}

/// What has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicChanges {
    /// The topics with their generations, the oldest change first.
    pub topics: Vec<(Arc<str>, u64)>,
    /// More has changed than is remembered: anything may have.
    pub missed: bool,
    /// Where to go on from.
    pub latest: u64,
}

/// Whether a one-time key was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnceOutcome {
    /// The key was unused, and is used now.
    First,
    /// The key was used before.
    Again,
    /// Too many keys are remembered to take another. Forgetting one would make it good again, so this one is refused.
    Full,
}
