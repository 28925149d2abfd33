//! A reader that keeps its place.

use std::fmt;
use std::sync::Arc;

use super::{AttachOutcome, Backplane, Event, ReadFrom, ReadOutcome, ReaderToken, StreamKey, Unavailable};

/// The one who reads a stream.
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
    ) -> Result<Result<Self, AttachOutcome>, Unavailable> {
        Ok(match backplane.attach(&stream, from).await? {
            AttachOutcome::Reading { reader, after, missed } => {
                Ok(Self { backplane, stream, reader, after, missed, caught_up: false })
            }
            refused => Err(refused),
        })
    }

    /// What is next, without waiting.
    pub async fn try_next(&mut self) -> Result<ReadOutcome, Unavailable> {
        let read = self.backplane.read(&self.stream, self.reader, self.after).await?;
        if let ReadOutcome::Events(events) = &read {
            self.after = events.last().map_or(self.after, |event: &Event| event.seq);
        }
        Ok(read)
    }

    /// What is next. It is not lost when this is dropped before it has returned.
    pub async fn next(&mut self) -> Result<ReadOutcome, Unavailable> {
        loop {
            if self.caught_up {
                self.backplane.readable(&self.stream, self.reader, self.after).await?;
            }
            match self.try_next().await? {
                ReadOutcome::Nothing => self.caught_up = true,
                found => return Ok(found),
            }
        }
    }

    /// The stream that is read.
    pub fn stream(&self) -> &StreamKey {
        &self.stream
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

impl fmt::Debug for StreamReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamReader")
            .field("stream", &self.stream.number)
            .field("after", &self.after)
            .finish_non_exhaustive()
    }
}
