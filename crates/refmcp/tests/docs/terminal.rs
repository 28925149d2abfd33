//! A terminal with answers from a document: where the output stops within a line of it, the
//! rest of that line is the answer.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::console::matches;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// How long a program may take, with all its questions.
const LIMIT: Duration = Duration::from_secs(30);
/// How often it is looked whether the program has ended.
const LOOK: Duration = Duration::from_millis(20);

/// How a question ends, and how a line begins that is typed.
const ASKS: [&str; 2] = [": ", "> "];

/// A terminal; its screen is never cleared.
pub(crate) struct Terminal {
    keyboard: File,
    printed: Receiver<Vec<u8>>,
    path: PathBuf,
    /// Keeps the terminal there while no program uses it.
    used: Option<File>,
}

impl Terminal {
    pub(crate) fn open() -> Self {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let path = PathBuf::from(ptsname(&keyboard, Vec::new()).unwrap().into_string().unwrap());
        let keyboard = File::from(keyboard);
        let used = File::options().read(true).write(true).open(&path).unwrap();
        let mut screen = keyboard.try_clone().unwrap();
        let (print, printed) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Reading fails when no program has the terminal open any more.
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                if print.send(bytes[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { keyboard, printed, path, used: Some(used) }
    }

    /// What programs call it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Answers what is asked, as the transcript says, until the program has ended; gives what the screen shows.
    pub(crate) fn answer(&mut self, transcript: &str, ended: impl Fn() -> bool) -> Result<String, String> {
        let begin = Instant::now();
        let (mut bytes, mut shown, mut answered) = (Vec::new(), String::new(), 0);
        while begin.elapsed() < LIMIT {
            if self.used.is_some() && ended() {
                // What it printed last is still to be read; then the terminal is gone.
                self.used = None;
            }
            match self.printed.recv_timeout(LOOK) {
                Ok(more) => bytes.extend(more),
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Ok(shown),
            }
            shown = plain(&String::from_utf8_lossy(&bytes));
            if let Some(answer) = next_answer(transcript, &shown).filter(|_| shown.len() > answered) {
                answered = shown.len() + answer.len();
                writeln!(self.keyboard, "{answer}").map_err(|error| error.to_string())?;
            }
        }
        Err(format!("it did not end in {LIMIT:?}; the terminal shows:\n{shown}"))
    }
}

/// What to type next, when a question was asked.
fn next_answer<'t>(transcript: &'t str, shown: &str) -> Option<&'t str> {
    let asks = ASKS.into_iter().find(|asks| shown.ends_with(asks))?;
    let mut questions = transcript.match_indices(asks).map(|(at, _)| transcript.split_at(at + asks.len()));
    let (_, rest) = questions.find(|(before, _)| matches(before, shown))?;
    rest.lines().next().filter(|answer| !answer.is_empty())
}

/// What is left of a text on the screen: a line that is cleared is written anew, from left to right.
fn plain(text: &str) -> String {
    let mut pieces = text.split("\x1b[");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let sequence = piece.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
        if sequence.starts_with('K') {
            plain.truncate(plain.rfind('\n').map_or(0, |end| end + 1));
        }
        plain += sequence.get(1..).unwrap_or_default();
    }
    plain.replace('\r', "")
}

#[test]
fn only_text_is_left_of_what_a_terminal_shows() {
    let text = "\x1b[?2004h\r\x1b[Kname> \r\x1b[6Cs\r\x1b[Kname> sum\r\n\x1b[1mthree\x1b[0m\x1b[?20";
    assert_eq!(plain(text), "name> sum\nthree");
}

#[test]
fn answers_stand_behind_questions() {
    let transcript = "Sure?\nSay: yes\nthanks: no\n";
    for (shown, answer) in [
        ("Sure?\n", None),
        ("Sure?\nSay", None),
        ("Sure?\nSay: ", Some("yes")),
        ("Sure?\nSay: yes\nthanks: ", Some("no")),
        ("Other?\nSay: ", None),
    ] {
        assert_eq!(next_answer(transcript, shown), answer, "{shown}");
    }
    assert_eq!(next_answer("at …\nSay: yes\n", "at home\nSay: "), Some("yes"));
}
