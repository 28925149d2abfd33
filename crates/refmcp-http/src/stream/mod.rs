//! Streams of messages to clients.
//!
//! | module | what it is |
//! |---|---|
//! | `response_stream` | the messages of one request until they are read, or until they are in the backplane's log |
//! | `sse` | a stream as server-sent events, and its event ids |

pub(crate) mod response_stream;
pub(crate) mod sse;
