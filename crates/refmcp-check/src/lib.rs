//! Checks any MCP server: over stdio, streamable HTTP, HTTP+SSE and WebSocket, in every revision, without fixtures.
//!
//! A check finds out what a server offers, sends it right and wrong requests, and judges by the rules of the specification what
//! comes back. What a server does by itself is judged by an [`Auditor`](refmcp_audit::Auditor), to which everything that passes
//! is shown; *probes* judge what only an unusual request brings to light.
//!
//! ```no_run
//! use refmcp_check::{Checker, Options, Target};
//! use refmcp_client::child::ChildProcess;
//!
//! # async fn run() {
//! let target = Target::child(ChildProcess::new("my-server"));
//! let report = Checker::new(target, Options::default()).run(|_| {}).await;
//! for result in report.broken() {
//!     println!("{}: {}", result.rule, result.outcome);
//! }
//! # }
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | `target` | the server: how it is reached |
//! | `connection` | exact bytes to a server, and what comes back, without an engine; [`RawConnection`] for others than probes |
//! | `session` | a connection in one revision: its handshake, ids, `_meta` and headers |
//! | `offer` | what a server offers: its lists, and which tools may be called |
//! | `arguments` | arguments that fit a schema |
//! | `probe` | the probes, as a table |
//! | `checker` | runs them, several at a time, each within its time |
//! | `report` | what was found |
//! | `judged` | the same in the shape of the reports of audits, which are written in every format |
//! | `requirements` | the rules that each revision is scored by |
//! | `baseline` | violations that are known |
//!
//! Only tools that are marked as read-only are called unless [`Options::allow_destructive`] is set; sessions are deleted.

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

mod arguments;
mod baseline;
mod checker;
mod connection;
mod judged;
mod offer;
mod probe;
mod report;
mod requirements;
mod session;
mod target;

pub use baseline::{Baseline, BaselineError, Compared};
pub use checker::{Checker, Options, Progress};
pub use connection::{EventListener, HttpRequest, RawConnection};
pub use probe::{checked_rules, probe_names};
pub use report::{CheckReport, CheckResult, CheckViolation, Exchange, Outcome};
pub use requirements::requirements;
pub use target::Target;
