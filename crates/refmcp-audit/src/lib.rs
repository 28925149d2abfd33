//! Audits of conversations between MCP clients and servers: what passed is recorded, and each rule of the specification gets a
//! verdict: kept, broken (with the message, what was expected and how to fix it), or not exercised.
//!
//! | module | what it is |
//! |---|---|
//! | [`recording`] | what crossed a connection, as JSON lines: written by an observer, read from a file |
//! | [`auditor`] | events in, verdicts out: no IO and no clock |
//! | [`replay`] | recordings replayed as a client, as a server, and compared |
//! | [`bounded`] | the auditor of the beginning of each conversation, whose cost is bounded |
//! | [`verdict`] | verdicts on rules, with their evidence |
//! | [`coverage`] | of each rule, how it is observed, or why it cannot be |
//! | [`report`] | verdicts as text, JSON, JUnit, SARIF, Markdown and HTML, and what differs between two of them |
//! | [`visible`] | text from peers, made harmless to show |
//!
//! ```
//! use refmcp_audit::Auditor;
//! use refmcp_audit::recording;
//!
//! let recording = r#"
//!     {"at":1,"event":"opened","connection":1,"side":"server","transport":"stdio","peer":""}
//!     {"at":2,"event":"message","connection":1,"direction":"received","message":{"jsonrpc":"2.0","id":7,"result":{}}}
//! "#;
//! let mut auditor = Auditor::default();
//! for event in recording::read(recording.as_bytes()) {
//!     auditor.observe(&event?);
//! }
//! let broken: Vec<_> = auditor.finish().iter().flat_map(|it| it.broken()).map(|it| it.rule.id).collect();
//! assert_eq!(broken, ["RPC-05"]);
//! # Ok::<(), recording::ReadError>(())
//! ```

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

pub mod auditor;
pub mod bounded;
mod client_verdict;
pub mod coverage;
pub mod recording;
pub mod replay;
pub mod report;
pub mod verdict;
pub mod visible;

pub use auditor::Auditor;
pub use client_verdict::ClientVerdict;
