//! An MCP server over HTTP: streamable HTTP of every revision, HTTP+SSE and WebSocket, side by side.
//!
//! ```
//! use std::time::Duration;
//!
//! use refmcp_http::Endpoint;
//! use refmcp_server::Server;
//! use tokio::net::TcpListener;
//! use tokio_util::sync::CancellationToken;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::builder("greeter", "1.0").build()?;
//! let endpoint = Endpoint::builder(server).build();
//!
//! // Either a part of an axum application, which it is merged into or nested in …
//! let application = axum::Router::new().nest("/api", endpoint.router());
//!
//! // … or on a port of its own, until `stop` is cancelled.
//! let stop = CancellationToken::new();
//! let listener = TcpListener::bind("127.0.0.1:0").await?;
//! # drop(application);
//! # stop.cancel();
//! endpoint.serve(listener, stop, Duration::from_secs(10)).await;
//! # Ok(()) }
//! ```
//!
//! [`Endpoint::serve_with_shutdown`] takes a [`Listener`] (a port, one with TLS, a Unix socket) and a [`Shutdown`], which can first
//! say that the server is not ready. [`Tls::reload`](Tls) reads a renewed certificate.
//!
//! The example `mounted` is such an application, whole. [`Endpoint::routes`] says which paths there are; where an
//! application has one of them itself, the router must be nested. [`Options`] has the limits, all of them on. Health,
//! readiness and metrics can be kept apart for operators: [`Options::ops`], [`Endpoint::ops_router`].
//!
//! | module | what it is |
//! |---|---|
//! | `endpoint` | [`Endpoint`]: its builder, its routers, its background task |
//! | `options` | the settings of an endpoint |
//! | `routes`, `extra_routes` | the table of routes, and routes of another service on the same port |
//! | `access` | guard, rate limit, CORS, trusted proxies, access tokens and scopes |
//! | `request` | what is done for every request; `POST`, `GET`, `DELETE`, HTTP+SSE, WebSocket: from a request to its response |
//! | `session` | sessions, and the driver of a session's engine |
//! | `stream` | the stream of a response: pending messages and server-sent events |
//! | `refusal` | responses to requests that are refused |
//! | `serve` | listeners: ports, Unix sockets, TLS, HTTP/1.1 and HTTP/2, shutdown |
//! | `ops` | health, readiness, metrics and log lines |
//! | `deadline` | a timer that can be postponed cheaply |

mod access;
mod deadline;
mod endpoint;
mod extra_routes;
mod ops;
mod options;
mod refusal;
mod request;
mod routes;
mod serve;
mod session;
mod stream;

pub use access::rate_limit::Rate;
pub use access::resource_server::{ResourceServer, ResourceServerOptions};
pub use access::trusted_proxy::{TrustedProxy, TrustedProxyError};
pub use access::{cors, guard};
pub use endpoint::{Endpoint, EndpointBuilder};
pub use extra_routes::ExtraRoutes;
pub use ops::health::OpsRoutes;
pub use options::Options;
pub use request::websocket::websocket_handshake;
pub use routes::{EndpointPath, EndpointPathError, Route};
pub use serve::listener::Listener;
pub use serve::shutdown::Shutdown;
#[cfg(feature = "tls")]
pub use serve::tls::{Tls, TlsError};
#[cfg(unix)]
pub use serve::unix::{UnixSocket, UnixSocketError};
