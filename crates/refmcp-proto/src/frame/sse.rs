//! Server-Sent Events as of the WHATWG text: the encoder and the decoder.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub use decode::{SseDecoder, SseError, SseItem, SseReceived};
pub use encode::{SseEncodeError, SseEvent, encode_comment, encode_event};
