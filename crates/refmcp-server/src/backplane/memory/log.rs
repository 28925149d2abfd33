//! The event store of one stream: its events, with one writer and one reader at a time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use refmcp_proto::jsonrpc::RequestId;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::backplane::{
    AppendOutcome, AttachOutcome, Event, PostKey, ReadFrom, ReadOutcome, ReaderToken, StreamEventKind,
    WriterEpoch, WriterStop,
};

/// What an event costs besides its bytes.
const EVENT: usize = 64;
/// What a stream costs besides its events.
const STREAM: usize = 512;
/// How many events are read at once: the lock is not held for longer.
const BATCH: usize = 256;
/// How many bytes are read at once, unless a single event has more: what is read counts as kept no longer.
const BATCH_BYTES: usize = 64 << 10;

/// A stream.
#[derive(Default)]
pub(super) struct Log {
    pub(super) request: Option<RequestId>,
    pub(super) writer: WriterEpoch,
    /// How many events are no longer here.
    gone: u64,
    events: VecDeque<Kept>,
    /// What the events cost.
    bytes: usize,
    end: Option<End>,
    /// The last event that any reader was given.
    read: u64,
    /// Counts readers; only the last one may read.
    reader: u64,
    /// The last reader was sent away.
    away: bool,
    /// The events of the GET stream by their keys.
    posted: BTreeMap<PostKey, u64>,
    /// Told of whatever its reader or its writer may wait for.
    pub(super) changed: Arc<Notify>,
}

struct Kept {
    bytes: Bytes,
    key: Option<PostKey>,
}

#[derive(Debug, Clone, Copy)]
struct End {
    at: Instant,
    cancelled: bool,
}

/// What a stream costs before it has events.
pub(super) fn cost(request: Option<&RequestId>) -> usize {
    STREAM + request.map_or(0, id_bytes)
}

/// What an event costs.
pub(super) fn event_cost(event: &Bytes) -> usize {
    EVENT + event.len()
}

/// The length of an id.
pub(super) fn id_bytes(id: &RequestId) -> usize {
    match id {
        RequestId::Integer(_) => 0,
        RequestId::Digits(text) | RequestId::Text(text) => text.len(),
    }
}

impl Log {
    pub(super) fn new(request: Option<RequestId>, writer: WriterEpoch) -> Self {
        Self { request, writer, ..Self::default() }
    }

    /// The number of the last event.
    pub(super) fn last(&self) -> u64 {
        self.gone + self.events.len() as u64
    }

    /// What the events cost.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What all of it costs.
    pub(super) fn cost(&self) -> usize {
        cost(self.request.as_ref()) + self.bytes
    }

    pub(super) fn ended_at(&self) -> Option<Instant> {
        self.end.map(|end| end.at)
    }

    /// Whether it is over and a reader was given all of it.
    pub(super) fn is_read_out(&self) -> bool {
        self.end.is_some() && self.read == self.last()
    }

    /// Why an event with this number cannot be added; `None` when it can.
    pub(super) fn refusal(&self, writer: WriterEpoch, seq: u64) -> Option<AppendOutcome> {
        if writer != self.writer {
            return Some(AppendOutcome::Fenced);
        }
        let last = self.last();
        if (1..=last).contains(&seq) {
            return Some(AppendOutcome::Already);
        }
        match self.end {
            Some(End { cancelled: true, .. }) => Some(AppendOutcome::Cancelled),
            Some(End { cancelled: false, .. }) => Some(AppendOutcome::Ended),
            None if seq != last + 1 => Some(AppendOutcome::Gap { last }),
            None => None,
        }
    }

    /// Adds an event, for which room was made; gives its number.
    pub(super) fn push(
        &mut self,
        bytes: Bytes,
        kind: StreamEventKind,
        key: Option<PostKey>,
        now: Instant,
    ) -> u64 {
        self.bytes += event_cost(&bytes);
        self.events.push_back(Kept { bytes, key });
        let seq = self.last();
        if let Some(key) = key {
            self.posted.insert(key, seq);
        }
        if kind == StreamEventKind::Final {
            self.end = Some(End { at: now, cancelled: false });
        }
        self.wake();
        seq
    }

