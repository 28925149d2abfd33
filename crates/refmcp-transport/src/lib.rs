//! Pipes that carry messages, and the driver that moves them between a pipe and an engine.
//!
//! | module | what it is |
//! |---|---|
//! | [`pipe`] | what the driver needs of a pipe, and lines of text over any byte stream |
//! | [`stdio`] | this process's own standard input and output |
//! | `websocket` | text frames, one message each; with the feature of that name |
//! | [`memory`] | two ends in one process |
//! | [`engine_driver`] | the engine behind a lock, the calls that run, the deadline; shared by all drivers of server engines |
//! | [`driver`] | the loop between a pipe and an engine; it holds no protocol rule |
//! | [`service`] | the service that runs calls, and the handle of running calls to the engine |
//! | [`memory_budget`] | the bytes that a process holds for its peers, and their limit |
//! | [`cancel`] | cancellation of calls |
//! | [`changes`] | list changes and resource updates for every connection, merged while it is slow |
//! | [`clock`] | the time that engines are told |
//! | [`mod@file`] | reading files of limited size |
//! | [`observer`] | each message, HTTP head and finding of a connection, for audit, traces and metrics |

pub mod cancel;
pub mod changes;
pub mod clock;
pub mod driver;
pub mod engine_driver;
pub mod file;
pub mod header;
pub mod memory;
pub mod memory_budget;
pub mod observer;
pub mod pipe;
pub mod service;
pub mod stdio;
#[cfg(feature = "websocket")]
pub mod websocket;

pub use cancel::Cancellation;
pub use driver::{ConnectionEnd, Driver, DriverOptions};
pub use engine_driver::{EngineDriver, Outbox};
pub use memory_budget::{MemoryAccount, MemoryBudget, MemoryReservation, NoMemory};
pub use observer::{Observed, Observer};
pub use service::{CallService, EngineHandle, RunningCall};
