//! Requests that h2 refuses by itself: it resets the streams of those that break its rules, and answers heads that are far too
//! large with 431. It has no hook for that, so the frames that it writes are watched.

use std::sync::Arc;

use axum::http::StatusCode;
use h2::Reason as ErrorCode;
use tokio_util::io::InspectWriter;

use super::socket::{ClientSocket, Socket};
use crate::access::caller::Client;
use crate::endpoint::EndpointState;
use crate::refusal::{Reason, Refusal};

/// Bytes of a frame's header: length, type, flags and stream.
const HEADER: usize = 9;

/// The frame with the head of a response, and its flag that nothing follows.
const HEADERS: u8 = 1;
const END_STREAM: u8 = 1;

/// The frame that resets a stream; its payload is an error code.
const RST_STREAM: u8 = 3;

/// The longest payload that is looked at. A head of `:status` alone is shorter.
const LONGEST: usize = 16;

/// The socket of an HTTP/2 connection, where what h2 refuses by itself is reported. `most` is the size of a head up to which h2
/// leaves it to the endpoint.
pub(super) fn watched<S: Socket>(
    socket: ClientSocket<S>,
    endpoint: Arc<EndpointState>,
    client: Client,
    most: u32,
) -> InspectWriter<ClientSocket<S>, impl FnMut(&[u8])> {
    let mut frames = WrittenFrames::default();
    InspectWriter::new(socket, move |bytes| {
        frames.add(bytes, |refused| {
            let refusal = match refused {
                Refused::Head => Refusal::new(
                    StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                    Reason::HeadSize,
                    format!("a head of more than {most} bytes"),
                ),
                // Resets of a response that is complete, or that has failed here.
                Refused::Stream(ErrorCode::NO_ERROR | ErrorCode::CANCEL | ErrorCode::INTERNAL_ERROR) => {
                    return;
                }
                Refused::Stream(code) => {
                    Refusal::bad_request(Reason::Malformed, format!("HTTP/2 stream: {code:?}"))
                }
            };
            endpoint.refused(client, None, None, &refusal);
        });
    })
}

/// What h2 refuses.
#[derive(Debug, PartialEq, Eq)]
enum Refused {
    /// A head that it answered with 431.
    Head,
    /// A stream that it reset, for this reason.
    Stream(ErrorCode),
}

/// The place in the frames that were written so far.
#[derive(Debug, Default)]
struct WrittenFrames {
    /// The header of a frame, with the payload of one that is looked at, as far as it is written.
    begun: [u8; HEADER + LONGEST],
    length: usize,
    /// Bytes of the payload that are not looked at, and follow.
    skipped: usize,
    /// The stream whose head was refused last: h2 resets it afterwards where the request has a body.
    refused: [u8; 4],
}

impl WrittenFrames {
    /// Takes bytes that were written, and reports what they refuse.
    fn add(&mut self, mut bytes: &[u8], mut report: impl FnMut(Refused)) {
        while !bytes.is_empty() {
            let skipped = self.skipped.min(bytes.len());
            self.skipped -= skipped;
            bytes = &bytes[skipped..];
            let wanted = HEADER + if self.length < HEADER { 0 } else { self.payload() };
            let taken = (wanted - self.length).min(bytes.len());
            self.begun[self.length..][..taken].copy_from_slice(&bytes[..taken]);
            self.length += taken;
            bytes = &bytes[taken..];
            if self.length == HEADER && !self.is_looked_at() {
                self.skipped = self.payload();
                self.length = 0;
            } else if self.length >= HEADER && self.length == HEADER + self.payload() {
                self.look().into_iter().for_each(&mut report);
                self.length = 0;
            }
        }
    }

    /// Bytes of the payload of the frame whose header is written.
    fn payload(&self) -> usize {
        let [high, middle, low, ..] = self.begun;
        u32::from_be_bytes([0, high, middle, low]) as usize
    }

    /// Whether the frame whose header is written can refuse something.
    fn is_looked_at(&self) -> bool {
        let [_, _, _, kind, flags, ..] = self.begun;
        let refuses = kind == RST_STREAM || kind == HEADERS && flags & END_STREAM != 0;
        refuses && self.payload() <= LONGEST
    }

