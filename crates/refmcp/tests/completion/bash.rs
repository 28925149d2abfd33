//! bash at a terminal, with the script that `refmcp completions bash` prints.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};

use super::serving::Server;
use super::{PATIENCE, User};

/// What prints the line that is being typed, between angle brackets.
const SHOW: &str = "\x14";

/// Takes the whole line away.
const CLEAR: &str = "\x15";

/// bash in a terminal; killed when this is dropped.
struct Bash {
    child: Child,
    keys: File,
    output: Receiver<Vec<u8>>,
    shown: String,
}

impl Bash {
    fn start(user: &User) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let slave = File::from(ioctl_tiocgptpeer(&master, flags).unwrap());
        let mut command = Command::new("setsid");
        command.args(["--ctty", "bash", "--norc", "--noprofile", "-i"]);
        let mut command = user.place(command);
        command.env("TERM", "dumb").env("PS1", "ready$ ").env_remove("INPUTRC").env_remove("PROMPT_COMMAND");
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
        let mut bash = Self { child, keys, output, shown: String::new() };
        bash.expect("ready$ ");
        bash.press("stty -echo; bind 'set bell-style none' 'set horizontal-scroll-mode off' 'set show-all-if-ambiguous on'\n");
        bash.press(
            "bind -x '\"\\C-t\": printf \"<%s>\\n\" \"$READLINE_LINE\"'; source <(refmcp completions bash)\n",
        );
        bash.press("echo loa''ded\n");
        bash.expect("loaded");
        bash
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this is shown; what was shown before it.
    fn expect(&mut self, text: &str) -> String {
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
    fn complete(&mut self, line: &str) -> String {
        self.press(&format!("{line}\t{SHOW}"));
        self.expect("<refmcp ");
        let line = self.expect(">\r\n");
        self.press(CLEAR);
        line.trim_end_matches(">\r\n").to_owned()
    }
}

impl Drop for Bash {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn words_are_completed_at_a_terminal() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = format!("http://{}/mcp", server.address);
    user.write("home/.mcp.json", &format!(r#"{{"mcpServers": {{"my server": {{"url": "{url}"}}}}}}"#));
    user.write("home/some file.json", "{}");
    let mut bash = Bash::start(&user);
    for (line, expected) in [
        ("refmcp inst".to_owned(), "install ".to_owned()),
        ("refmcp install claude-".to_owned(), "install claude-".to_owned()),
        ("refmcp call --tot".to_owned(), "call --total-timeout ".to_owned()),
        ("refmcp call --output=jsonl".to_owned(), "call --output=jsonl ".to_owned()),
        ("refmcp call my".to_owned(), "call my\\ server ".to_owned()),
        ("refmcp call 'my".to_owned(), "call 'my server'".to_owned()),
        ("refmcp call my\\ server su".to_owned(), "call my\\ server sum ".to_owned()),
        (format!("refmcp call {url} su"), format!("call {url} sum ")),
        (format!("refmcp call {url} echo "), format!("call {url} echo message=")),
        (format!("refmcp call {url} ask_user form=ch"), format!("call {url} ask_user form=choice ")),
        (format!("refmcp read {url} file:///not"), format!("read {url} file:///notes/todo.txt ")),
        (
            format!("refmcp prompt {url} code_review language=rus"),
            format!("prompt {url} code_review language=rust "),
        ),
        ("refmcp call --config some".to_owned(), "call --config some\\ file.json ".to_owned()),
    ] {
        assert_eq!(bash.complete(&line), expected, "{line}");
    }
    // Several are listed, and what is completed runs.
    bash.press(&format!("refmcp call {url} sum \t"));
    let listed = bash.expect("b=");
    assert!(listed.contains("a="), "{listed:?}");
    bash.press("a\t1 b\t2\n");
    bash.expect("{\"total\":3}");
}
