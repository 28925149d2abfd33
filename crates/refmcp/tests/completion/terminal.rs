//! A shell at a terminal: keys are pressed, and what it shows is read.

use std::fs::{DirBuilder, File};
use std::io::{Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::{PATIENCE, User};

/// The prompt that every shell is given.
pub(super) const PROMPT: &str = "ready$ ";

/// Control-T. Each shell binds it to printing the line between angle brackets and emptying it. A key with a meaning to the
/// terminal itself, such as Control-U, would be lost while the shell is not reading keys.
const TAKE: &str = "\x14";

/// Wide enough that no line is wrapped or scrolled.
const SIZE: Winsize = Winsize { ws_row: 100, ws_col: 400, ws_xpixel: 0, ws_ypixel: 0 };

/// Variables that lead a shell to files of the developer, or change what it shows.
const VARIABLES: [&str; 12] = [
    "BASH_ENV",
    "CDPATH",
    "ENV",
    "FPATH",
    "HISTFILE",
    "INPUTRC",
    "LS_COLORS",
    "PROMPT_COMMAND",
    "XDG_CACHE_HOME",
    "XDG_DATA_DIRS",
    "XDG_DATA_HOME",
    "ZDOTDIR",
];

/// A shell in a terminal; killed when this is dropped.
pub(super) struct Terminal {
    child: Child,
    keys: File,
    output: Receiver<Vec<u8>>,
    shown: String,
}

impl Terminal {
    /// Starts an interactive shell in the user's home, at a terminal of this type, and waits for its prompt.
    pub(super) fn start(user: &User, shell: &str, options: &[&str], terminal: &str) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let slave = File::from(ioctl_tiocgptpeer(&master, flags).unwrap());
        tcsetwinsize(&slave, SIZE).unwrap();
        let mut command = Command::new("setsid");
        command.args(["--ctty", installed(shell)]).args(options);
        let mut command = user.place(command);
        for variable in VARIABLES {
            command.env_remove(variable);
        }
        // A folder that others may read is not used.
        DirBuilder::new().mode(0o700).create(user.path("runtime")).unwrap();
        command.env("XDG_RUNTIME_DIR", user.path("runtime")).env("TERM", terminal).env("PS1", PROMPT);
        command.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
        let child = command.spawn().unwrap();
        drop(command);
        let keys = File::from(master);
        let mut reader = keys.try_clone().unwrap();
        let (send, output) = channel();
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            // Reading fails when the terminal is closed on the other side.
            while let Ok(count @ 1..) = reader.read(&mut chunk) {
                if send.send(chunk[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        let mut terminal = Self { child, keys, output, shown: String::new() };
        terminal.expect(PROMPT);
        terminal
    }

    pub(super) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this is shown; what was shown before it.
    pub(super) fn expect(&mut self, text: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.shown.find(text) {
                let rest = self.shown.split_off(at + text.len());
                return std::mem::replace(&mut self.shown, rest);
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.shown += &String::from_utf8_lossy(&bytes),
                Err(fault) => panic!("{text:?} is not shown: {fault}; shown is {:?}", self.shown),
            }
        }
    }

    /// Types this and presses tab; the line that comes of it.
    pub(super) fn complete(&mut self, line: &str) -> String {
        self.press(&format!("{line}\t{TAKE}"));
        self.expect("<<");
        let completed = self.expect(">>");
        completed.strip_suffix(">>").unwrap().to_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The shell, which has to be there: no test is left out.
fn installed(shell: &str) -> &str {
    let path = std::env::var("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|folder| folder.join(shell).exists());
    assert!(is_there, "{shell} is needed for this test and is not installed: apt-get install {shell}");
    shell
}
