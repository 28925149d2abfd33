//! Everything that is kept for one session.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use foldhash::HashMap;
use refmcp_proto::jsonrpc::RequestId;
use tokio::time::Instant;

use super::budget::{NoRoom, SessionBudget};
use super::later;
use super::log::{self, Log};
use super::slots::{Added, Slot, Slots};
use crate::backplane::{
    AppendOutcome, AttachOutcome, BackplaneSettings, ClaimedCall, NewSession, OpenStreamOutcome, PostKey,
    PostOutcome, ReadFrom, ReadOutcome, ReaderToken, SessionRecord, StreamEventKind, StreamNumber,
    UpdateOutcome, WriterEpoch,
};

/// What a session costs besides what is kept in it.
const SESSION: usize = 1024;
/// A longer id is not remembered after its stream: tombstones are many.
const TOMBSTONE_ID: usize = 256;

/// A session.
pub(super) struct Session {
    settings: Arc<BackplaneSettings>,
    pub(super) budget: SessionBudget,
    record: SessionRecord,
    idle: Duration,
    used: Instant,
    /// How many wait for something in it.
    waiters: u32,
    closed: bool,
    /// Made with the first stream: most sessions never have one.
    streams: Option<Box<Streams>>,
    /// Responses to server requests.
    pub(super) responses: Slots,
    /// Detached calls.
    pub(super) parked: Slots,
}

/// The streams of a session.
#[derive(Default)]
struct Streams {
    /// The GET stream, which costs nothing extra: every session has paid for it.
    get: Log,
    /// The streams of requests. In boxes, because the table has more places than streams.
    logs: HashMap<StreamNumber, Box<Log>>,
    /// The streams that have ended, in that order.
    ended: VecDeque<StreamNumber>,
    tombstones: BTreeMap<StreamNumber, Option<RequestId>>,
    /// The streams of requests that were opened so far; their numbers count from 1.
    opened: u64,
}

impl Streams {
    fn log(&self, number: StreamNumber) -> Option<&Log> {
        match number {
            StreamNumber::GET => Some(&self.get),
            _ => self.logs.get(&number).map(|log| &**log),
        }
    }

    fn log_mut(&mut self, number: StreamNumber) -> Option<&mut Log> {
        match number {
            StreamNumber::GET => Some(&mut self.get),
            _ => self.logs.get_mut(&number).map(|log| &mut **log),
        }
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Log> {
        self.logs.values_mut().map(|log| &mut **log).chain([&mut self.get])
    }
}

/// What a session costs to begin with.
pub(super) fn cost(session: &NewSession) -> usize {
    let principal = session.principal.as_ref().map_or(0, |principal| principal.len());
    SESSION + principal + session.revision.len() + session.facts.len()
}

impl Session {
    /// A session for which room was made.
    pub(super) fn new(
        session: NewSession,
        idle: Duration,
        settings: Arc<BackplaneSettings>,
        budget: SessionBudget,
        now: Instant,
    ) -> Self {
        let NewSession { principal, revision, facts } = session;
        Self {
            settings,
            budget,
            record: SessionRecord { principal, revision, facts, version: 1 },
            idle,
            used: now,
            waiters: 0,
            closed: false,
            streams: None,
            responses: Slots::default(),
            parked: Slots::default(),
        }
    }

    /// Whether there still is a session, which may be found out only now.
    pub(super) fn is_alive(&mut self, now: Instant) -> bool {
        if !self.closed && self.waiters == 0 && now >= later(self.used, self.idle) {
            self.close();
        }
        !self.closed
    }

    pub(super) fn touch(&mut self, now: Instant) {
        // A caller that waited for the lock has read the clock before the one that held it.
        self.used = self.used.max(now);
    }

    /// A caller begins to wait in it: it does not end meanwhile.
    pub(super) fn begin_wait(&mut self) {
        self.waiters += 1;
    }

    /// A caller has waited, which counts as use until now.
    pub(super) fn end_wait(&mut self, now: Instant) {
        self.waiters -= 1;
        self.touch(now);
    }

