//! Taps: find the messages in bytes that pass, and tell the observer. What a tap keeps is limited, what passes is not.

use std::mem::take;

use refmcp_client::observer::{Direction, Observed};
use refmcp_proto::frame::{Line, LineDecoder, SseDecoder};

/// Bytes of a message that is shown; longer ones pass unseen.
pub(super) const MAX_SHOWN: usize = 4 << 20;

/// Sees the bytes of one direction. What is left at the end is told as it is dropped.
pub(super) struct Tap {
    observed: Observed,
    direction: Direction,
    content: Content,
}

/// Where messages are in the bytes.
pub(super) enum Content {
    /// On lines.
    Lines(LineDecoder),
    /// The whole is one; or it is encoded, such as with gzip, and no message can be seen.
    Whole { kept: Vec<u8>, is_too_long: bool, encoding: Option<String> },
    /// In events.
    Events(SseDecoder),
    /// In frames of WebSocket.
    Frames(Box<Frames>),
    /// Standard error.
    Stderr,
    /// Too much for a tap, which has been told.
    Unseen,
}

impl Content {
    pub(super) fn lines() -> Self {
        Self::Lines(LineDecoder::new(MAX_SHOWN))
    }

    pub(super) fn events() -> Self {
        Self::Events(SseDecoder::new(MAX_SHOWN))
    }

    pub(super) fn whole(encoding: Option<String>) -> Self {
        Self::Whole { kept: Vec::new(), is_too_long: false, encoding }
    }
}

impl Tap {
    pub(super) fn new(observed: Observed, direction: Direction, content: Content) -> Self {
        Self { observed, direction, content }
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let Self { observed, direction, content } = self;
        match content {
            Content::Lines(decoder) => {
                decoder.feed(bytes);
                while let Some(line) = decoder.next_line() {
                    show_line(observed, *direction, &line);
                }
            }
            Content::Whole { kept, is_too_long, .. } => {
                *is_too_long |= kept.len() + bytes.len() > MAX_SHOWN;
                if *is_too_long {
                    *kept = Vec::new();
                } else {
                    kept.extend_from_slice(bytes);
                }
            }
            Content::Events(decoder) => {
                let mut items = Vec::new();
                let fed = decoder.feed(bytes, &mut items);
                items.iter().for_each(|item| observed.sse_item(*direction, item));
                if let Err(error) = fed {
                    observed.not_a_message(*direction, &[], &error);
                    *content = Content::Unseen;
                }
            }
            Content::Frames(frames) => frames.feed(bytes, |message| match message {
                Ok(message) => observed.passed(*direction, message),
                Err(why) => observed.not_a_message(*direction, &[], &why),
            }),
            Content::Stderr => observed.stderr(bytes),
            Content::Unseen => {}
        }
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        let Self { observed, direction, content } = self;
        match content {
            Content::Lines(decoder) => {
                while let Some(line) = decoder.finish() {
                    show_line(observed, *direction, &line);
                }
            }
            Content::Whole { is_too_long: true, .. } => too_long(observed, *direction),
            Content::Whole { kept, encoding: Some(encoding), .. } if !kept.is_empty() => {
                observed.not_a_message(*direction, kept, &format_args!("encoded: {encoding}"));
            }
            Content::Whole { kept, .. } if !kept.is_empty() => observed.passed(*direction, kept),
            _ => {}
        }
    }
}

fn show_line(observed: &Observed, direction: Direction, line: &Line<'_>) {
    match line {
        Line::Text(text) => observed.passed(direction, text),
        Line::TooLong => too_long(observed, direction),
    }
}

fn too_long(observed: &Observed, direction: Direction) {
    observed.not_a_message(direction, &[], &TOO_LONG);
}

const TOO_LONG: &str = "passed on, and longer than what is shown";

/// Reads frames of WebSocket (RFC 6455).
#[derive(Default)]
pub(super) struct Frames {
    /// The head of a frame, while it is incomplete.
    head: Vec<u8>,
    /// The frame that is read: bytes that are still to come, its mask, and how many bytes of it were read.
    rest: u64,
    mask: Option<[u8; 4]>,
    read: usize,
    is_data: bool,
    is_last: bool,
    /// The message so far, in several frames, and why it cannot be shown.
    message: Vec<u8>,
    why_unseen: Option<&'static str>,
}

