//! Drive any MCP server, over any transport and in every revision.
//!
//! ```no_run
//! # #[cfg(feature = "http")]
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use refmcp_client::{Client, http::StreamableHttp};
//! use serde_json::json;
//!
//! let client = Client::builder("my-app", "1.0").connect(StreamableHttp::new("http://127.0.0.1:3000/mcp")?).await?;
//! for tool in client.list_tools().await? {
//!     println!("{}", tool.name);
//! }
//! let sum = client.call_tool("sum", json!({ "a": 1, "b": 2 })).await?;
//! println!("{:?}", sum.structured_content);
//! client.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! A [`Client`] is one connection to a server. A [`Host`] has the handlers of the application: sampling, elicitation, roots,
//! events. A [`Connector`](transport::Connector) reaches a server: a child process, HTTP, WebSocket, memory. [`Skills`] are read
//! and verified file by file. Every request
//! ends: in a result, an error, or at its deadline; dropping one cancels it.
//!
//! The rules are those of [`ClientEngine`](refmcp_proto::engine::client::ClientEngine): version negotiation, progress tokens, timeouts, polling of tasks,
//! and tasks that the client runs for a server.

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

mod builder;
mod call_log;
mod client;
mod clients;
mod driver;
mod error;
mod forward;
mod host;
mod list;
mod request;
mod response_cache;
mod skills;
mod subscriptions;
mod tasks;

#[cfg(feature = "http")]
pub mod auth;
#[cfg(feature = "child")]
pub mod child;
#[cfg(feature = "http")]
pub mod http;
pub mod memory;
pub(crate) mod pipe;
pub mod redact;
pub mod transport;
#[cfg(feature = "websocket")]
pub mod websocket;

pub use builder::ClientBuilder;
pub use client::Client;
pub use clients::{Clients, ServerItem, ServerItems};
pub use error::{ConnectError, Error};
pub use host::{Event, Host};
pub use list::{Listable, Pages};
pub use refmcp_proto::app;
pub use refmcp_proto::engine::client::{
    CallError, ClientTaskConfig, OpenError, ServerFacts, TransportError, UnknownVersionPolicy, VersionPolicy,
};
pub use refmcp_proto::finding::Finding;
pub use refmcp_proto::jsonrpc::RpcError;
pub use refmcp_proto::model;
pub use refmcp_proto::revision::{Lifecycle, Revision};
pub use refmcp_proto::skill;
pub use refmcp_transport::observer;
pub use request::{Request, RoundOutcome};
pub use skills::{KnownSkill, ListedSkill, LoadedSkill, SkillError, SkillList, Skills};
pub use subscriptions::Subscriptions;
pub use tasks::{StartedCall, TaskCall, TaskHandle, TaskStatuses};
