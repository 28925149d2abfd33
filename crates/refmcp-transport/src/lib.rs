//! Pipes that carry messages, and the driver that moves them between a pipe and an engine.
//!
//! | module | what it is |
//! |---|---|
//! | [`pipe`] | what the driver needs of a pipe, and lines of text over any byte stream |
//! | [`stdio`] | this process's own standard input and output |
//! | `websocket` | text frames, one message each; with the feature of that name |
//! | [`memory`] | two ends in one process |
//! | [`driver`] | the loop around a server engine; it holds no protocol rule |
//! | [`service`] | the service that runs calls, and the handle of running calls to the engine |
//! | [`cancel`] | cancellation of calls |
//! | [`changes`] | list changes and resource updates for every connection, merged while it is slow |
//! | [`clock`] | the time that engines are told |
//! | [`mod@file`] | reading files of limited size |

pub mod cancel;
pub mod changes;
pub mod clock;
pub mod driver;
pub mod file;
pub mod memory;
pub mod pipe;
pub mod service;
pub mod stdio;
#[cfg(feature = "websocket")]
pub mod websocket;

pub use cancel::Cancellation;
pub use driver::{ConnectionEnd, Driver};
pub use service::{CallService, CommandSink, EngineCommand, EngineHandle, RunningCall};
