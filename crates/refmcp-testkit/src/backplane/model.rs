//! What a backplane must answer about one stream, told from everything that was done to it. Nothing is ever dropped
//! here; where a real one may or may not have dropped events, both answers are right.

use bytes::Bytes;
use refmcp_proto::jsonrpc::RequestId;
use refmcp_server::backplane::{
    AppendOutcome, AttachOutcome, Event, ReadFrom, ReadOutcome, ReaderToken, StreamEventKind, WriterEpoch,
    WriterStop,
};

/// What may be counted for an event on top of its bytes.
const ALLOWANCE: usize = 256;

/// A stream with all of its past.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) request: Option<RequestId>,
    pub(super) writer: WriterEpoch,
    events: Vec<Bytes>,
    end: Option<End>,
    /// How far any reader has come.
    read: u64,
    /// The readers so far, each with how far it has come.
    pub(super) readers: Vec<(ReaderToken, u64)>,
    away: bool,
    cap: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Final(u32),
    Cancelled(u32),
    Forgotten,
    Buried,
}

impl Stream {
    pub(super) fn new(request: Option<RequestId>, cap: usize) -> Self {
        let writer = WriterEpoch(0);
        Self { request, writer, events: vec![], end: None, read: 0, readers: vec![], away: false, cap }
    }

    pub(super) fn last(&self) -> u64 {
        self.events.len() as u64
    }

    /// Time has passed: what ended so long ago is only remembered.
    pub(super) fn settle(&mut self, now: u32, retention: u32) {
        if let Some(End::Final(at) | End::Cancelled(at)) = self.end
            && now - at > retention
        {
            self.end = Some(End::Buried);
        }
    }

    /// Whether it ended so long ago that it is not kept, or was forgotten.
    fn is_gone(&self) -> bool {
        matches!(self.end, Some(End::Forgotten | End::Buried))
    }

    /// What a tombstone tells.
    fn gone(&self) -> Option<RequestId> {
        self.request.clone().filter(|_| self.end != Some(End::Forgotten))
    }

    /// Whether everything after this event must be kept.
    fn is_kept_after(&self, after: u64) -> bool {
        let following = self.events.iter().skip(usize::try_from(after).unwrap_or(usize::MAX));
        after + 1 >= self.last() || following.map(|event| event.len() + ALLOWANCE).sum::<usize>() <= self.cap
    }

    /// Whether something after this event must have been dropped.
    fn is_dropped_after(&self, after: u64) -> bool {
        let following = self.events.iter().skip(usize::try_from(after).unwrap_or(usize::MAX));
        following.map(Bytes::len).sum::<usize>() > self.cap
    }

    pub(super) fn append(
        &mut self,
        writer: WriterEpoch,
        seq: u64,
        event: Bytes,
        kind: StreamEventKind,
        now: u32,
    ) -> AppendOutcome {
        match self.end {
            Some(End::Forgotten) => return AppendOutcome::Unknown,
            Some(End::Buried) => return AppendOutcome::Ended,
            _ => {}
        }
        if writer != self.writer {
            return AppendOutcome::Fenced;
        }
        let last = self.last();
        if (1..=last).contains(&seq) {
            return AppendOutcome::Already;
        }
        match self.end {
            Some(End::Cancelled(_)) => return AppendOutcome::Cancelled,
            Some(_) => return AppendOutcome::Ended,
            None if seq != last + 1 => return AppendOutcome::Gap { last },
            None => {}
        }
        self.push(event);
        if kind == StreamEventKind::Final {
            self.end = Some(End::Final(now));
        }
        AppendOutcome::Stored
    }

    pub(super) fn push(&mut self, event: Bytes) {
        self.events.push(event);
    }

    pub(super) fn cancel(&mut self, request: &RequestId, now: u32) -> bool {
        let runs = self.end.is_none() && self.request.as_ref() == Some(request);
        if runs {
            self.end = Some(End::Cancelled(now));
        }
        runs
    }

