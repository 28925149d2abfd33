//! Tests of questions that are answered key by key, at a terminal that is a real one to this process.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::thread;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};

use super::super::*;

/// The other end of a terminal: what is typed is written here, what is shown is read.
struct Hands {
    end: File,
    /// The terminal itself, to look at its settings.
    terminal: OwnedFd,
    seen: String,
}

fn terminal() -> (Terminal, Hands) {
    let end = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&end).unwrap();
    unlockpt(&end).unwrap();
    let name = ptsname(&end, Vec::new()).unwrap();
    let path = OsStr::from_bytes(name.to_bytes());
    let terminal = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let hands =
        Hands { end: end.into(), terminal: terminal.try_clone().unwrap().into(), seen: String::new() };
    (Terminal::at(terminal, Paint::PLAIN).unwrap(), hands)
}

impl Hands {
    /// Reads what is shown until this is there.
    fn wait_for(&mut self, text: &str) {
        let mut bytes = [0; 256];
        while !self.seen.contains(text) {
            let count = self.end.read(&mut bytes).unwrap();
            self.seen.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        }
    }

    fn press(&mut self, keys: &str) {
        self.end.write_all(keys.as_bytes()).unwrap();
    }

    /// Whether the terminal is as it was before anything was asked.
    fn is_set_back(&self) -> bool {
        let usual = LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        tcgetattr(&self.terminal).unwrap().local_modes.contains(usual)
    }
}

#[test]
fn a_password_is_not_shown() {
    let (mut terminal, mut hands) = terminal();
    let asking = thread::spawn(move || terminal.hidden("Password"));
    hands.wait_for("Password: ");
    assert!(!hands.is_set_back());
    hands.press("secrex\x7ft\r");
    assert_eq!(asking.join().unwrap().unwrap(), "secret");
    hands.wait_for("\n");
    assert_eq!(hands.seen, "Password: \r\n");
    assert!(hands.is_set_back());
}

#[test]
fn ctrl_c_gives_up_on_the_question_and_sets_the_terminal_back() {
    let (mut terminal, mut hands) = terminal();
    let asking = thread::spawn(move || terminal.hidden("Password"));
    hands.wait_for("Password: ");
    hands.press("abc\x03");
    assert!(matches!(asking.join().unwrap(), Err(AskError::Ended)));
    assert!(hands.is_set_back());
}

#[test]
fn a_withdrawn_question_is_taken_off_the_terminal() {
    for by_keys in [false, true] {
        let (mut terminal, mut hands) = terminal();
        terminal.by_keys = by_keys;
        let (wanted, withdraw) = Wanted::until_dropped();
        let asking = thread::spawn(move || {
            let first = terminal.ask_while(wanted.clone(), |terminal| terminal.line("Name"));
            let second = terminal.ask_while(wanted, |terminal| terminal.line("Age"));
            (first, second)
        });
        hands.wait_for("Name: ");
        drop(withdraw);
        let (first, second) = asking.join().unwrap();
        assert!(matches!(first, Err(AskError::Withdrawn)), "{first:?}");
        assert!(matches!(second, Err(AskError::Withdrawn)), "{second:?}");
        hands.wait_for("no longer asks");
        assert!(!hands.seen.contains("Age"), "{}", hands.seen);
        assert!(hands.is_set_back());
    }
}

#[test]
fn a_question_that_is_wanted_is_answered() {
    let (mut terminal, mut hands) = terminal();
    let (wanted, _withdraw) = Wanted::until_dropped();
    let asking = thread::spawn(move || terminal.ask_while(wanted, |terminal| terminal.line("Name")));
    hands.wait_for("Name: ");
    hands.press("Ada\r");
    assert_eq!(asking.join().unwrap().unwrap(), "Ada");
}
