//! Newline-delimited messages: a decoder that lends out lines of its read buffer, and the encoder.

use memchr::memchr;

#[cfg(test)]
mod tests;

const DEFAULT_CHUNK: usize = 64 * 1024;

/// One line taken out of a [`LineDecoder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// The bytes of a line without `\n` and without one trailing `\r`.
    Text(&'a [u8]),
    /// A line passed the limit, which is told at once: its end may never come. All of it is dropped.
    TooLong,
}

enum Span {
    Text { from: usize, to: usize },
    TooLong,
}

/// Cuts a stream of bytes into lines, skipping blank ones.
///
/// Read into [`spare`](Self::spare), report the count to [`filled`](Self::filled) (or copy with
/// [`feed`](Self::feed)), then call [`next_line`](Self::next_line) until it gives `None`; at the end of the
/// stream call [`finish`](Self::finish) until it gives `None`. A reader that drains like this holds at most
/// `max_message_size` and one chunk in memory.
#[derive(Debug)]
pub struct LineDecoder {
    // Initialised to its whole length; the live bytes are start..end, of which start..scanned hold no `\n`.
    buf: Vec<u8>,
    start: usize,
    scanned: usize,
    end: usize,
    // Whether the line that has begun was too long.
    dropping: bool,
    max_message_size: usize,
    chunk: usize,
}

impl LineDecoder {
    /// A decoder that refuses lines of more than `max_message_size` bytes and reads 64 KiB at a time.
    #[must_use]
    pub fn new(max_message_size: usize) -> Self {
        Self::with_chunk(max_message_size, DEFAULT_CHUNK)
    }

    /// Like [`new`](Self::new), with the size of the buffer kept between lines.
    #[must_use]
    pub fn with_chunk(max_message_size: usize, chunk: usize) -> Self {
        let chunk = chunk.max(1);
        Self { buf: Vec::new(), start: 0, scanned: 0, end: 0, dropping: false, max_message_size, chunk }
    }

    /// Room to read into, never empty.
    pub fn spare(&mut self) -> &mut [u8] {
        self.make_room((self.chunk / 4).max(1));
        self.buf.get_mut(self.end..).unwrap_or_default()
    }

    /// Says that the first `count` bytes of [`spare`](Self::spare) now hold input.
    pub fn filled(&mut self, count: usize) {
        debug_assert!(count <= self.buf.len() - self.end, "filled more than the spare room");
        self.end = self.end.saturating_add(count).min(self.buf.len());
    }

    /// Copies `bytes` in, for a caller that has them in a buffer of its own.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.make_room(bytes.len());
        if let Some(room) = self.buf.get_mut(self.end..self.end + bytes.len()) {
            room.copy_from_slice(bytes);
            self.end += bytes.len();
        }
    }

    /// The next complete line, or `None` when more input is needed.
    #[inline]
    pub fn next_line(&mut self) -> Option<Line<'_>> {
        let span = self.next_span()?;
        Some(self.lend(&span))
    }

    /// At the end of input: the next complete line, then the unterminated last one, then `None`.
    pub fn finish(&mut self) -> Option<Line<'_>> {
        let span = self.next_span().or_else(|| self.last_span())?;
        Some(self.lend(&span))
    }

    /// The beginning of a line whose end has not been read.
    #[must_use]
    pub fn partial(&self) -> &[u8] {
        self.buf.get(self.start..self.end).unwrap_or_default()
    }

    /// Bytes of memory the buffer holds now.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.buf.capacity()
    }

    #[inline]
    fn lend(&self, span: &Span) -> Line<'_> {
        match *span {
            Span::Text { from, to } => Line::Text(self.buf.get(from..to).unwrap_or_default()),
            Span::TooLong => Line::TooLong,
        }
    }

    #[inline]
    fn next_span(&mut self) -> Option<Span> {
        loop {
            let fresh = self.buf.get(self.scanned..self.end).unwrap_or_default();
            let Some(at) = memchr(b'\n', fresh) else {
                self.scanned = self.end;
                return self.drop_if_too_long();
            };
            let newline = self.scanned + at;
            let span = self.close_line(newline);
            self.start = newline + 1;
            self.scanned = self.start;
            if span.is_some() {
                return span;
            }
        }
    }

    fn last_span(&mut self) -> Option<Span> {
        let span = self.close_line(self.end);
        self.start = self.end;
        self.scanned = self.end;
        span
    }

    /// What the line from `start` up to `to` comes to; `None` for a blank one, and for the rest of one that was too long.
    #[inline]
    fn close_line(&mut self, to: usize) -> Option<Span> {
        if std::mem::take(&mut self.dropping) {
            return None;
        }
        let raw = self.buf.get(self.start..to).unwrap_or_default();
        let text = raw.strip_suffix(b"\r").unwrap_or(raw);
        if text.len() > self.max_message_size {
            Some(Span::TooLong)
        } else if text.trim_ascii_start().is_empty() {
            None
        } else {
            Some(Span::Text { from: self.start, to: self.start + text.len() })
        }
    }

    fn drop_if_too_long(&mut self) -> Option<Span> {
        // One byte of grace: it may be the `\r` of the line end, which does not count.
        let held = self.end - self.start;
        let is_new = !self.dropping && held > self.max_message_size.saturating_add(1);
        self.dropping |= is_new;
        if self.dropping {
            self.start = self.end;
        }
        is_new.then_some(Span::TooLong)
    }

    fn make_room(&mut self, wanted: usize) {
        let held = self.end - self.start;
        // With no complete line left, what is held is one partial line, which moves to the front once and
        // stays there. Otherwise a move must be paid for by as many bytes taken out. Either way each byte
        // is moved a constant number of times.
        let only_a_partial_line = self.scanned == self.end;
        if self.start > 0 && (only_a_partial_line || self.start >= held) {
            self.buf.copy_within(self.start..self.end, 0);
            self.scanned -= self.start;
            self.end = held;
            self.start = 0;
        }
        let needed = self.end.saturating_add(wanted);
        if needed > self.buf.len() {
            // Doubling keeps growth cheap; the ceiling keeps doubling from passing the promised bound.
            let ceiling = self.max_message_size.saturating_add(self.chunk);
            let doubled = self.buf.len().saturating_mul(2).max(self.chunk).min(ceiling);
            let target = doubled.max(needed);
            self.buf.reserve_exact(target - self.buf.len());
            self.buf.resize(target, 0);
        } else if self.buf.len() > self.chunk.saturating_mul(4) && needed <= self.chunk {
            self.buf.truncate(self.chunk);
            self.buf.shrink_to(self.chunk);
        }
    }
}

/// Appends one message and its line end.
pub fn encode_line(out: &mut Vec<u8>, json: &[u8]) {
    debug_assert!(memchr(b'\n', json).is_none(), "a raw newline would split the message");
    out.reserve(json.len() + 1);
    out.extend_from_slice(json);
    out.push(b'\n');
}
