//! Streams of messages to clients.

pub(crate) mod message;
pub(crate) mod response_stream;
pub(crate) mod retry;
pub(crate) mod sse;
