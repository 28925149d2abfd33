//! An MCP server over HTTP: streamable HTTP of every revision, HTTP+SSE and WebSocket, side by side.
//!
//! | module | what it is |
//! |---|---|
//! | `endpoint` | the whole thing: a router to mount, or a listener to serve |
//! | `guard` | who may speak to us at all: `Host` and `Origin` |
//! | `post`, `get`, `delete` | the three methods of the streamable endpoint |
//! | `headers` | what headers say, and whether they agree with the body they mirror |
//! | `status` | the HTTP status of an answer |
//! | `conversation` | an engine that many exchanges share, and the streams its messages go to |
//! | `stream` | the messages of one exchange: written to a log first, read from there by whoever listens |
//! | `sse` | a stream as server-sent events |
//! | `sessions` | the sessions of the revisions that have them |
//! | `legacy` | the older transport of two endpoints, HTTP+SSE |
//! | `websocket` | a pipe of text frames |

mod conversation;
mod delete;
mod endpoint;
mod get;
mod guard;
mod headers;
mod legacy;
mod options;
mod post;
mod sessions;
mod sse;
mod status;
mod stream;
mod websocket;

pub use endpoint::Endpoint;
pub use options::Options;
