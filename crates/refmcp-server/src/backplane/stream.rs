//! Streams of events: their names, and what writers and readers are told.

use bytes::Bytes;
use refmcp_proto::jsonrpc::RequestId;

use super::SessionId;

/// The number of a stream within its session, given out by the backplane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamNumber(pub u64);

impl StreamNumber {
    /// The stream of what belongs to no request. Every session has it.
    pub const GET: Self = Self(0);
}

/// A stream of a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StreamKey {
    /// The session.
    pub session: SessionId,
    /// The number within it.
    pub number: StreamNumber,
}

impl StreamKey {
    /// The stream of this number.
    pub fn new(session: SessionId, number: StreamNumber) -> Self {
        Self { session, number }
    }

    /// The stream of what belongs to no request.
    pub fn get_stream(session: SessionId) -> Self {
        Self::new(session, StreamNumber::GET)
    }
}

/// Tells the writers of a stream apart: only the last one may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

/// Tells the readers of a stream apart: only the last one may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReaderToken(pub u64);

/// Names something that is posted, so that posting it twice is posting it once. Random, or counted by a poster with a
/// random part of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PostKey(pub u128);

/// What an event is to its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// One of several.
    Event,
    /// The last one.
    Final,
}

/// An event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its number: 1 for the first.
    pub seq: u64,
    /// What it says.
    pub bytes: Bytes,
    /// Whether it is the last one.
    pub kind: EventKind,
}

/// What became of a new stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenStreamOutcome {
    /// It is open, and the caller is its writer.
    Opened(StreamNumber, Epoch),
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
    /// It was stored before, by this writer; nothing has changed.
    Already,
    /// Another writer has taken over.
    Fenced,
    /// Its number is not the next one. A writer that has taken over gets this for the numbers of its predecessor, too:
    /// they are taken by other events.
    Gap {
        /// The number of the last event that is stored.
        last: u64,
    },
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

/// A stream has a new writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakeOver {
    /// What the new writer writes with.
    pub epoch: Epoch,
    /// The number of the last event that is stored.
    pub last: u64,
    /// Whether nothing can be written any more. A stream that has ended keeps its writer.
    pub ended: bool,
}

/// Why a writer should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriterStop {
    /// The request was cancelled.
    Cancelled,
    /// Another writer has taken over.
    Fenced,
    /// The stream has ended.
    Ended,
    /// There is no such stream, or no longer.
    Unknown,
}

/// Where to begin reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadFrom {
    /// Behind this event; 0 is the beginning.
    After(u64),
    /// Behind whatever any reader was given.
    Unread,
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
        /// How many events nobody has read and nobody can any more. Only readers of what is unread can miss some; those
        /// who name an event are told [`AttachOutcome::Gone`].
        missed: u64,
    },
    /// What follows is no longer kept.
    Gone {
        /// The request that the stream answers, if that is still known.
        request: Option<RequestId>,
    },
    /// There never was that much.
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
    /// The reader was sent away and may come back.
    Detached,
    /// What follows is no longer kept.
    Gone {
        /// The request that the stream answers, if that is still known.
        request: Option<RequestId>,
    },
    /// There is no such stream; most likely its session is over.
    Unknown,
}
