//! A program that runs in a terminal of its own, and what it shows there. Every wait is for a text, and has a deadline.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::{PATIENCE, REFMCP, in_folder};

/// A program in a terminal; killed when this is dropped.
pub(crate) struct Screen {
    child: Child,
    keys: File,
    shown: Receiver<Vec<u8>>,
    cleaner: Cleaner,
    /// What was shown and not yet looked at.
    unread: String,
    /// All of it, for messages.
    all: String,
}

impl Screen {
    /// Starts `refmcp shell` with these arguments.
    pub(crate) fn shell(folder: &Path, args: &[&str]) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize { ws_row: 50, ws_col: 160, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let slave = File::from(ioctl_tiocgptpeer(&master, flags).unwrap());
        // It makes the terminal the program's own and becomes the program.
        let mut command = Command::new("setsid");
        command.args(["--ctty", REFMCP, "shell"]).args(args);
        let mut command = in_folder(command, folder);
        command.env("TERM", "xterm");
        command.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
        let child = command.spawn().unwrap();
        drop(command);
        let keys = File::from(master);
        let mut output = keys.try_clone().unwrap();
        let (send, shown) = channel();
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            // Reading fails when nobody has the terminal open any more.
            while let Ok(count @ 1..) = output.read(&mut chunk) {
                if send.send(chunk[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        let cleaner = Cleaner::default();
        Self { child, keys, shown, cleaner, unread: String::new(), all: String::new() }
    }

    /// A shell with one `refmcp stdio`, at its first prompt.
    pub(crate) fn with_server(folder: &Path, options: &[&str]) -> Self {
        let args: Vec<&str> = options.iter().chain(&["--", REFMCP, "stdio"]).copied().collect();
        let mut screen = Self::shell(folder, &args);
        screen.expect("refmcp> ");
        screen
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line and enters it.
    pub(crate) fn enter(&mut self, line: &str) {
        self.press(&format!("{line}\r"));
    }

    /// Waits until this is shown, after what was waited for before.
    pub(crate) fn expect(&mut self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.unread.find(text) {
                self.unread.drain(..at + text.len());
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.shown.recv_timeout(left) {
                Ok(bytes) => {
                    let clean = self.cleaner.clean(&bytes);
                    self.unread.push_str(&clean);
                    self.all.push_str(&clean);
                }
                Err(fault) => panic!("{text:?} is not shown ({fault}); all of it:\n{}", self.all),
            }
        }
    }

    /// The same, and gives what was shown before it.
    pub(crate) fn until(&mut self, text: &str) -> String {
        let seen = self.all.len() - self.unread.len();
        self.expect(text);
        let end = self.all.len() - self.unread.len() - text.len();
        self.all[seen..end].to_owned()
    }

    /// Does something until this is shown: what is asked for may not have taken effect at the first time.
    pub(crate) fn expect_while(&mut self, text: &str, again: impl Fn()) {
        let deadline = Instant::now() + PATIENCE;
        while !self.unread.contains(text) {
            assert!(Instant::now() < deadline, "{text:?} is not shown; all of it:\n{}", self.all);
            again();
            while let Ok(bytes) = self.shown.try_recv() {
                let clean = self.cleaner.clean(&bytes);
                self.unread.push_str(&clean);
                self.all.push_str(&clean);
            }
        }
        self.expect(text);
    }

    /// Waits until the program has ended.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        // The terminal is closed by the end of the last program that has it.
        while let Ok(bytes) = self.shown.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            self.all.push_str(&self.cleaner.clean(&bytes));
        }
        assert!(Instant::now() < deadline, "it does not end; all of it:\n{}", self.all);
        self.child.wait().unwrap()
    }

    /// Whether the terminal is as it was before: it shows what is typed, and takes lines.
    pub(crate) fn is_as_before(&self) -> bool {
        tcgetattr(&self.keys).unwrap().local_modes.contains(LocalModes::ECHO | LocalModes::ICANON)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Takes out what moves the cursor and colours.
#[derive(Default)]
struct Cleaner {
    unfinished: Vec<u8>,
}

impl Cleaner {
    fn clean(&mut self, bytes: &[u8]) -> String {
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
        // A character whose bytes come in two parts is of no interest to any test.
        String::from_utf8_lossy(&clean).into_owned()
    }
}

/// How long the escape sequence is that begins behind an escape; `None` when more is to come.
fn sequence_length(after: &[u8]) -> Option<usize> {
    match after.first()? {
        b'[' => {
            let end = after.iter().skip(1).position(|byte| (0x40..=0x7e).contains(byte))?;
            Some(end + 2)
        }
        _ => Some(1),
    }
}

/// The processes that a process has started and that still run.
pub(crate) fn children_of(parent: u32) -> Vec<u32> {
    let mut children = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // It may be gone by now.
        let Ok(status) = std::fs::read_to_string(format!("/proc/{id}/stat")) else { continue };
        let mut fields = status.rsplit(')').next().unwrap_or_default().split_whitespace();
        let state = fields.next().unwrap_or_default();
        if state != "Z" && fields.next() == Some(&parent.to_string()) {
            children.push(id);
        }
    }
    children
}

/// Whether a process runs.
pub(crate) fn is_running(id: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let state = status.rsplit(')').next().unwrap_or_default().split_whitespace().next();
    state.is_some_and(|state| state != "Z")
}
