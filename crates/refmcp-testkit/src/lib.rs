//! Fixtures for tests of MCP servers and clients, most of them without sockets and without waiting.
//!
//! | module | what it is |
//! |---|---|
//! | [`clock`] | a clock that is moved by hand |
//! | [`engine`] | a server engine to send messages to, with handlers that run at once |
//! | [`history`] | what happened in conversations, as plain data, and the invariants that hold of it |
//! | [`leaks`] | searches logs for secrets |
//! | [`messages`] | the parameters of `initialize`, and the `_meta` of requests without a session |
//! | [`ports`] | free ports that are known before something listens there |
//! | `redis` | a `redis-server` for a test (on Unix) |
//! | [`script`] | the handlers of the engine: tools, resources and prompts for every situation |
//! | [`sealer`] | an insecure sealer of request states |
//! | [`transcript`] | conversations as text files, run under several revisions |
//! | [`unchecked`] | counts what cannot be checked on a machine |
//! | `audit` | fails a test in which our side breaks a rule (feature `server`) |
//! | `backplane` | the contract of every backplane (feature `server`) |
//! | `client` | a client of a real server (feature `server`) |
//! | `faults` | injects faults between a client and a server, as a plan says (feature `faults`) |
//! | `log` | captures the log of a test and searches it for secrets (feature `log`) |
//! | `paused` | tokio's time, moved by hand, for tests over sockets (feature `server`) |
//! | `recording_observer` | an observer that records what passes (feature `server`) |
//! | `replay` | calls in every revision, with handlers that have to run again (feature `server`) |
//! | `schedule` | runs tasks in thousands of orders, and finds those that never wake (feature `server`) |
//! | `schema` | checks messages against the official schemas (feature `schema`) |
//! | `server_endpoint` | a real server as the server of a transcript (feature `server`) |
//! | `simulation` | conversations in virtual time over a faulty network, all from one seed (feature `server`) |

#[cfg(feature = "server")]
pub mod audit;
#[cfg(feature = "server")]
pub mod backplane;
#[cfg(feature = "server")]
pub mod client;
pub mod clock;
pub mod engine;
#[cfg(feature = "faults")]
pub mod faults;
pub mod history;
pub mod leaks;
#[cfg(feature = "log")]
pub mod log;
pub mod messages;
#[cfg(feature = "server")]
pub mod paused;
pub mod ports;
#[cfg(feature = "server")]
mod random;
#[cfg(feature = "server")]
pub mod recording_observer;
#[cfg(unix)]
pub mod redis;
#[cfg(feature = "server")]
pub mod replay;
#[cfg(feature = "server")]
pub mod schedule;
#[cfg(feature = "schema")]
pub mod schema;
pub mod script;
pub mod sealer;
#[cfg(feature = "server")]
pub mod server_endpoint;
#[cfg(feature = "server")]
pub mod simulation;
pub mod transcript;
pub mod unchecked;

/// What servers under test are written with.
#[cfg(feature = "server")]
pub use refmcp_server;
