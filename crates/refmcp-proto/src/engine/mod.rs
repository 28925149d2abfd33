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
pub mod mistakes;
pub mod server;

pub use config::{DuplicateIds, Early, EngineConfig, Policy, Sealer, Timeouts};
pub use io::{
    Answer, Answers, CallId, Change, Channel, CloseReason, Dispatch, Failure, Kind, Note, Outcome, Output,
    Progress, Question, Sending, StateUse, To,
};
pub use server::ServerEngine;
