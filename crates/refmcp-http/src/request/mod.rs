//! Requests of each transport and their responses.
//!
//! | module | what it is |
//! |---|---|
//! | `dispatch` | what is done for every request: access, routing, refusals, CORS, metrics |
//! | `post`, `get` | the methods of streamable HTTP: `POST`; `GET` and `DELETE` |
//! | `http_sse` | the older HTTP+SSE transport with its two endpoints |
//! | `websocket` | the upgrade to WebSocket |
//! | `headers`, `body` | reading and checking the headers and the body of a request |
//! | `response` | a request that waits for its response: JSON or an SSE stream |

pub(crate) mod body;
mod dispatch;
pub(crate) mod get;
pub(crate) mod headers;
pub(crate) mod http_sse;
pub(crate) mod post;
pub(crate) mod response;
pub(crate) mod websocket;
