//! Protocol engines: messages and a time go in; messages, work and deadlines come out.
//!
//! [`ServerEngine`] and [`client::ClientEngine`] hold the rules of a connection: the lifecycle, requests in flight,
//! cancellation, input rounds. They do no work: a call for a handler leaves the server's engine as [`Output::Run`] and comes
//! back through [`ServerEngine::finish`]. A driver moves bytes and runs handlers, and knows no rule.

use std::hash::BuildHasher;

use foldhash::fast::{FixedState, FoldHasher};

pub mod client;
mod config;
mod io;
pub mod message_checks;
mod report;
pub mod server;
mod task;

pub use config::{DuplicateIds, EarlyRequests, EngineConfig, Policy, Sealer, Timeouts, VersionChoice};
pub use io::{
    CallFailure, CallId, CallRequest, Change, CloseReason, Dispatch, ExchangeId, HandlerOutcome,
    InputOutcome, KeyedInputRequest, LogMessage, MessageKind, MessageTarget, OutgoingMessage, Output,
    Progress, Replay, ReplayState, RequestContext, RequestStateUse, Responded, SessionRequest, SharedOutput,
    TaskListener, WaitingCall,
};
pub use server::{
    DetachedCall, DetachedOutcome, FactsChange, ParkedCall, ResumeError, ServerEngine, SessionFacts,
};
pub use task::{TaskState, TaskTimes};

/// The hash of tables by numbers that the engine counts.
#[derive(Debug, Clone, Copy, Default)]
struct FastHash;

impl BuildHasher for FastHash {
    type Hasher = FoldHasher<'static>;

    /// The seed is not kept: there may be many engines, with a few tables each.
    fn build_hasher(&self) -> Self::Hasher {
        FixedState::default().build_hasher()
    }
}