    /// Ends it and gives back what it keeps; `false` when it had ended.
    pub(super) fn close(&mut self) -> bool {
        if self.closed {
            return false;
        }
        self.closed = true;
        if let Some(mut streams) = self.streams.take() {
            streams.all_mut().for_each(|log| log.wake());
        }
        self.responses.wake();
        self.responses = Slots::default();
        self.parked = Slots::default();
        self.record.facts = Bytes::new();
        self.budget.give(self.budget.held());
        true
    }

    /// Gives back what is over.
    pub(super) fn settle(&mut self, now: Instant) {
        while let Some(number) = self.first_over(now) {
            self.bury(number);
        }
    }

    /// The stream that ended first, if it has been kept for long enough.
    fn first_over(&self, now: Instant) -> Option<StreamNumber> {
        let number = *self.streams.as_ref()?.ended.front()?;
        let ended = self.stream(number).and_then(Log::ended_at);
        ended.is_none_or(|at| now >= later(at, self.settings.retention)).then_some(number)
    }

    /// Gives back the rest of what is over, which is only looked for now and then.
    pub(super) fn sweep(&mut self, now: Instant) {
        self.settle(now);
        let freed = self.responses.sweep(now) + self.parked.sweep(now);
        self.budget.give(freed);
    }

    pub(super) fn record(&self) -> SessionRecord {
        self.record.clone()
    }

    pub(super) fn update(&mut self, version: u64, facts: &Bytes) -> Result<UpdateOutcome, NoRoom> {
        if version != self.record.version {
            return Ok(UpdateOutcome::Conflict(self.record()));
        }
        if facts.len() > self.settings.facts_bytes {
            return Ok(UpdateOutcome::TooLarge);
        }
        self.take(facts.len())?;
        self.budget.give(self.record.facts.len());
        self.record.facts = facts.clone();
        self.record.version += 1;
        Ok(UpdateOutcome::Updated(self.record.version))
    }

    pub(super) fn open_stream(
        &mut self,
        request: Option<&RequestId>,
        writer: WriterEpoch,
    ) -> Result<OpenStreamOutcome, NoRoom> {
        let open = self.streams.as_ref().map_or(0, |streams| streams.logs.len());
        if open >= self.settings.streams && self.bury_read_out() == 0 {
            return Ok(OpenStreamOutcome::Full);
        }
        self.take(log::cost(request))?;
        let streams = self.streams.get_or_insert_default();
        streams.opened += 1;
        let number = StreamNumber(streams.opened);
        streams.logs.insert(number, Box::new(Log::new(request.cloned(), writer)));
        Ok(OpenStreamOutcome::Opened(number))
    }

    pub(super) fn append(
        &mut self,
        number: StreamNumber,
        writer: WriterEpoch,
        seq: u64,
        event: &Bytes,
        kind: StreamEventKind,
        now: Instant,
    ) -> Result<AppendOutcome, NoRoom> {
        if number == StreamNumber::GET {
            return Ok(AppendOutcome::Unknown);
        }
        let Some(log) = self.stream(number) else {
            let ended = self.streams.as_ref().is_some_and(|streams| streams.tombstones.contains_key(&number));
            return Ok(if ended { AppendOutcome::Ended } else { AppendOutcome::Unknown });
        };
        if let Some(refusal) = log.refusal(writer, seq) {
            return Ok(refusal);
        }
        if !self.make_room_in(number, event)? {
            return Ok(AppendOutcome::TooLarge);
        }
        if let Some(streams) = &mut self.streams
            && let Some(log) = streams.logs.get_mut(&number)
        {
            log.push(event.clone(), kind, None, now);
            if kind == StreamEventKind::Final {
                streams.ended.push_back(number);
            }
        }
        Ok(AppendOutcome::Stored)
    }

