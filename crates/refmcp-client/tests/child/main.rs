//! Servers that are started as child processes, good and bad: all they do ends in a clear error, in
//! bounded time, and leaves no process behind.
#![cfg(all(feature = "child", unix))]

mod bad_starts;
mod endings;
mod environment;
mod observer;
mod pipes;
#[path = "../support/recording_sink.rs"]
mod recording_sink;
mod stderr;
mod support;