    /// What the frame that is written refuses.
    fn look(&mut self) -> Option<Refused> {
        let [_, _, _, kind, _, a, b, c, d, ref payload @ ..] = self.begun;
        let (stream, payload) = ([a, b, c, d], &payload[..self.length - HEADER]);
        if kind == RST_STREAM {
            let code = u32::from_be_bytes(payload.try_into().ok()?);
            return (stream != self.refused).then(|| Refused::Stream(code.into()));
        }
        // Each response of ours has a date beside its status; that of h2 has none.
        is_one_field(payload).then(|| {
            self.refused = stream;
            Refused::Head
        })
    }
}

/// Whether a short block of HPACK has one field, after changes of the table's size.
fn is_one_field(mut block: &[u8]) -> bool {
    while let [0x20..0x40, ..] = block
        && integer(&mut block, 5).is_some()
    {}
    let is_read = match block {
        [first, ..] if *first >= 0x80 => integer(&mut block, 7).is_some(),
        [first, ..] => {
            let index = integer(&mut block, if first & 0x40 == 0 { 4 } else { 6 });
            index.is_some_and(|index| index > 0)
                && integer(&mut block, 7).and_then(|length| block.split_off(..length)).is_some()
        }
        [] => false,
    };
    is_read && block.is_empty()
}

/// Takes an integer of HPACK with a prefix of so many bits from a short block. None stands for one of more than two bytes: the
/// table of h2 and a status have smaller ones.
fn integer(block: &mut &[u8], prefix: u32) -> Option<usize> {
    let most = (1 << prefix) - 1;
    let first = usize::from(*block.split_off_first()?) & most;
    if first < most {
        return Some(first);
    }
    let next = *block.split_off_first()?;
    (next < 0x80).then_some(most + usize::from(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of stream 1.
    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).unwrap();
        [&[0, 0, length, kind, flags, 0, 0, 0, 1], payload].concat()
    }

    fn reset(code: u8) -> Vec<u8> {
        frame(RST_STREAM, 0, &[0, 0, 0, code])
    }

    /// What is found in these frames, however their writes are cut.
    fn found(frames: &[Vec<u8>]) -> Vec<Refused> {
        let bytes = frames.concat();
        let of = |size: usize| {
            let (mut frames, mut found) = (WrittenFrames::default(), Vec::new());
            bytes.chunks(size).for_each(|part| frames.add(part, |refused| found.push(refused)));
            found
        };
        let whole = of(bytes.len());
        (1..bytes.len()).for_each(|size| assert_eq!(of(size), whole, "{size}"));
        whole
    }

    #[test]
    fn resets_are_found() {
        let settings = frame(4, 0, &[]);
        let data = frame(0, 0, &reset(9));
        let frames = [settings.clone(), reset(1), data, settings, reset(11)];
        let wanted = [ErrorCode::PROTOCOL_ERROR, ErrorCode::ENHANCE_YOUR_CALM].map(Refused::Stream);
        assert_eq!(found(&frames), wanted);
    }

    #[test]
    fn heads_of_a_status_alone_are_found_with_their_reset() {
        for head in [
            &[0x48, 3, b'4', b'3', b'1'][..],
            &[0x08, 3, b'4', b'3', b'1'],
            &[0x48, 0x82, 0x68, 0x1f],
            &[0xbe],
            &[0xff, 0x01],
            &[0x3f, 0x10, 0x20, 0xbe],
        ] {
            let frames = [frame(HEADERS, 5, head), reset(1)];
            assert_eq!(found(&frames), [Refused::Head], "{head:?}");
        }
    }

    #[test]
    fn other_heads_refuse_nothing() {
        for (flags, head) in [
            (4, &[0xbe][..]),
            (5, &[0xbe, 0xbf]),
            (5, &[0x48, 3, b'4', b'3', b'1', 0xbf]),
            (5, &[0x48, 4, b'4', b'3', b'1']),
            (5, &[0x40, 1, b'a', 1, b'b']),
            (5, &[0x20]),
            (5, &[0xff]),
            (5, &[]),
            (5, &[0xbe; LONGEST + 1]),
        ] {
            assert_eq!(found(&[frame(HEADERS, flags, head)]), [], "{head:?}");
        }
    }
}