impl Frames {
    fn feed(&mut self, mut bytes: &[u8], mut show: impl FnMut(Result<&[u8], &'static str>)) {
        while let Some((first, others)) = bytes.split_first() {
            if self.rest == 0 {
                self.head.push(*first);
                bytes = others;
                if !self.take_head() {
                    continue;
                }
            }
            let count = bytes.len().min(usize::try_from(self.rest).unwrap_or(usize::MAX));
            let (payload, others) = bytes.split_at(count);
            bytes = others;
            self.rest -= count as u64;
            self.keep(payload);
            if self.rest == 0 && self.is_data && self.is_last {
                let message = take(&mut self.message);
                match self.why_unseen.take() {
                    Some(why) => show(Err(why)),
                    None => show(Ok(&message)),
                }
            }
        }
    }

    fn keep(&mut self, payload: &[u8]) {
        if !self.is_data {
            return;
        }
        if self.message.len() + payload.len() > MAX_SHOWN {
            self.why_unseen = Some(TOO_LONG);
        }
        if self.why_unseen.is_none() {
            let (mask, read) = (self.mask.unwrap_or_default(), self.read);
            let unmasked =
                payload.iter().zip((read % 4..).map(|at| mask.get(at % 4).copied().unwrap_or_default()));
            self.message.extend(unmasked.map(|(byte, mask)| byte ^ mask));
        } else {
            self.message = Vec::new();
        }
        self.read += payload.len();
    }

    /// Reads the head of a frame, once it is whole.
    fn take_head(&mut self) -> bool {
        let [first, second, more @ ..] = self.head.as_slice() else { return false };
        let (length, more) = match second & 0x7f {
            126 => match more.split_first_chunk::<2>() {
                Some((length, more)) => (u64::from(u16::from_be_bytes(*length)), more),
                None => return false,
            },
            127 => match more.split_first_chunk::<8>() {
                Some((length, more)) => (u64::from_be_bytes(*length), more),
                None => return false,
            },
            length => (u64::from(length), more),
        };
        self.mask = if second & 0x80 == 0 {
            None
        } else {
            let Some((mask, _)) = more.split_first_chunk::<4>() else { return false };
            Some(*mask)
        };
        (self.is_last, self.is_data, self.read) = (first & 0x80 != 0, first & 0x08 == 0, 0);
        if self.is_data && first & 0x70 != 0 {
            self.why_unseen = Some("compressed");
        }
        self.rest = length;
        self.head.clear();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(chunks: &[&[u8]]) -> Vec<Result<String, &'static str>> {
        let (mut frames, mut shown) = (Frames::default(), Vec::new());
        for chunk in chunks {
            frames.feed(chunk, |message| {
                shown.push(message.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap()));
            });
        }
        shown
    }

    #[test]
    fn frames_cut_anywhere_are_the_same_messages() {
        let mut bytes = vec![0x81, 2, b'h', b'i'];
        // Masked, in two frames with a ping between them.
        bytes.extend([0x01, 0x82, 1, 2, 3, 4, b'a' ^ 1, b'b' ^ 2]);
        bytes.extend([0x89, 1, b'p']);
        bytes.extend([0x80, 0x85, 9, 8, 7, 6]);
        bytes.extend(b"cdefg".iter().zip([9, 8, 7, 6, 9]).map(|(byte, mask)| byte ^ mask));
        bytes.extend([0x81, 0, 0x88, 0]);
        bytes.extend([0x82, 126, 0x01, 0x00]);
        bytes.extend([b'x'; 256]);
        let expected: Vec<_> =
            ["hi".to_owned(), "abcdefg".to_owned(), String::new(), "x".repeat(256)].map(Ok).into();
        for at in 0..bytes.len() {
            let (left, right) = bytes.split_at(at);
            assert_eq!(shown(&[left, right]), expected, "{at}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(shown(&single), expected);
    }

    #[test]
    fn what_is_compressed_or_too_long_is_told_and_the_rest_is_read() {
        let mut long = vec![0x81, 127];
        long.extend((MAX_SHOWN as u64 + 1).to_be_bytes());
        long.extend(vec![b'x'; MAX_SHOWN + 1]);
        let rest = [0xc1, 1, b'?', 0x81, 1, b'a'];
        assert_eq!(shown(&[&long, &rest]), [Err(TOO_LONG), Err("compressed"), Ok("a".to_owned())]);
    }
}
