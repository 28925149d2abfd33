//! Writes Server-Sent Events and comments into a byte buffer.

use memchr::memchr2;

/// One event to write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The event id, by which a reader resumes.
    pub id: Option<&'a str>,
    /// The event name; a reader takes a missing or empty one for `message`.
    pub event: Option<&'a str>,
    /// How long a reader shall wait before it connects again, in milliseconds.
    pub retry: Option<u64>,
    /// The payload; each line end in it (LF, CR or CRLF) reaches the reader as LF.
    pub data: &'a str,
}

/// Why an event cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SseEncodeError {
    /// The id holds a CR or LF, which would end its field.
    #[error("the event id holds a line break")]
    LineBreakInId,
    /// The id holds a NUL, for which a reader would ignore it.
    #[error("the event id holds a NUL")]
    NulInId,
    /// The event name holds a CR or LF, which would end its field.
    #[error("the event name holds a line break")]
    LineBreakInEvent,
}

/// Appends one event; on an error nothing is appended.
///
/// # Errors
/// When the id or the event name holds what a field value cannot carry.
pub fn encode_event(out: &mut Vec<u8>, event: &SseEvent<'_>) -> Result<(), SseEncodeError> {
    let id = event.id.unwrap_or_default();
    if id.contains(['\r', '\n']) {
        return Err(SseEncodeError::LineBreakInId);
    }
    if id.contains('\0') {
        return Err(SseEncodeError::NulInId);
    }
    if event.event.is_some_and(|name| name.contains(['\r', '\n'])) {
        return Err(SseEncodeError::LineBreakInEvent);
    }
    out.reserve(event.data.len() + 64);
    if let Some(id) = event.id {
        push_line(out, b"id: ", id.as_bytes());
    }
    if let Some(name) = event.event {
        push_line(out, b"event: ", name.as_bytes());
    }
    if let Some(millis) = event.retry {
        push_line(out, b"retry: ", millis.to_string().as_bytes());
    }
    push_lines(out, b"data: ", event.data);
    out.push(b'\n');
    Ok(())
}

/// Appends a comment, which readers ignore: a keep-alive.
pub fn encode_comment(out: &mut Vec<u8>, text: &str) {
    push_lines(out, b": ", text);
    out.push(b'\n');
}

fn push_lines(out: &mut Vec<u8>, prefix: &[u8], text: &str) {
    let mut rest = text.as_bytes();
    while let Some((line, end)) = memchr2(b'\r', b'\n', rest).and_then(|at| rest.split_at_checked(at)) {
        push_line(out, prefix, line);
        rest = end.strip_prefix(b"\r\n").or_else(|| end.get(1..)).unwrap_or_default();
    }
    push_line(out, prefix, rest);
}

fn push_line(out: &mut Vec<u8>, prefix: &[u8], value: &[u8]) {
    out.extend_from_slice(prefix);
    out.extend_from_slice(value);
    out.push(b'\n');
}
