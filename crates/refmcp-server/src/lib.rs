//! Write an MCP server as values and functions; one handler serves every revision of the protocol.
//!
//! ```
//! use refmcp_server::{Call, CallError, Server, Tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Greet { name: String }
//!
//! async fn greet(_: Call, Greet { name }: Greet) -> Result<String, CallError> {
//!     Ok(format!("Hello, {name}!"))
//! }
//!
//! # fn main() -> Result<(), refmcp_server::BuildError> {
//! let server = Server::builder("greeter", "1.0").tool(Tool::new("greet", "Greets a person", greet)).build()?;
//! # let _ = server;
//! // server.stdio().await?;
//! # Ok(()) }
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | `builder`, `server` | the builder, the server, and serving a connection |
//! | `catalog` | tools, resources, resource templates, prompts, apps and skills as values |
//! | `call`, `server_request`, `error` | a call as its handler sees it, requests to the client, errors |
//! | `forward` | serving calls by another server, for gateways |
//! | `session`, `session_request` | the state of one connection, requests to its client outside of calls |
//! | [`backplane`] | the state that replicas of an HTTP server share |
//! | `method` | dispatch of methods to handlers, and the log of calls |
//! | `tasks` | calls of tools that go on after their first response |
//! | `scopes` | the OAuth scopes that tools require |
//! | `statistics`, `trace_context` | counts of calls and findings, W3C trace context |
//! | `schema`, `request_state` | JSON Schemas of Rust types, sealed request states and cursors |

pub mod backplane;
mod builder;
mod call;
mod catalog;
mod error;
mod forward;
mod method;
mod replica_lease;
mod request_state;
mod schema;
mod scopes;
mod server;
mod server_request;
mod session;
mod session_request;
mod statistics;
pub mod tasks;
mod trace_context;

pub use builder::{BuildError, ServerBuilder};
pub use call::Call;
pub use catalog::{
    App, Catalog, CompletionRequest, InvalidApp, InvalidSkill, InvalidTool, Json, NoArguments, ParamHeader,
    Prompt, PromptArguments, Resource, ResourceTemplate, Skill, TemplateValues, Tool, ToolOutput,
};
pub use error::{CallError, ServerRequestError};
pub use forward::{Forward, ForwardedCall};
pub use method::{CallOutcome, CallRecord, CallWork};
pub use refmcp_proto::engine::{
    CallId, Change, HandlerOutcome, InputOutcome, LogMessage, Policy, Timeouts, VersionChoice,
};
pub use refmcp_proto::jsonrpc::{Limits, RpcError, excerpt};
pub use refmcp_proto::revision::Revision;
pub use refmcp_proto::time::Timestamp;
pub use refmcp_proto::uri_template::{UriTemplate, UriTemplateError};
pub use refmcp_proto::{app, finding, front_matter, model, peer, revision, rule, skill};
pub use refmcp_transport as transport;
pub use replica_lease::{ReplicaLease, RunGuard};
pub use request_state::StateSealer;
pub use scopes::INSUFFICIENT_SCOPE;
pub use server::{Server, SessionParts, WeakServer};
pub use server_request::{ElicitOutcome, ServerRequest};
pub use session::{Connection, Headers, RequestHeaders, Session, SessionService};
pub use statistics::{Histogram, MethodStatistics, Statistics};
pub use tasks::TaskOptions;
pub use trace_context::TraceContext;
