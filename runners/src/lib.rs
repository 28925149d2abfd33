//! Runs programs of others against our build and reports the results: interoperability, conformance, benchmarks.
//!
//! - [`interop`]: foreign clients against our server, our command line against foreign servers.
//! - [`conformance`]: the official conformance suite.
//! - [`mod@bench`]: our server and client beside others.
//! - [`soak`]: our server under good and hostile load.
//! - [`shell`], [`Build`], [`Tally`]: running commands, the built programs, counted results.

#![allow(clippy::print_stdout, reason = "the output of a command line program")]

pub mod bench;
mod build;
pub mod conformance;
pub mod interop;
// Included as a file instead of a dependency: the crates of the project may be broken when this runs.
mod install;
#[path = "../../crates/refmcp-testkit/src/leaks.rs"]
#[allow(unreachable_pub, dead_code, reason = "a module of a library, of which a part is used here")]
mod leaks;
mod parallel;
mod revisions;
mod server;
pub mod shell;
pub mod soak;
mod tally;

pub use build::{Build, PACKAGES};
pub use revisions::REVISIONS;
pub use tally::Tally;
