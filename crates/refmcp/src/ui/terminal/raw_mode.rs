//! Raw mode of a terminal: every key is handed over as it is pressed, and none is shown.

use std::io::{self, BufRead, Read};

use super::MAX_LINE;

/// The terminal whose mode is changed.
#[cfg(unix)]
pub(super) type TerminalFd = std::os::fd::OwnedFd;

/// Elsewhere, terminals are left as they are.
#[cfg(not(unix))]
pub(super) enum TerminalFd {}

#[cfg(not(unix))]
pub(super) enum RawMode {}

/// A terminal in raw mode, and its settings from before.
#[cfg(unix)]
pub(super) struct RawMode {
    terminal: TerminalFd,
    before: rustix::termios::Termios,
}

#[cfg(unix)]
impl RawMode {
    /// Sets the terminal to hand over keys. Keys that would end the process are handed over too, since a process that
    /// ends like that leaves the terminal as it is now.
    pub(super) fn begin(terminal: TerminalFd) -> io::Result<Self> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

        let before = tcgetattr(&terminal)?;
        let mut keys = before.clone();
        keys.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(&terminal, OptionalActions::Drain, &keys)?;
        Ok(Self { terminal, before })
    }
}

#[cfg(unix)]
impl Drop for RawMode {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};

        if let Err(error) = tcsetattr(&self.terminal, OptionalActions::Drain, &self.before) {
            tracing::warn!(%error, "the terminal cannot be set back");
        }
    }
}

/// Reads keys up to Enter, with Backspace and Ctrl-U; `None` after Ctrl-C, or at the end of the input.
pub(super) fn read_hidden(input: &mut dyn BufRead) -> io::Result<Option<String>> {
    let mut typed = Vec::new();
    let mut keys = input.bytes();
    while let Some(key) = keys.next().transpose()? {
        match key {
            b'\r' | b'\n' => {
                let text = String::from_utf8(typed);
                return text.map(Some).map_err(|_| io::Error::other("what was typed is no text"));
            }
            0x03 => return Ok(None),
            0x04 if typed.is_empty() => return Ok(None),
            // A character may have several bytes.
            0x08 | 0x7f => while typed.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {},
            0x15 => typed.clear(),
            0x1b => skip_sequence(&mut keys)?,
            0x00..0x20 => {}
            key if typed.len() < MAX_LINE => typed.push(key),
            _ => {}
        }
    }
    Ok(None)
}

/// Skips the rest of an escape sequence, such as that of an arrow key.
fn skip_sequence(keys: &mut dyn Iterator<Item = io::Result<u8>>) -> io::Result<()> {
    let mut first = true;
    while let Some(key) = keys.next().transpose()? {
        let introduces = first && matches!(key, b'[' | b'O');
        if !introduces && matches!(key, 0x40..=0x7e) {
            break;
        }
        first = false;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_up_to_enter() {
        for (keys, expected) in [
            (&b"abc\r"[..], Some("abc")),
            (b"abc\x7f\x7fx\n", Some("ax")),
            (b"abc\x15x\r", Some("x")),
            (b"abc\x1b[D\x1bOC\x1b[200~\x07x\r", Some("abcx")),
            ("äß漢\x7f字\r".as_bytes(), Some("äß字")),
            (b"\x7f\r", Some("")),
            (b"\x04", None),
            (b"abc\x03", None),
            (b"abc", None),
        ] {
            let read = read_hidden(&mut io::Cursor::new(keys.to_vec())).unwrap();
            assert_eq!(read.as_deref(), expected, "{keys:?}");
        }
        assert!(read_hidden(&mut io::Cursor::new(b"\xff\r".to_vec())).is_err());
    }
}
