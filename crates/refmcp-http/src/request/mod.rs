//! Requests of each transport and their responses.
//!
//! | module | what it is |
//! |---|---|
//! | `post`, `get`, `delete` | the three methods of streamable HTTP |
//! | `http_sse` | the older HTTP+SSE transport with its two endpoints |
//! | `websocket` | the upgrade to WebSocket |
//! | `exchange` | a request that waits for its response: JSON or an SSE stream |
//! | `headers` | MCP headers, `Accept` and `Content-Type` |
//! | `response` | status codes and JSON responses |

pub(crate) mod delete;
pub(crate) mod exchange;
pub(crate) mod get;
pub(crate) mod headers;
pub(crate) mod http_sse;
pub(crate) mod post;
pub(crate) mod response;
pub(crate) mod websocket;
