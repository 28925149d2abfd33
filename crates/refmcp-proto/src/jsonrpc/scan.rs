//! A strict scan over one JSON text: where its values begin and end, and everything that must not be in it.
//!
//! General parsers forgive what a referee has to see: they take the last of two equal keys, skip over values
//! without looking inside strings, and recurse as deep as the text says. This scan allocates nothing for ordinary
//! messages, refuses all of that with the byte it was found at, and leaves the values as text; what has passed it can be
//! parsed again without surprises.

use std::borrow::Cow;
use std::collections::BTreeSet;

/// What a scan refuses, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at}")]
pub struct ScanError {
    /// The byte offset in the text.
    pub at: usize,
    /// What is wrong there.
    pub what: ScanErrorKind,
}

/// What a scan refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScanErrorKind {
    /// The text ends in the middle of a value.
    #[error("the text ends too early")]
    Truncated,
    /// Another character was due.
    #[error("expected {0}")]
    Expected(&'static str),
    /// More text follows the value.
    #[error("more text follows the message")]
    Trailing,
    /// Half of a surrogate pair.
    #[error("a lone surrogate")]
    LoneSurrogate,
    /// A number with more digits than the limit.
    #[error("a number of too many digits")]
    LongNumber,
    /// Arrays and objects in each other beyond the limit.
    #[error("nesting deeper than {0}")]
    TooDeep(usize),
    /// A key that the same object already has.
    #[error("duplicate key \"{0}\"")]
    DuplicateKey(String),
}

/// A number longer than this is an attack, not a quantity.
const MAX_NUMBER: usize = 1024;

/// Objects with more members than this look their keys up in a tree instead of one by one.
const MANY_KEYS: usize = 24;

/// The outcome of moving over something. The error is boxed: results are passed up for every value, and nearly none is one.
pub(super) type Scan<T> = Result<T, Box<ScanError>>;

/// A position in a text that moves over values.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    max_depth: usize,
    /// The first plain keys of every object that is open right now, outermost first.
    keys: Keys<'a>,
}

/// A list of keys that needs no allocation while it is short, as it is for ordinary messages.
#[derive(Debug, Default)]
struct Keys<'a> {
    first: [&'a str; 16],
    rest: Vec<&'a str>,
    count: usize,
}

impl<'a> Keys<'a> {
    fn push(&mut self, key: &'a str) {
        match self.first.get_mut(self.count) {
            Some(free) => *free = key,
            None => self.rest.push(key),
        }
        self.count += 1;
    }

    /// Whether a key is among those from `start` on.
    fn contains(&self, start: usize, key: &str) -> bool {
        let inline = self.first.get(start..self.count.min(self.first.len())).unwrap_or_default();
        let rest = self.rest.get(start.saturating_sub(self.first.len())..).unwrap_or_default();
        inline.contains(&key) || rest.contains(&key)
    }

