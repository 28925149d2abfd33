//! The thread that reads lines: edited on a terminal, as they come elsewhere. It reads one when it is asked for one.

use std::io::{self, BufRead, IsTerminal, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use anyhow::{Context as _, Result};
use parking_lot::Mutex;
use rustyline::completion::{Completer, Pair};
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::{History as _, MemHistory};
use rustyline::validate::Validator;
use rustyline::{Behavior, CompletionType, Config, Editor, Helper};

use super::history::History;
use super::notices::Above;
use crate::command::client::Person;

/// Bytes of one line of a script.
const MAX_LINE: usize = 1 << 20;

/// How many lines are shown before it is asked whether to go on.
const MAX_SUGGESTIONS: usize = 200;

/// What came of asking for a line.
pub(super) enum Typed {
    Line(String),
    /// Ctrl-c: the line is given up.
    Interrupted,
    /// Ctrl-d, or the end of the input.
    End,
    /// The line cannot be read; the next one may be.
    Unreadable(String),
    /// The input cannot be read.
    Fault(String),
}

/// How a line may go on: where the word begins that is replaced, and what could stand there.
pub(super) type Complete = Box<dyn Fn(&str, usize) -> (usize, Vec<Pair>) + Send>;

/// Where lines come from.
pub(super) struct Lines {
    prompts: mpsc::Sender<String>,
    typed: tokio::sync::mpsc::Receiver<Typed>,
}

impl Lines {
    /// Lines as they come from standard input.
    pub(super) fn plain() -> Result<Self> {
        Self::start(
            |prompts, typed| {
                while prompts.recv().is_ok() && typed.blocking_send(read_plain()).is_ok() {}
            },
        )
    }

    /// Lines that are edited on the terminal, and what prints above them.
    pub(super) fn edited(
        complete: Complete,
        history: Arc<Mutex<History>>,
        person: Person,
        typing: Arc<AtomicBool>,
    ) -> Result<(Self, Above)> {
        let mut editor = editor(complete, &history).context("cannot use the terminal")?;
        let above: Above = Box::new(editor.create_external_printer().context("cannot use the terminal")?);
        let lines = Self::start(move |prompts, typed| {
            while let Ok(prompt) = prompts.recv() {
                let read = person.undisturbed(|| {
                    typing.store(true, Ordering::SeqCst);
                    let read = editor.readline(&prompt);
                    typing.store(false, Ordering::SeqCst);
                    read
                });
                let read = understood(read);
                if let Typed::Line(line) = &read {
                    // It holds no lines that could not be added.
                    let _ = editor.add_history_entry(line);
                    history.lock().add(line);
                }
                if typed.blocking_send(read).is_err() {
                    break;
                }
            }
        })?;
        Ok((lines, above))
    }

    fn start(
        read: impl FnOnce(mpsc::Receiver<String>, tokio::sync::mpsc::Sender<Typed>) + Send + 'static,
    ) -> Result<Self> {
        let (prompts, asked) = mpsc::channel();
        let (answer, typed) = tokio::sync::mpsc::channel(1);
        std::thread::Builder::new()
            .name("lines".to_owned())
            .spawn(move || read(asked, answer))
            .context("cannot start a thread")?;
        Ok(Self { prompts, typed })
    }

    /// Asks for a line.
    pub(super) fn ask(&self, prompt: String) {
        // A thread that is gone is noticed when the line does not come.
        let _ = self.prompts.send(prompt);
    }

    /// The line that was asked for.
    pub(super) async fn typed(&mut self) -> Typed {
        self.typed.recv().await.unwrap_or(Typed::End)
    }
}

fn editor(complete: Complete, history: &Mutex<History>) -> rustyline::Result<Editor<Completing, MemHistory>> {
    // The terminal is used for typing also where results go elsewhere.
    let behavior = if io::stdout().is_terminal() { Behavior::Stdio } else { Behavior::PreferTerm };
    let config = Config::builder()
        .behavior(behavior)
        .completion_type(CompletionType::List)
        .completion_prompt_limit(MAX_SUGGESTIONS)
        .completion_show_all_if_ambiguous(true)
        .history_ignore_dups(true)?
        .history_ignore_space(true)
        .auto_add_history(false)
        .bracketed_paste(true)
        .build();
    let lines = MemHistory::with_config(&config);
    let mut editor = Editor::with_history(config, lines)?;
    editor.set_max_history_size(2000)?;
    editor.set_helper(Some(Completing { complete }));
    for line in history.lock().lines() {
        editor.history_mut().add(line)?;
    }
    Ok(editor)
}

fn understood(read: rustyline::Result<String>) -> Typed {
    match read {
        Ok(line) => Typed::Line(line),
        Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => Typed::Interrupted,
        Err(ReadlineError::Eof) => Typed::End,
        // What was typed at is gone, or never could be typed at.
        Err(error) => Typed::Fault(error.to_string()),
    }
}

fn read_plain() -> Typed {
    let mut bytes = Vec::new();
    let limit = MAX_LINE as u64 + 1;
    match io::stdin().lock().take(limit).read_until(b'\n', &mut bytes) {
        Ok(0) => return Typed::End,
        Ok(length) if length > MAX_LINE => {
            return Typed::Fault(format!("a line of more than {MAX_LINE} bytes"));
        }
        Ok(_) => {}
        Err(error) => return Typed::Fault(error.to_string()),
    }
    match String::from_utf8(bytes) {
        Ok(line) => Typed::Line(line.trim_end_matches(['\n', '\r']).to_owned()),
        Err(_) => Typed::Unreadable("the line is no text".to_owned()),
    }
}

struct Completing {
    complete: Complete,
}

impl Helper for Completing {}
impl Highlighter for Completing {}
impl Validator for Completing {}

impl Hinter for Completing {
    type Hint = String;
}

impl Completer for Completing {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _context: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        Ok((self.complete)(line, position))
    }
}

/// Restores the terminal's settings when this is dropped: the line editor may not get to do so.
pub(super) struct TerminalGuard {
    #[cfg(unix)]
    before: Option<rustix::termios::Termios>,
}

impl TerminalGuard {
    pub(super) fn now() -> Self {
        Self {
            #[cfg(unix)]
            before: rustix::termios::tcgetattr(std::io::stdin()).ok(),
        }
    }
}

#[cfg(unix)]
impl Drop for TerminalGuard {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};

        if let Some(before) = &self.before {
            // A terminal that is gone needs no care.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}