    pub(super) fn post(&mut self, key: PostKey, event: &Bytes, now: Instant) -> Result<PostOutcome, NoRoom> {
        if let Some(seq) = self.get_stream().posted(key) {
            return Ok(PostOutcome::Already(seq));
        }
        if !self.make_room_in(StreamNumber::GET, event)? {
            return Ok(PostOutcome::TooLarge);
        }
        Ok(PostOutcome::Stored(self.get_stream().push(event.clone(), StreamEventKind::Event, Some(key), now)))
    }

    fn get_stream(&mut self) -> &mut Log {
        &mut self.streams.get_or_insert_default().get
    }

    pub(super) fn forget(&mut self, number: StreamNumber, writer: WriterEpoch) -> bool {
        let running = self.stream(number).is_some_and(|log| log.stop().is_none() && log.writer == writer);
        if !running || number == StreamNumber::GET {
            return false;
        }
        if let Some(log) = self.streams.as_mut().and_then(|streams| streams.logs.remove(&number)) {
            log.wake();
            self.budget.give(log.cost());
        }
        true
    }

    pub(super) fn cancel(&mut self, request: &RequestId, now: Instant) -> usize {
        let Some(streams) = &mut self.streams else { return 0 };
        let before = streams.ended.len();
        for (number, log) in &mut streams.logs {
            if log.request.as_ref() == Some(request) && log.cancel(now) {
                streams.ended.push_back(*number);
            }
        }
        streams.ended.len() - before
    }

    pub(super) fn attach(&mut self, number: StreamNumber, from: ReadFrom) -> AttachOutcome {
        if number == StreamNumber::GET {
            return self.get_stream().attach(from);
        }
        let opened = self.opened_streams();
        match log_mut(&mut self.streams, number) {
            Some(log) => log.attach(from),
            None if number.0 <= opened => AttachOutcome::Gone { request: self.tombstone(number) },
            None => AttachOutcome::Unknown,
        }
    }

    pub(super) fn read(&mut self, number: StreamNumber, reader: ReaderToken, after: u64) -> ReadOutcome {
        let opened = self.opened_streams();
        match log_mut(&mut self.streams, number) {
            Some(log) => log.read(reader, after),
            None if (1..=opened).contains(&number.0) => ReadOutcome::Gone { request: self.tombstone(number) },
            None => ReadOutcome::Unknown,
        }
    }

    fn opened_streams(&self) -> u64 {
        self.streams.as_ref().map_or(0, |streams| streams.opened)
    }

    /// A stream that is kept.
    pub(super) fn stream(&self, number: StreamNumber) -> Option<&Log> {
        self.streams.as_ref()?.log(number)
    }

    pub(super) fn detach(&mut self, number: StreamNumber, reader: Option<ReaderToken>) {
        if let Some(log) = log_mut(&mut self.streams, number) {
            log.detach(reader);
        }
    }

    fn tombstone(&self, number: StreamNumber) -> Option<RequestId> {
        self.streams.as_ref()?.tombstones.get(&number).cloned().flatten()
    }

    /// Takes room, making some within the session where that is possible.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), NoRoom> {
        loop {
            match self.budget.take(bytes, self.settings.session_bytes) {
                Err(NoRoom::InSession) if self.free(bytes) > 0 => {}
                done => return done,
            }
        }
    }

    /// Takes room for an event; `false` when it is too long for its stream.
    fn make_room_in(&mut self, number: StreamNumber, event: &Bytes) -> Result<bool, NoRoom> {
        let cost = log::event_cost(event);
        let Some(most) = self.settings.stream_bytes.checked_sub(cost) else { return Ok(false) };
        if let Some(log) = log_mut(&mut self.streams, number) {
            while log.bytes() > most {
                let Some(freed) = log.drop_oldest() else { break };
                self.budget.give(freed);
            }
        }
        self.take(cost)?;
        Ok(true)
    }

    /// Adds a slot, if there is a place and room for it.
    pub(super) fn add_slot(
        &mut self,
        slots: fn(&mut Self) -> &mut Slots,
        key: &RequestId,
        slot: Slot,
        most: usize,
        now: Instant,
    ) -> Result<Added, NoRoom> {
        let (added, freed) = slots(self).make_place(key, most, now);
        self.budget.give(freed);
        if added == Added::New {
            self.take(slot.cost(key))?;
            slots(self).add(key, slot);
        }
        Ok(added)
    }