    fn truncate(&mut self, count: usize) {
        self.rest.truncate(count.saturating_sub(self.first.len()));
        self.count = count;
    }
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str, max_depth: usize) -> Self {
        Self { text, at: 0, depth: 0, max_depth, keys: Keys::default() }
    }

    /// The next byte that is not white space, without taking it.
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.byte()? {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    /// Checks that nothing but white space is left.
    pub(super) fn end(&mut self) -> Scan<()> {
        self.peek().map_or(Ok(()), |_| Err(self.fault(ScanErrorKind::Trailing)))
    }

    /// The text from here back to `start`.
    fn text_from(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Moves over one value and gives its text. If it is an object, `member` must move over the value of each key.
    pub(super) fn members(&mut self, member: impl FnMut(&mut Self, &str) -> Scan<()>) -> Scan<&'a str> {
        if self.peek() != Some(b'{') {
            return self.value();
        }
        let start = self.at;
        self.object(member)?;
        Ok(self.text_from(start))
    }

    /// Moves over one value and gives its text.
    pub(super) fn value(&mut self) -> Scan<&'a str> {
        let first = self.peek();
        let start = self.at;
        match first {
            Some(b'"') => self.skip_string()?,
            Some(b'{' | b'[') => self.nested()?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true")?,
            Some(b'f') => self.word("false")?,
            Some(b'n') => self.word("null")?,
            _ => return Err(self.unexpected("a JSON value")),
        }
        Ok(self.text_from(start))
    }

    /// Moves over an object or an array. Apart from [`value`](Self::value), which is short without it.
    #[inline(never)]
    fn nested(&mut self) -> Scan<()> {
        match self.byte() {
            Some(b'{') => self.object(|scanner, _| scanner.value().map(drop)),
            _ => self.array(|scanner| scanner.value().map(drop)),
        }
    }

    /// Moves over an object; `member` must move over the value of each key it is given.
    pub(super) fn object(&mut self, mut member: impl FnMut(&mut Self, &str) -> Scan<()>) -> Scan<()> {
        self.take(b'{', "'{'")?;
        self.enter()?;
        let first_key = self.keys.count;
        let (mut seen, mut more_keys) = (0, None::<BTreeSet<Cow<'a, str>>>);
        if self.peek() == Some(b'}') {
            self.at += 1;
        } else {
            loop {
                self.take(b'"', "a string")?;
                let start = self.at;
                let key = match self.plain_rest() {
                    Some(plain) => Cow::Borrowed(plain),
                    None => Cow::Owned(self.escaped_rest(start)?),
                };
                // Most keys have a bit of their own, and need no comparison.
                let bit = key_bit(&key);
                if seen & bit != 0
                    && (self.keys.contains(first_key, &key)
                        || more_keys.as_ref().is_some_and(|more| more.contains(&key)))
                {
                    return Err(fault(start - 1, ScanErrorKind::DuplicateKey(super::excerpt(&key))));
                }
                seen |= bit;
                match key {
                    Cow::Borrowed(plain) if self.keys.count - first_key < MANY_KEYS => self.keys.push(plain),
                    _ => drop(more_keys.get_or_insert_default().insert(key.clone())),
                }
                self.take(b':', "':'")?;
                member(self, &key)?;
                if !self.another(b'}', "',' or '}'")? {
                    break;
                }
            }
        }
        self.keys.truncate(first_key);
        self.depth -= 1;
        Ok(())
    }

    /// Moves over an array; `item` must move over each value.
    pub(super) fn array(&mut self, mut item: impl FnMut(&mut Self) -> Scan<()>) -> Scan<()> {
        self.take(b'[', "'['")?;
        self.enter()?;
        if self.peek() == Some(b']') {
            self.at += 1;
        } else {
            loop {
                item(self)?;
                if !self.another(b']', "',' or ']'")? {
                    break;
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Moves over a string.
    fn skip_string(&mut self) -> Scan<()> {
        self.at += 1;
        loop {
            self.at += plain_length(self.rest());
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => drop(self.escape()?),
                _ => return Err(self.unexpected("no control character in a string")),
            }
        }
    }

    /// Moves over the rest of a string that has no escapes, and gives it.
    fn plain_rest(&mut self) -> Option<&'a str> {
        let start = self.at;
        self.at += plain_length(self.rest());
        let text = self.text_from(start);
        (self.byte() == Some(b'"')).then(|| {
            self.at += 1;
            text
        })
    }

    /// The rest of a string that is not plain; its text began at `start`.
    #[cold]
    fn escaped_rest(&mut self, start: usize) -> Scan<String> {
        let mut value = self.text_from(start).to_owned();
        loop {
            match self.byte() {
                Some(b'"') => break,
                Some(b'\\') => value.push(self.escape()?),
                _ => return Err(self.unexpected("no control character in a string")),
            }
            let plain = self.at;
            self.at += plain_length(self.rest());
            value.push_str(self.text_from(plain));
        }
        self.at += 1;
        Ok(value)
    }

    fn escape(&mut self) -> Scan<char> {
        let start = self.at;
        self.at += 1;
        let kind = self.byte().ok_or_else(|| self.fault(ScanErrorKind::Truncated))?;
        self.at += 1;
        Ok(match kind {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let lone = || fault(start, ScanErrorKind::LoneSurrogate);
                let first = self.hex4()?;
                let code = match first {
                    0xD800..0xDC00 => {
                        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with("\\u")) {
                            return Err(lone());
                        }
                        self.at += 2;
                        let second = self.hex4()?;
                        if !(0xDC00..0xE000).contains(&second) {
                            return Err(lone());
                        }
                        0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
                    }
                    other => other,
                };
                char::from_u32(code).ok_or_else(lone)?
            }
            _ => return Err(fault(start, ScanErrorKind::Expected("a known escape"))),
        })
    }

    fn hex4(&mut self) -> Scan<u32> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let digits = digits.ok_or_else(|| self.fault(ScanErrorKind::Truncated))?;
        let mut code = 0;
        for &digit in digits {
            let value = char::from(digit).to_digit(16);
            code = code * 16 + value.ok_or_else(|| self.fault(ScanErrorKind::Expected("four hex digits")))?;
        }
        self.at += 4;
        Ok(code)
    }

    fn number(&mut self) -> Scan<()> {
        let start = self.at;
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        if self.byte() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.at += 1;
            }
            self.digits()?;
        }
        if self.at - start > MAX_NUMBER {
            return Err(fault(start, ScanErrorKind::LongNumber));
        }
        Ok(())
    }

    fn digits(&mut self) -> Scan<()> {
        let count = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        if count == 0 { Err(self.unexpected("a digit")) } else { Ok(()) }
    }

    fn word(&mut self, word: &'static str) -> Scan<()> {
        let rest = self.rest();
        if rest.starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(())
        } else if word.as_bytes().starts_with(rest) {
            Err(fault(self.text.len(), ScanErrorKind::Truncated))
        } else {
            Err(self.fault(ScanErrorKind::Expected(word)))
        }
    }

    /// After a member or an item: is there another one?
    fn another(&mut self, close: u8, expected: &'static str) -> Scan<bool> {
        let next = self.peek();
        if next != Some(b',') && next != Some(close) {
            return Err(self.unexpected(expected));
        }
        self.at += 1;
        Ok(next == Some(b','))
    }

    fn take(&mut self, wanted: u8, expected: &'static str) -> Scan<()> {
        if self.peek() != Some(wanted) {
            return Err(self.unexpected(expected));
        }
        self.at += 1;
        Ok(())
    }

    #[cold]
    fn unexpected(&self, expected: &'static str) -> Box<ScanError> {
        self.fault(match self.byte() {
            Some(_) => ScanErrorKind::Expected(expected),
            None => ScanErrorKind::Truncated,
        })
    }

    fn enter(&mut self) -> Scan<()> {
        self.depth += 1;
        if self.depth > self.max_depth {
            return Err(self.fault(ScanErrorKind::TooDeep(self.max_depth)));
        }
        Ok(())
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn fault(&self, what: ScanErrorKind) -> Box<ScanError> {
        fault(self.at, what)
    }
}

