//! Somebody at a terminal: what they are asked, and what they paste.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::secrets::Watch;
use crate::server::Server;
use crate::user::User;

const PATIENCE: Duration = Duration::from_secs(20);

/// A command that runs in a terminal.
pub(crate) struct Running {
    child: Child,
    keyboard: File,
    printed: Receiver<Vec<u8>>,
    /// Since what was waited for last, and from the beginning.
    shown: String,
    all: String,
    _used: File,
}

impl Running {
    pub(crate) fn start(user: &User, words: &[&str]) -> Self {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let path = ptsname(&keyboard, Vec::new()).unwrap().into_string().unwrap();
        let keyboard = File::from(keyboard);
        let used = File::options().read(true).write(true).open(path).unwrap();
        let end = || Stdio::from(used.try_clone().unwrap());
        let typed = user.command(words);
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).arg(typed.get_program()).args(typed.get_args());
        for (name, value) in typed.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env("NO_COLOR", "1").stdin(end()).stdout(end()).stderr(end());
        let child = command.spawn().unwrap();
        let (print, printed) = channel();
        let mut screen = keyboard.try_clone().unwrap();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Reading fails once nobody uses the terminal any more.
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                if print.send(bytes[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, keyboard, printed, shown: String::new(), all: String::new(), _used: used }
    }

    /// Waits until this is shown, after all that was waited for before; gives what stands before it.
    pub(crate) fn shows(&mut self, text: &str) -> String {
        let begin = Instant::now();
        loop {
            if let Some((before, after)) = self.shown.split_once(text) {
                let (before, after) = (before.to_owned(), after.to_owned());
                self.shown = after;
                return before;
            }
            assert!(begin.elapsed() < PATIENCE, "{text:?} is not shown, but {}", self.shown);
            self.reads();
        }
    }

    /// Reads on for a moment; whether there was something to read.
    fn reads(&mut self) -> bool {
        let bytes = self.printed.recv_timeout(Duration::from_millis(50)).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        self.shown += &text;
        self.all += &text;
        !bytes.is_empty()
    }

    pub(crate) fn types(&mut self, line: &str) {
        writeln!(self.keyboard, "{line}").unwrap();
    }

    pub(crate) fn ends_with(mut self, code: i32) {
        assert_eq!(self.child.wait().unwrap().code(), Some(code), "{}", self.shown);
        while self.reads() {}
        Watch::of_this_test().sees_terminal(&self.all);
    }
}

#[test]
fn the_address_of_another_machines_browser_can_be_pasted() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = server.url();
    let mut login = Running::start(&user, &["auth", "login", &url, "--no-browser"]);
    login.shows("Log in at this page:");
    login.shows("  http://");
    let page = format!("http://{}", login.shows("\r\n").trim());
    login.shows("Address: ");
    for (typed, said) in
        [("nonsense", "That is no address"), ("http://h/callback?state=x", "not where this login")]
    {
        login.types(typed);
        login.shows(said);
        login.shows("Address: ");
    }
    let curl = ["-sS", "--noproxy", "*", "-o", "/dev/null", "-w", "%{redirect_url}", &page];
    let back = Command::new("curl").args(curl).output().unwrap();
    login.types(&String::from_utf8(back.stdout).unwrap());
    login.shows("renewal  by itself");
    login.ends_with(0);
    assert_eq!(user.visited(), "", "no browser was opened");
    assert_eq!(user.does(&["call", &url, "echo", "message=in"]), "in\n");
}

#[test]
fn whoever_does_not_want_to_log_in_does_not() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = server.url();
    for (answer, code) in [("n", 3), ("", 3), ("y", 0)] {
        let mut call = Running::start(&user, &["call", &url, "echo", "message=in"]);
        call.shows(&format!("{url} wants to know who you are."));
        call.shows("Log in at 127.0.0.1 for mcp:read, with a browser? [y/N]: ");
        assert_eq!(user.visited(), "", "nobody has agreed yet");
        call.types(answer);
        call.shows(if code == 0 { "in\r\n" } else { "the login was declined" });
        call.ends_with(code);
    }
}