    /// Gives a parked call, and its stream where it has one, to a claimant.
    pub(super) fn claim(
        &mut self,
        call: &RequestId,
        claimant: WriterEpoch,
        stream: Option<StreamNumber>,
        now: Instant,
    ) -> Option<ClaimedCall> {
        let mut log = match stream {
            Some(number) => Some(log_mut(&mut self.streams, number).filter(|log| log.stop().is_none())?),
            None => None,
        };
        let state = self.parked.claim(call, claimant, now)?;
        if let Some(log) = &mut log {
            log.writer = claimant;
        }
        Some(ClaimedCall { state, last: log.map_or(0, |log| log.last()) })
    }

    /// Makes room of this size or as much as can be; gives how much it was.
    pub(super) fn free(&mut self, bytes: usize) -> usize {
        let mut freed = 0;
        while freed < bytes {
            let mut step = self.bury_read_out();
            if step == 0 {
                step = self.drop_given();
            }
            if step == 0 {
                step = self.shorten_longest(bytes - freed);
            }
            if step == 0 {
                break;
            }
            freed += step;
        }
        freed
    }

    /// Drops a response or a parked call that was given; gives what that freed.
    fn drop_given(&mut self) -> usize {
        let mut freed = self.responses.drop_given();
        if freed == 0 {
            freed = self.parked.drop_given();
        }
        self.budget.give(freed);
        freed
    }

    /// Gives up the stream that ended first of those that were read to the end: its reader has had everything.
    fn bury_read_out(&mut self) -> usize {
        let is_read_out = |number: &&StreamNumber| self.stream(**number).is_some_and(Log::is_read_out);
        let mut ended = self.streams.iter().flat_map(|streams| &streams.ended);
        let Some(number) = ended.find(is_read_out).copied() else { return 0 };
        self.bury(number)
    }

    /// Leaves of a stream only what it answered; gives what that freed.
    fn bury(&mut self, number: StreamNumber) -> usize {
        let Some(streams) = &mut self.streams else { return 0 };
        streams.ended.retain(|ended| *ended != number);
        let Some(log) = streams.logs.remove(&number) else { return 0 };
        log.wake();
        let freed = log.cost();
        self.budget.give(freed);
        let request = log.request.filter(|id| log::id_bytes(id) <= TOMBSTONE_ID);
        streams.tombstones.insert(number, request);
        while streams.tombstones.len() > self.settings.tombstones {
            streams.tombstones.pop_first();
        }
        freed
    }

    /// Drops the oldest events of the stream that keeps most, up to this size.
    fn shorten_longest(&mut self, bytes: usize) -> usize {
        let logs = self.streams.iter_mut().flat_map(|streams| streams.all_mut());
        let mut candidates: Vec<_> = logs.filter(|log| log.bytes() > 0).collect();
        candidates.sort_unstable_by_key(|log| std::cmp::Reverse(log.bytes()));
        for log in candidates {
            let mut freed = 0;
            while freed < bytes {
                let Some(cost) = log.drop_oldest() else { break };
                freed += cost;
            }
            if freed > 0 {
                self.budget.give(freed);
                return freed;
            }
        }
        0
    }
}

fn log_mut(streams: &mut Option<Box<Streams>>, number: StreamNumber) -> Option<&mut Log> {
    streams.as_mut()?.log_mut(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There are many idle sessions, and with its lock and two counts each fits into a block of 192 bytes.
    #[test]
    fn a_session_is_small() {
        let bytes = size_of::<parking_lot::Mutex<Session>>() + 2 * size_of::<usize>();
        assert!(bytes <= 192, "{bytes}");
        // The same of a session with a stream.
        assert!(size_of::<Streams>() <= 256, "{}", size_of::<Streams>());
    }
}
