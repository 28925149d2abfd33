//! Streams of messages to clients.

mod answers;
pub(crate) mod response_stream;
pub(crate) mod retry;
pub(crate) mod sse;
