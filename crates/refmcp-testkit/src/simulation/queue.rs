//! What is to happen, by virtual time.

use std::collections::BTreeMap;

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
    entries: BTreeMap<(u64, u64), Scheduled>,
    count: u64,
}

impl Queue {
    pub(super) fn push(&mut self, at: u64, scheduled: Scheduled) {
        self.count += 1;
        self.entries.insert((at, self.count), scheduled);
    }

    pub(super) fn pop(&mut self) -> Option<(u64, Scheduled)> {
        self.entries.pop_first().map(|((at, _), scheduled)| (at, scheduled))
    }
}