#[cold]
fn fault(at: usize, what: ScanErrorKind) -> Box<ScanError> {
    Box::new(ScanError { at, what })
}

/// A bit that equal keys have in common, and others mostly have not.
fn key_bit(key: &str) -> u64 {
    let first = key.as_bytes().first().copied().unwrap_or_default();
    1 << ((usize::from(first) + 8 * key.len()) % 64)
}

/// How many bytes from here on are plain characters of a string: no quote, backslash or control character. Eight at a time.
fn plain_length(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    let mut rest = bytes;
    while let Some((word, after)) = rest.split_first_chunk() {
        let word = u64::from_le_bytes(*word);
        // Sets the high bit of each byte below `limit`. A borrow makes only bytes after a match wrong.
        let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit);
        let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
        // It also sets that of bytes beyond ASCII, which have it themselves, after `^` too.
        let ends = (is(b'"') | is(b'\\') | below(word, 0x20)) & !word & HIGH;
        if ends != 0 {
            return bytes.len() - rest.len() + ends.trailing_zeros() as usize / 8;
        }
        rest = after;
    }
    bytes.len() - rest.len() + short_plain_length(rest)
}

/// The same for the last bytes of a text, where few strings end.
#[cold]
fn short_plain_length(bytes: &[u8]) -> usize {
    let end = bytes.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20);
    end.unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests;