    /// The number under which this was posted before.
    pub(super) fn posted(&self, key: PostKey) -> Option<u64> {
        self.posted.get(&key).copied()
    }

    /// Drops the oldest event, unless it is the final one; gives what it cost.
    pub(super) fn drop_oldest(&mut self) -> Option<usize> {
        if self.events.len() == 1 && self.end.is_some_and(|end| !end.cancelled) {
            return None;
        }
        let oldest = self.events.pop_front()?;
        if let Some(key) = oldest.key {
            self.posted.remove(&key);
        }
        let cost = event_cost(&oldest.bytes);
        self.bytes -= cost;
        self.gone += 1;
        // A reader that waits has read all events, so none is woken.
        Some(cost)
    }

    /// Ends without a final event; `false` when it had ended.
    pub(super) fn cancel(&mut self, now: Instant) -> bool {
        if self.end.is_some() {
            return false;
        }
        self.end = Some(End { at: now, cancelled: true });
        self.wake();
        true
    }

    /// Why a writer should stop; `None` when it need not.
    pub(super) fn stop(&self) -> Option<WriterStop> {
        self.end.map(|end| if end.cancelled { WriterStop::Cancelled } else { WriterStop::Ended })
    }

    /// Wakes the reader and the writer.
    pub(super) fn wake(&self) {
        self.changed.notify_waiters();
    }

    pub(super) fn attach(&mut self, from: ReadFrom) -> AttachOutcome {
        let last = self.last();
        let after = match from {
            ReadFrom::After(after) => after,
            ReadFrom::Unread => self.read.max(self.gone),
        };
        if after > last {
            return AttachOutcome::Beyond;
        }
        if after < self.gone {
            return AttachOutcome::Gone { request: self.request.clone() };
        }
        if after == last && self.end.is_some() {
            return AttachOutcome::Ended;
        }
        let missed = match from {
            ReadFrom::After(_) => 0,
            ReadFrom::Unread => after - self.read,
        };
        self.reader += 1;
        self.away = false;
        self.wake();
        AttachOutcome::Reading { reader: ReaderToken(self.reader), after, missed }
    }

    pub(super) fn detach(&mut self, reader: Option<ReaderToken>) {
        if reader.is_none_or(|reader| reader.0 == self.reader) {
            self.away = true;
            self.wake();
        }
    }

    pub(super) fn read(&mut self, reader: ReaderToken, after: u64) -> ReadOutcome {
        if let Some(verdict) = self.verdict(reader, after) {
            return verdict;
        }
        let skip = usize::try_from(after - self.gone).unwrap_or(usize::MAX);
        let last = self.end.filter(|end| !end.cancelled).map(|_| self.last());
        let mut bytes = 0;
        let kept = self.events.iter().skip(skip).take(BATCH).take_while(|kept| {
            let first = bytes == 0;
            bytes += kept.bytes.len();
            first || bytes <= BATCH_BYTES
        });
        let events: Vec<Event> = (after + 1..)
            .zip(kept)
            .map(|(seq, kept)| {
                let kind = if last == Some(seq) { StreamEventKind::Final } else { StreamEventKind::Event };
                Event { seq, bytes: kept.bytes.clone(), kind }
            })
            .collect();
        self.read = self.read.max(after + events.len() as u64);
        ReadOutcome::Events(events)
    }

    /// Whether there is nothing to say to this reader yet.
    pub(super) fn is_quiet(&self, reader: ReaderToken, after: u64) -> bool {
        self.verdict(reader, after) == Some(ReadOutcome::Nothing)
    }

    /// What to say to a reader; `None` when there are events for it.
    fn verdict(&self, reader: ReaderToken, after: u64) -> Option<ReadOutcome> {
        if reader.0 != self.reader {
            return Some(ReadOutcome::Replaced);
        }
        if self.away {
            return Some(ReadOutcome::Detached);
        }
        if after < self.gone {
            return Some(ReadOutcome::Gone { request: self.request.clone() });
        }
        match self.end {
            _ if after < self.last() => None,
            Some(_) => Some(ReadOutcome::End),
            None => Some(ReadOutcome::Nothing),
        }
    }
}
