//! What is to happen, by virtual time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use refmcp_proto::engine::client::ServerRequestId;
use refmcp_proto::engine::{CallId, ExchangeId};
use refmcp_proto::jsonrpc::RpcError;
use serde_json::Value;

use super::network::Signal;
use super::server::EngineId;

/// Something that is to happen.
#[derive(Debug)]
pub(super) enum Scheduled {
    Signal(Signal),
    Restart,
    /// The next action of a client.
    Action(usize),
    Cancel(usize, CallId),
    /// The response of a client's host to an input request.
    Respond(usize, ServerRequestId, Box<Result<Value, RpcError>>),
    ClientDeadline(usize),
    /// A client asks for the rest of a stream; exchange 0 is the GET stream.
    Resume(usize, ExchangeId),
    /// A client leaves, if it has nothing more to do.
    Finish(usize),
    /// The next step of a handler.
    Handler(EngineId, CallId),
    EngineDeadline(EngineId),
    /// A response that has not come becomes a stream.
    DecideStream(EngineId, ExchangeId),
    /// Calls whose client has gone have had their time.
    Grace(EngineId),
}

/// Things to happen: the earliest first, and of those the one that was scheduled first.
#[derive(Debug, Default)]
pub(super) struct Queue {
    entries: BinaryHeap<Entry>,
    count: u64,
}

#[derive(Debug)]
struct Entry {
    at: u64,
    number: u64,
    scheduled: Scheduled,
}

impl Queue {
    pub(super) fn push(&mut self, at: u64, scheduled: Scheduled) {
        self.count += 1;
        self.entries.push(Entry { at, number: self.count, scheduled });
    }

    pub(super) fn pop(&mut self) -> Option<(u64, Scheduled)> {
        self.entries.pop().map(|entry| (entry.at, entry.scheduled))
    }
}

impl Entry {
    fn key(&self) -> (u64, u64) {
        (self.at, self.number)
    }
}

/// A heap gives the greatest first.
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Entry {}
