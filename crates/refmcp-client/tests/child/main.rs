//! Servers that are started as child processes, good ones and bad ones: whatever they do ends in a clear error, in
//! bounded time, and leaves no process behind.
#![cfg(all(feature = "child", unix))]

mod bad_starts;
mod endings;
mod environment;
mod pipes;
mod stderr;
mod support;
