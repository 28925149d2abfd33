//! An MCP server over HTTP: streamable HTTP of every revision, HTTP+SSE and WebSocket, side by side.
//!
//! ```
//! use std::time::Duration;
//!
//! use refmcp_http::{Endpoint, Options};
//! use refmcp_server::Server;
//! use tokio::net::TcpListener;
//! use tokio_util::sync::CancellationToken;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::new("greeter", "1.0").build()?;
//! let endpoint = Endpoint::new(server, Options::default());
//!
//! // Either a part of an axum application, which it is merged into or nested in …
//! let application = axum::Router::new().nest("/api", endpoint.router());
//!
//! // … or on a port of its own, until `stop` is cancelled.
//! let stop = CancellationToken::new();
//! let listener = TcpListener::bind("127.0.0.1:0").await?;
//! # drop(application);
//! # stop.cancel();
//! endpoint.serve(listener, stop, Duration::from_secs(10)).await?;
//! # Ok(()) }
//! ```
//!
//! [`Endpoint::serve_until`] takes a [`Listener`] (a port, one with TLS, a Unix socket) and a [`Shutdown`], which can first
//! say that the server is not ready. [`Tls::reload`](Tls) reads a renewed certificate.
//!
//! The example `mounted` is such an application, whole. [`Endpoint::routes`] says which paths there are; where an
//! application has one of them itself, the router must be nested. [`Options`] has the limits, all of them on. Health,
//! readiness and metrics can be kept apart for operators: [`Options::ops`], [`Endpoint::ops_router`].
//!
//! | module | what it is |
//! |---|---|
//! | `endpoint` | the whole thing: a router to mount, and what is done for every request |
//! | `serve` | a listener of its own: ports, Unix sockets, connections, TLS, HTTP/2, stopping |
//! | `routes` | what is served where |
//! | `guard`, `rate`, `cors` | who may speak to us at all, how often, and what browsers want to hear |
//! | `forwarded` | what proxies that are trusted say of their clients |
//! | `authority`, `scopes` | who may use the server, and for what |
//! | `besides` | what else is served on the same port |
//! | `refusal`, `refusal_log` | turning a request away, and the log of it |
//! | `post`, `get`, `delete` | the three methods of the streamable endpoint |
//! | `exchange` | a request that waits for its answer |
//! | `client`, `headers` | who asks, what headers say, and whether they agree with the body they mirror |
//! | `status` | the HTTP status of an answer |
//! | `error_log` | the log of errors that clients are answered with |
//! | `conversation` | an engine that many exchanges share |
//! | `outlet` | where the messages of one exchange go: to whoever waits for the answer, or into the shared log |
//! | `sse` | a stream as server-sent events |
//! | `sessions` | the sessions of the revisions that have them |
//! | `legacy` | the older transport of two endpoints, HTTP+SSE |
//! | `websocket` | leaving HTTP for a pipe of text frames |
//! | `operation`, `metrics` | for those who operate the server: health, readiness, numbers |
//! | `prometheus`, `process` | the format of the numbers, and those of the process |

mod alarm;
mod authority;
mod besides;
mod client;
mod conversation;
pub mod cors;
mod delete;
mod endpoint;
mod error_log;
mod exchange;
mod forwarded;
mod get;
pub mod guard;
mod headers;
mod legacy;
mod metrics;
mod operation;
mod options;
mod outlet;
mod post;
mod process;
mod prometheus;
mod rate;
mod refusal;
mod refusal_log;
mod routes;
mod scopes;
mod serve;
mod sessions;
mod sse;
mod status;
mod websocket;

pub use authority::Authority;
pub use besides::Besides;
pub use endpoint::Endpoint;
pub use forwarded::{BadProxy, TrustedProxy};
pub use operation::OpsRoutes;
pub use options::Options;
pub use rate::Rate;
pub use routes::{BadPath, EndpointPath, Route};
pub use serve::listener::Listener;
pub use serve::shutdown::Shutdown;
#[cfg(feature = "tls")]
pub use serve::tls::{BadTls, Tls};
#[cfg(unix)]
pub use serve::unix::{BadSocket, UnixSocket};
