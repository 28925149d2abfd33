//! Rules about the transports: pipes, streamable HTTP, HTTP+SSE, and authorization over HTTP.

pub(super) mod authorization;
pub(super) mod http_events;
pub(super) mod http_requests;
pub(super) mod http_sessions;
pub(super) mod http_sse;
pub(super) mod mirrored_headers;
pub(super) mod stdio;