    pub(super) fn forget(&mut self, writer: WriterEpoch) -> bool {
        let runs = self.end.is_none() && writer == self.writer;
        if runs {
            self.end = Some(End::Forgotten);
        }
        runs
    }

    /// Why a writer must stop; `None` when it need not.
    pub(super) fn stop(&self) -> Option<WriterStop> {
        match self.end {
            Some(End::Forgotten | End::Buried) => Some(WriterStop::Unknown),
            Some(End::Cancelled(_)) => Some(WriterStop::Cancelled),
            Some(End::Final(_)) => Some(WriterStop::Ended),
            None => None,
        }
    }

    /// True if this is a right answer to a new reader.
    pub(super) fn attach(&mut self, from: ReadFrom, attached: &AttachOutcome) -> bool {
        if self.is_gone() {
            return *attached == AttachOutcome::Gone { request: self.gone() };
        }
        let ended = self.end.is_some();
        match (from, attached) {
            (ReadFrom::After(wanted), AttachOutcome::Beyond) => wanted > self.last(),
            (ReadFrom::After(wanted), AttachOutcome::Ended) => ended && wanted == self.last(),
            (ReadFrom::After(wanted), AttachOutcome::Gone { request }) => {
                wanted <= self.last() && !self.is_kept_after(wanted) && *request == self.request
            }
            (ReadFrom::After(wanted), AttachOutcome::Reading { reader, after, missed }) => {
                self.begin(*reader, *after);
                let follows = wanted < self.last() || (wanted == self.last() && !ended);
                (*after, *missed) == (wanted, 0) && follows && !self.is_dropped_after(wanted)
            }
            (ReadFrom::Unread, AttachOutcome::Ended) => ended && self.read == self.last(),
            (ReadFrom::Unread, AttachOutcome::Reading { reader, after, missed }) => {
                let begins = *after == self.read + missed && (*missed == 0 || !self.is_kept_after(self.read));
                let follows = *after < self.last() || (*after == self.last() && !ended);
                let right = begins && follows && !self.is_dropped_after(*after);
                self.begin(*reader, *after);
                right
            }
            _ => false,
        }
    }

    fn begin(&mut self, reader: ReaderToken, after: u64) {
        self.readers.push((reader, after));
        self.away = false;
    }

    pub(super) fn detach(&mut self) {
        self.away = true;
    }

    /// Whether this is a right answer to this reader.
    pub(super) fn read(&mut self, reader: usize, read: &ReadOutcome) -> bool {
        if self.is_gone() {
            return *read == ReadOutcome::Gone { request: self.gone() };
        }
        if reader + 1 != self.readers.len() {
            return *read == ReadOutcome::Replaced;
        }
        if self.away {
            return *read == ReadOutcome::Detached;
        }
        let after = self.readers[reader].1;
        match read {
            ReadOutcome::Events(events) => {
                let right = !events.is_empty()
                    && !self.is_dropped_after(after)
                    && (after + 1..).zip(events).all(|(seq, event)| self.is_event(seq, event));
                let come = after + events.len() as u64;
                self.readers[reader].1 = come;
                self.read = self.read.max(come);
                right
            }
            ReadOutcome::Nothing => after == self.last() && self.end.is_none(),
            ReadOutcome::End => after == self.last() && self.end.is_some(),
            ReadOutcome::Gone { request } => !self.is_kept_after(after) && *request == self.request,
            ReadOutcome::Replaced | ReadOutcome::Detached | ReadOutcome::Unknown => false,
        }
    }

    fn is_event(&self, seq: u64, event: &Event) -> bool {
        let ends = matches!(self.end, Some(End::Final(_))) && seq == self.last();
        let kind = if ends { StreamEventKind::Final } else { StreamEventKind::Event };
        let index = usize::try_from(seq - 1).unwrap_or(usize::MAX);
        event.seq == seq && event.kind == kind && self.events.get(index) == Some(&event.bytes)
    }
}
