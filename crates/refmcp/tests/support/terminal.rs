//! A program at a pseudo-terminal: keys are pressed, and what it shows is read as text. Every wait has a deadline.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::TEST_TIMEOUT;

/// A program at a terminal; killed when this is dropped.
pub(crate) struct Terminal {
    child: Child,
    keys: File,
    output: Receiver<Vec<u8>>,
    /// An escape sequence of which more is to come.
    unfinished: Vec<u8>,
    /// What was shown and not yet expected.
    unread: String,
    /// All that was shown.
    pub(crate) all: String,
}

impl Terminal {
    /// Starts a command at a terminal of its own, with so many columns.
    pub(crate) fn start(command: &Command, columns: u16) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        tcsetwinsize(&master, Winsize { ws_row: 100, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let slave = File::from(ioctl_tiocgptpeer(&master, flags).unwrap());
        // `setsid` makes the terminal the program's own and becomes the program.
        let mut session = Command::new("setsid");
        session.arg("--ctty").arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => session.env(name, value),
                None => session.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            session.current_dir(folder);
        }
        session.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
        let child = session.spawn().unwrap();
        // Its copies of the slave would keep the terminal open.
        drop(session);
        let keys = File::from(master);
        let mut reader = keys.try_clone().unwrap();
        let (send, output) = channel();
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            // Reading fails when no program has the terminal open any more.
            while let Ok(count @ 1..) = reader.read(&mut chunk) {
                if send.send(chunk[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, keys, output, unfinished: Vec::new(), unread: String::new(), all: String::new() }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line and enters it.
    pub(crate) fn enter(&mut self, line: &str) {
        self.press(&format!("{line}\r"));
    }

    /// Waits until this is shown, after what was expected before; gives what was shown before it.
    pub(crate) fn expect(&mut self, text: &str) -> String {
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            if let Some(at) = self.unread.find(text) {
                let rest = self.unread.split_off(at + text.len());
                let mut before = std::mem::replace(&mut self.unread, rest);
                before.truncate(at);
                return before;
            }
            match self.output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.show(&bytes),
                Err(error) => panic!("{text:?} is not shown ({error}); all of it:\n{}", self.all),
            }
        }
    }

    /// Repeats something until this is shown: it may have no effect at the first time.
    pub(crate) fn expect_while(&mut self, text: &str, again: impl Fn()) {
        let deadline = Instant::now() + TEST_TIMEOUT;
        while !self.unread.contains(text) {
            assert!(Instant::now() < deadline, "{text:?} is not shown; all of it:\n{}", self.all);
            again();
            while let Ok(bytes) = self.output.try_recv() {
                self.show(&bytes);
            }
        }
        self.expect(text);
    }

    /// Waits until the program has ended.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + TEST_TIMEOUT;
        // The terminal is closed by the end of the last program that has it.
        while let Ok(bytes) = self.output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            self.show(&bytes);
        }
        assert!(Instant::now() < deadline, "it does not end; all of it:\n{}", self.all);
        self.child.wait().unwrap()
    }

    /// Whether the terminal is in its usual mode: it shows what is typed, and takes lines.
    pub(crate) fn is_cooked(&self) -> bool {
        tcgetattr(&self.keys).unwrap().local_modes.contains(LocalModes::ECHO | LocalModes::ICANON)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Adds bytes without escape sequences, carriage returns and bells.
    fn show(&mut self, bytes: &[u8]) {
        self.unfinished.extend_from_slice(bytes);
        let mut clean = Vec::new();
        let mut rest = self.unfinished.as_slice();
        while let Some((&byte, after)) = rest.split_first() {
            match byte {
                0x1b => match sequence_length(after) {
                    Some(length) => rest = &after[length..],
                    None => break,
                },
                b'\r' | 0x07 => rest = after,
                _ => {
                    clean.push(byte);
                    rest = after;
                }
            }
        }
        self.unfinished = rest.to_vec();
        // No test looks at a character whose bytes come in two parts.
        let text = String::from_utf8_lossy(&clean);
        self.unread.push_str(&text);
        self.all.push_str(&text);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The length of the escape sequence behind an escape; `None` when more is to come.
fn sequence_length(after: &[u8]) -> Option<usize> {
    match after.first()? {
        b'[' => Some(after.iter().skip(1).position(|byte| (0x40..=0x7e).contains(byte))? + 2),
        _ => Some(1),
    }
}
