//! What tests of MCP servers and clients need, without sockets and without waiting.
//!
//! | module | what it is |
//! |---|---|
//! | [`clock`] | a clock that stands still until it is told to move |
//! | [`leaks`] | looks for secrets in what was logged |
//! | [`rig`] | an engine with a client's side to type into and handlers that run at once |
//! | [`script`] | the handlers of the rig: tools, resources and prompts for every situation |
//! | [`sealer`] | seals states well enough for tests and for nothing else |
//! | [`ports`] | ports that are named before something listens there |
//! | [`transcript`] | conversations as text files, run under several revisions |
//! | [`unchecked`] | what a machine has nothing to check with, counted |
//! | `schema` | messages against the official schemas (feature `schema`) |
//! | `backplane` | what every shared state behind an HTTP server must do (feature `server`) |
//! | `client` | a client of a real server (feature `server`) |
//! | `log` | what is logged while a test runs, watched for secrets (feature `log`) |
//! | `paused` | tokio's time, moved by hand, for tests over sockets (feature `server`) |
//! | `reentry` | calls in every revision, with handlers forced to run again (feature `server`) |
//! | `served` | a real server as the other end of a transcript (feature `server`) |

#[cfg(feature = "server")]
pub mod backplane;
#[cfg(feature = "server")]
pub mod client;
pub mod clock;
pub mod leaks;
#[cfg(feature = "log")]
pub mod log;
#[cfg(feature = "server")]
pub mod paused;
pub mod ports;
#[cfg(feature = "server")]
pub mod reentry;
pub mod rig;
#[cfg(feature = "schema")]
pub mod schema;
pub mod script;
pub mod sealer;
#[cfg(feature = "server")]
pub mod served;
pub mod transcript;
pub mod unchecked;

/// What servers under test are written with.
#[cfg(feature = "server")]
pub use refmcp_server;
