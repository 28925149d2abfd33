//! Reads Server-Sent Events out of a stream of bytes cut anywhere.

use std::borrow::Cow;
use std::mem;

use memchr::{memchr, memchr2};

const BOM: &[u8] = b"\xEF\xBB\xBF";
const KEPT_BETWEEN_LINES: usize = 64 * 1024;

/// An event as it was dispatched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseReceived {
    /// The last id the stream gave up to this event, be it this event's own or an earlier one's.
    pub id: Option<String>,
    /// Whether this event gave that id.
    pub has_own_id: bool,
    /// The event name, `message` when the stream gave none.
    pub event: String,
    /// The payload, its lines joined by LF.
    pub data: String,
}

/// What an [`SseDecoder`] finds in a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SseItem {
    /// An event with a payload.
    Event(SseReceived),
    /// A priming event: it had an id of its own, but no data or empty data.
    Primed {
        /// The id to resume from.
        id: String,
    },
    /// The time to wait before connecting again, in milliseconds; beyond `u64` it saturates.
    Retry(u64),
    /// A comment line, usually a keep-alive.
    Comment,
}

/// Why a stream cannot be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SseError {
    /// An event, or a single line, was over the limit.
    #[error("an event is longer than {max_message_size} bytes")]
    TooLong {
        /// The limit it was over, in bytes.
        max_message_size: usize,
    },
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Nothing but the first so many bytes of a byte order mark was seen.
    Bom(usize),
    Body,
    Dead(SseError),
}

/// Reads one stream of events; an event the stream breaks off in is never given out.
#[derive(Debug)]
pub struct SseDecoder {
    phase: Phase,
    after_cr: bool,
    partial: Vec<u8>,
    event_bytes: usize,
    max_message_size: usize,
    data: Option<String>,
    event: String,
    id: Option<String>,
    own_id: bool,
    committed_id: Option<String>,
}

impl SseDecoder {
    /// A decoder that refuses events whose lines together have more than `max_message_size` bytes.
    ///
    /// Line ends do not count, nor do comments, except that no single comment may be over the limit.
    #[must_use]
    pub fn new(max_message_size: usize) -> Self {
        Self {
            phase: Phase::Bom(0),
            after_cr: false,
            partial: Vec::new(),
            event_bytes: 0,
            max_message_size,
            data: None,
            event: String::new(),
            id: None,
            own_id: false,
            committed_id: None,
        }
    }

    /// The id to resume from: that of the last event that was complete; an empty id takes it back.
    #[must_use]
    pub fn last_event_id(&self) -> Option<&str> {
        self.committed_id.as_deref().filter(|id| !id.is_empty())
    }

    /// Takes in the next bytes and appends to `out` what they complete.
    ///
    /// # Errors
    /// When an event is over the limit; what came before it is in `out`, and each later call fails alike.
    pub fn feed(&mut self, bytes: &[u8], out: &mut impl Extend<SseItem>) -> Result<(), SseError> {
        let result = match self.phase {
            Phase::Dead(error) => return Err(error),
            Phase::Body => self.feed_body(bytes, out),
            Phase::Bom(seen) => self.feed_start(seen, bytes, out),
        };
        if let Err(error) = result {
            self.phase = Phase::Dead(error);
            self.partial = Vec::new();
            self.data = None;
        }
        result
    }

    fn feed_start(
        &mut self,
        seen: usize,
        bytes: &[u8],
        out: &mut impl Extend<SseItem>,
    ) -> Result<(), SseError> {
        let (had, awaited) = BOM.split_at_checked(seen).unwrap_or_default();
        if let Some(body) = bytes.strip_prefix(awaited) {
            self.phase = Phase::Body;
            self.feed_body(body, out)
        } else if awaited.starts_with(bytes) {
            self.phase = Phase::Bom(seen + bytes.len());
            Ok(())
        } else {
            self.phase = Phase::Body;
            self.feed_body(had, out)?;
            self.feed_body(bytes, out)
        }
    }

    fn feed_body(&mut self, bytes: &[u8], out: &mut impl Extend<SseItem>) -> Result<(), SseError> {
        let mut rest = bytes;
        loop {
            if self.after_cr && !rest.is_empty() {
                self.after_cr = false;
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            let split = memchr2(b'\r', b'\n', rest).and_then(|at| rest.split_at_checked(at));
            let Some((line, [end, after @ ..])) = split else {
                self.check_room(rest.len())?;
                self.partial.extend_from_slice(rest);
                return Ok(());
            };
            self.check_room(line.len())?;
            self.after_cr = *end == b'\r';
            rest = after;
            if self.partial.is_empty() {
                self.line(line, out);
            } else {
                let mut whole = mem::take(&mut self.partial);
                whole.extend_from_slice(line);
                self.line(&whole, out);
                whole.clear();
                whole.shrink_to(KEPT_BETWEEN_LINES);
                self.partial = whole;
            }
        }
    }

    fn check_room(&self, more: usize) -> Result<(), SseError> {
        let total = self.event_bytes.saturating_add(self.partial.len()).saturating_add(more);
        if total > self.max_message_size {
            Err(SseError::TooLong { max_message_size: self.max_message_size })
        } else {
            Ok(())
        }
    }

    fn line(&mut self, line: &[u8], out: &mut impl Extend<SseItem>) {
        match line {
            [] => out.extend(self.dispatch()),
            [b':', ..] => out.extend([SseItem::Comment]),
            _ => {
                self.event_bytes += line.len();
                let (name, value) = memchr(b':', line)
                    .and_then(|at| Some((line.get(..at)?, line.get(at + 1..)?)))
                    .unwrap_or((line, b""));
                out.extend(self.field(name, value.strip_prefix(b" ").unwrap_or(value)));
            }
        }
    }

    fn field(&mut self, name: &[u8], value: &[u8]) -> Option<SseItem> {
        match name {
            b"data" => {
                // A line end never lies inside a UTF-8 sequence, so each line can be decoded by itself.
                let text = decode_text(value);
                match &mut self.data {
                    Some(data) => {
                        data.push('\n');
                        data.push_str(&text);
                    }
                    None => self.data = Some(text.into_owned()),
                }
            }
            b"event" => self.event = decode_text(value).into_owned(),
            b"id" if !value.contains(&0) => {
                self.id = Some(decode_text(value).into_owned());
                self.own_id = true;
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                return Some(SseItem::Retry(saturating_number(value)));
            }
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<SseItem> {
        self.event_bytes = 0;
        let event = mem::take(&mut self.event);
        let data = self.data.take();
        let own_id = mem::take(&mut self.own_id);
        if own_id {
            self.committed_id.clone_from(&self.id);
        }
        if own_id && data.as_ref().is_none_or(String::is_empty) {
            return self.id.clone().map(|id| SseItem::Primed { id });
        }
        let event = if event.is_empty() { "message".to_owned() } else { event };
        data.map(|data| SseItem::Event(SseReceived { id: self.id.clone(), has_own_id: own_id, event, data }))
    }
}

fn decode_text(bytes: &[u8]) -> Cow<'_, str> {
    // The strict check has a fast path for ASCII which the lossy one lacks.
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

fn saturating_number(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |sum: u64, digit| {
        sum.saturating_mul(10).saturating_add(u64::from(digit.saturating_sub(b'0')))
    })
}
