//! Streams of events: their keys, their events, and a reader.

use std::sync::Arc;

use bytes::Bytes;

use super::{AttachOutcome, Backplane, ReadOutcome, Result, SessionId};

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

/// Tells the readers of a stream apart: only the last one may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReaderToken(pub u64);

/// The one that writes a stream: the epoch of an engine, by which engines of one session are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WriterEpoch(pub u32);

/// Names something that is posted, so that posting it twice is posting it once. Random, or counted by a poster with a
/// random part of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PostKey(pub u128);

/// What an event is to its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamEventKind {
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
    pub kind: StreamEventKind,
}

/// Where to begin reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadFrom {
    /// Behind this event; 0 is the beginning.
    After(u64),
    /// Behind whatever any reader was given.
    Unread,
}

/// The one who reads a stream.
#[derive(Debug)]
pub struct StreamReader {
    backplane: Arc<dyn Backplane>,
    stream: StreamKey,
    reader: ReaderToken,
    after: u64,
    missed: u64,
    /// There was nothing more to read at some time, so each time after that is most likely the same.
    caught_up: bool,
}

impl StreamReader {
    /// Becomes the reader, or says why not.
    pub async fn begin(
        backplane: Arc<dyn Backplane>,
        stream: StreamKey,
        from: ReadFrom,
    ) -> Result<Result<Self, AttachOutcome>> {
        Ok(match backplane.attach(&stream, from).await? {
            AttachOutcome::Reading { reader, after, missed } => {
                Ok(Self { backplane, stream, reader, after, missed, caught_up: false })
            }
            refused => Err(refused),
        })
    }

    /// What is next, without waiting.
    pub async fn try_next(&mut self) -> Result<ReadOutcome> {
        let read = self.backplane.read(&self.stream, self.reader, self.after).await?;
        match &read {
            ReadOutcome::Events(events) => {
                self.after = events.last().map_or(self.after, |event: &Event| event.seq);
            }
            ReadOutcome::Nothing => self.caught_up = true,
            _ => {}
        }
        Ok(read)
    }

    /// Waits until there may be something to read. It does not wait before there was once nothing.
    pub async fn readable(&self) -> Result<()> {
        if self.caught_up {
            self.backplane.readable(&self.stream, self.reader, self.after).await?;
        }
        Ok(())
    }

    /// What is next. It is not lost when this is dropped before it has returned.
    pub async fn next(&mut self) -> Result<ReadOutcome> {
        loop {
            self.readable().await?;
            match self.try_next().await? {
                ReadOutcome::Nothing => {}
                found => return Ok(found),
            }
        }
    }

    /// The stream that is read.
    pub fn stream(&self) -> &StreamKey {
        &self.stream
    }

    /// What this reader is told apart by.
    pub fn token(&self) -> ReaderToken {
        self.reader
    }

    /// How many events before the first one were dropped without ever having been read.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// The number of the last event that was read.
    pub fn after(&self) -> u64 {
        self.after
    }
}
