//! Answers of the client, and calls that wait for them.

use bytes::Bytes;

/// What became of a question's registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectOutcome {
    /// The answer is waited for.
    Expected,
    /// Too many are.
    Full,
    /// There is no such session.
    Unknown,
}

/// What became of an answer that was handed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliverOutcome {
    /// It is the one.
    Taken,
    /// It was expected once, but its time is over or another came first.
    Late,
    /// No room is left for it.
    Full,
    /// Nobody has asked, or that was long ago.
    Unknown,
}

/// What became of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseOutcome {
    /// The answer.
    Body(Bytes),
    /// There was none in time.
    Overdue,
    /// Nobody has asked, the answer was given to somebody else, or the session is over.
    Unknown,
}

/// What became of a call that is to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParkOutcome {
    /// It waits.
    Parked,
    /// One was parked under this key before; nothing has changed.
    Already,
    /// Too many wait, or no room is left.
    Full,
    /// There is no such session.
    Unknown,
}
