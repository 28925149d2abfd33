//! The protocol as a value: messages and a time go in, messages, work and deadlines come out.
//!
//! [`ServerEngine`] holds the rules of a conversation: who may speak when, which request is which, what is
//! cancelled, what is waiting for an answer. It does no work itself: a call for a handler leaves it as
//! [`Output::Run`] and comes back through [`ServerEngine::finish`]. Whoever drives it moves bytes and runs handlers,
//! and knows no rule.

pub mod client;
mod config;
mod hash;
mod io;
pub mod message_checks;
pub mod server;

pub use config::{DuplicateIds, EarlyRequests, EngineConfig, Policy, Sealer, Timeouts};
pub use io::{
    CallFailure, CallId, Change, CloseReason, Dispatch, ExchangeId, HandlerOutcome, InputOutcome,
    KeyedInputRequest, LogMessage, MessageKind, MessageTarget, OutgoingMessage, Output, Progress,
    ReplayState, RequestStateUse,
};
pub use server::ServerEngine;
