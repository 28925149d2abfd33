//! Requests of each transport and their responses.

pub(crate) mod body;
mod dispatch;
pub(crate) mod get;
pub(crate) mod headers;
pub(crate) mod http_sse;
pub(crate) mod observed;
pub(crate) mod post;
pub(crate) mod response;
pub(crate) mod websocket;
