//! Streams of HTTP/2 that h2 resets by itself: those of requests that break its rules, and of heads that are far too large. It has
//! no hook for that, so the frames that it writes are watched.

use std::sync::Arc;

use h2::Reason as ErrorCode;
use tokio_util::io::InspectWriter;

use super::socket::{ClientSocket, Socket};
use crate::access::caller::Client;
use crate::endpoint::EndpointState;
use crate::refusal::{Reason, Refusal};

/// Bytes of a frame's header: length, type, flags and stream.
const HEADER: usize = 9;

/// The type of the frame that resets a stream; its payload is an error code.
const RST_STREAM: u8 = 3;

/// The socket of an HTTP/2 connection whose resets are reported.
pub(super) fn watched<S: Socket>(
    socket: ClientSocket<S>,
    endpoint: Arc<EndpointState>,
    client: Client,
) -> InspectWriter<ClientSocket<S>, impl FnMut(&[u8])> {
    let mut frames = WrittenFrames::default();
    InspectWriter::new(socket, move |bytes| {
        frames.add(bytes, |code| {
            // The others are ours: a response that is complete, or that has failed here.
            if !matches!(code, ErrorCode::NO_ERROR | ErrorCode::CANCEL | ErrorCode::INTERNAL_ERROR) {
                let refusal = Refusal::bad_request(Reason::Malformed, format!("HTTP/2 stream: {code:?}"));
                endpoint.refused(client, None, None, &refusal);
            }
        });
    })
}

/// The place in the frames that were written so far.
#[derive(Debug, Default)]
struct WrittenFrames {
    /// The header of a frame, with the payload of one that resets a stream, as far as it is written.
    begun: [u8; HEADER + 4],
    length: usize,
    /// Bytes of the payload that follow.
    payload: usize,
}

impl WrittenFrames {
    /// Takes bytes that were written, and reports the error codes of streams that are reset.
    fn add(&mut self, mut bytes: &[u8], mut reset: impl FnMut(ErrorCode)) {
        while !bytes.is_empty() {
            let skipped = self.payload.min(bytes.len());
            self.payload -= skipped;
            let is_reset = self.length >= HEADER;
            let room = &mut self.begun[self.length..if is_reset { HEADER + 4 } else { HEADER }];
            let part = &bytes[skipped..];
            let taken = room.len().min(part.len());
            room[..taken].copy_from_slice(&part[..taken]);
            self.length += taken;
            bytes = &part[taken..];
            let [high, middle, low, kind, .., a, b, c, d] = self.begun;
            if self.length == HEADER && kind != RST_STREAM {
                self.payload = u32::from_be_bytes([0, high, middle, low]) as usize;
                self.length = 0;
            } else if self.length == HEADER + 4 {
                reset(u32::from_be_bytes([a, b, c, d]).into());
                self.length = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resets_are_found_wherever_writes_are_cut() {
        // SETTINGS, RST_STREAM, DATA whose payload looks like RST_STREAM, RST_STREAM.
        let reset = |code: u8| [0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, code];
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        let data = [&[0, 0, 13, 0, 1, 0, 0, 0, 1][..], &reset(9)].concat();
        let bytes = [&settings[..], &reset(1), &data, &settings, &reset(11)].concat();
        for size in 1..=bytes.len() {
            let (mut frames, mut found) = (WrittenFrames::default(), Vec::new());
            bytes.chunks(size).for_each(|part| frames.add(part, |code| found.push(code)));
            assert_eq!(found, [ErrorCode::PROTOCOL_ERROR, ErrorCode::ENHANCE_YOUR_CALM], "{size}");
        }
    }
}
