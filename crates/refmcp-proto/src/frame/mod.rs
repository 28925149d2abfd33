//! Byte framing without IO: how messages lie in a stream of bytes.
//!
//! - [`lines`]: one message per line, as on standard input and output.
//! - [`sse`]: Server-Sent Events, as in the body of an HTTP response; `encode` writes, `decode` reads.

pub mod lines;
pub mod sse;

pub use lines::{Line, LineDecoder, encode_line};
pub use sse::{
    SseDecoder, SseEncodeError, SseError, SseEvent, SseItem, SseReceived, encode_comment, encode_event,
};
