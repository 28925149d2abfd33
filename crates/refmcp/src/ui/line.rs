//! A line that is edited key by key, as bytes of a terminal say.

use std::io::{self, BufRead, Read};

use unicode_width::UnicodeWidthChar;

/// Bytes of one line; keys beyond them do nothing.
pub(super) const LONGEST_LINE: usize = 1 << 20;

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Character(char),
    Enter,
    Backspace,
    Delete,
    Left,
    Right,
    Home,
    End,
    /// Forgets everything before the cursor.
    KillBefore,
    /// Forgets everything after the cursor.
    KillAfter,
    /// Ctrl-c, or the end of the input.
    Stop,
    Other,
}

/// What is being edited.
#[derive(Debug)]
pub(super) struct Line {
    characters: Vec<char>,
    cursor: usize,
}

impl Line {
    /// A line with something on it; the cursor stands at its end.
    pub(super) fn new(text: &str) -> Self {
        let characters: Vec<char> = text.chars().collect();
        Self { cursor: characters.len(), characters }
    }

    /// Takes keys until the line is done; `None` when it is given up. After each key, `draw` shows the line.
    pub(super) fn edit(
        mut self,
        input: &mut dyn BufRead,
        draw: &mut dyn FnMut(&Self) -> io::Result<()>,
    ) -> io::Result<Option<String>> {
        loop {
            draw(&self)?;
            match read_key(input, self.characters.is_empty())? {
                Key::Enter => return Ok(Some(self.characters.into_iter().collect())),
                Key::Stop => return Ok(None),
                key => self.apply(key),
            }
        }
    }

    /// The part of the line around the cursor that fits into so many columns, and the column of the cursor in it.
    pub(super) fn window(&self, columns: usize) -> (String, usize) {
        let widths = |range: &[char]| range.iter().map(|c| c.width().unwrap_or(0)).sum::<usize>();
        let mut start = 0;
        while self.characters.get(start..self.cursor).is_some_and(|before| widths(before) >= columns.max(1)) {
            start += 1;
        }
        let mut shown = String::new();
        let mut used = 0;
        for c in self.characters.iter().skip(start) {
            used += c.width().unwrap_or(0);
            if used > columns {
                break;
            }
            shown.push(*c);
        }
        (shown, self.characters.get(start..self.cursor).map_or(0, widths))
    }

    fn apply(&mut self, key: Key) {
        match key {
            Key::Character(c) if self.characters.len() < LONGEST_LINE => {
                self.characters.insert(self.cursor, c);
                self.cursor += 1;
            }
            Key::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                self.characters.remove(self.cursor);
            }
            Key::Delete if self.cursor < self.characters.len() => {
                self.characters.remove(self.cursor);
            }
            Key::Left => self.cursor = self.cursor.saturating_sub(1),
            Key::Right => self.cursor = (self.cursor + 1).min(self.characters.len()),
            Key::Home => self.cursor = 0,
            Key::End => self.cursor = self.characters.len(),
            Key::KillBefore => {
                self.characters.drain(..self.cursor);
                self.cursor = 0;
            }
            Key::KillAfter => self.characters.truncate(self.cursor),
            _ => {}
        }
    }
}

fn read_key(input: &mut dyn BufRead, line_is_empty: bool) -> io::Result<Key> {
    let Some(byte) = read_byte(input)? else { return Ok(Key::Stop) };
    Ok(match byte {
        b'\r' | b'\n' => Key::Enter,
        0x03 => Key::Stop,
        0x04 if line_is_empty => Key::Stop,
        0x04 => Key::Delete,
        0x08 | 0x7f => Key::Backspace,
        0x01 => Key::Home,
        0x05 => Key::End,
        0x02 => Key::Left,
        0x06 => Key::Right,
        0x15 => Key::KillBefore,
        0x0b => Key::KillAfter,
        0x1b => read_sequence(input)?,
        byte if byte < 0x20 => Key::Other,
        byte => read_character(byte, input)?.map_or(Key::Other, Key::Character),
    })
}

/// The rest of an escape sequence; an escape pressed by itself swallows the key after it.
fn read_sequence(input: &mut dyn BufRead) -> io::Result<Key> {
    let mut sequence = Vec::new();
    loop {
        let Some(byte) = read_byte(input)? else { return Ok(Key::Stop) };
        sequence.push(byte);
        let introduces = sequence.len() == 1 && matches!(byte, b'[' | b'O');
        if !introduces && (matches!(byte, 0x40..=0x7e) || sequence.len() == 8) {
            break;
        }
    }
    Ok(match sequence.as_slice() {
        b"[D" | b"OD" => Key::Left,
        b"[C" | b"OC" => Key::Right,
        b"[H" | b"OH" | b"[1~" | b"[7~" => Key::Home,
        b"[F" | b"OF" | b"[4~" | b"[8~" => Key::End,
        b"[3~" => Key::Delete,
        _ => Key::Other,
    })
}

/// A character of which the first byte is there; `None` when it is none.
fn read_character(first: u8, input: &mut dyn BufRead) -> io::Result<Option<char>> {
    let length = match first {
        0x00..=0x7f => 1,
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => return Ok(None),
    };
    let mut bytes = vec![first];
    while bytes.len() < length {
        match read_byte(input)? {
            Some(byte) => bytes.push(byte),
            None => return Ok(None),
        }
    }
    Ok(std::str::from_utf8(&bytes).ok().and_then(|text| text.chars().next()).filter(|c| !c.is_control()))
}

fn read_byte(input: &mut dyn BufRead) -> io::Result<Option<u8>> {
    input.bytes().next().transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(initial: &str, keys: &[u8]) -> Option<String> {
        Line::new(initial).edit(&mut io::Cursor::new(keys.to_vec()), &mut |_| Ok(())).unwrap()
    }

    #[test]
    fn keys_change_the_line() {
        for (initial, keys, expected) in [
            ("", &b"abc\r"[..], Some("abc")),
            ("abc", b"\r", Some("abc")),
            ("abc", b"\x7f\x7fx\n", Some("ax")),
            ("abc", b"\x1b[D\x1b[Dx\r", Some("axbc")),
            ("abc", b"\x01x\x05y\r", Some("xabcy")),
            ("abc", b"\x1b[H\x1b[3~\r", Some("bc")),
            ("abc", b"\x02\x15\r", Some("c")),
            ("abc", b"\x01\x06\x0b\r", Some("a")),
            ("abc", b"\x1b[200~\x07x\r", Some("abcx")),
            ("", "äß漢\r".as_bytes(), Some("äß漢")),
            ("", b"\x04", None),
            ("abc", b"\x03", None),
            ("abc", b"x", None),
            ("", b"\x7f\x1b[D\x1b[C\xff\r", Some("")),
        ] {
            assert_eq!(edited(initial, keys).as_deref(), expected, "{initial} {keys:?}");
        }
    }

    #[test]
    fn the_cursor_stays_in_the_window() {
        let mut line = Line::new("0123456789");
        assert_eq!(line.window(20), ("0123456789".to_owned(), 10));
        assert_eq!(line.window(5), ("6789".to_owned(), 4));
        line.apply(Key::Home);
        assert_eq!(line.window(5), ("01234".to_owned(), 0));
        assert_eq!(Line::new("漢字漢字").window(5), ("漢字".to_owned(), 4));
        assert_eq!(Line::new("ab").window(0).1, 0);
    }
}
