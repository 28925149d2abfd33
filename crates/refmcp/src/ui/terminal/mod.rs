//! The terminal of the user: questions and answers. All that is shown goes through [`super::text`] first, since most of it
//! comes from servers.

mod raw_mode;
#[cfg(test)]
pub(crate) mod scripted;

use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(unix)]
use std::time::Duration;

use rustyline::error::ReadlineError;
use rustyline::{Behavior, Config, DefaultEditor};
use serde_json::Value;

use self::raw_mode::{RawMode, TerminalFd, read_hidden};
use super::style::Paint;
use super::text::{multi_line, one_line, truncate};
use crate::logging;

/// Bytes of the longest line that is read.
pub(super) const MAX_LINE: usize = 1 << 20;

/// Columns of an option that is listed.
const COLUMNS: usize = 80;

/// A terminal at which questions are asked.
pub(crate) struct Terminal {
    input: BufReader<Box<dyn Read + Send>>,
    output: Box<dyn Write + Send>,
    /// The terminal itself, where single keys can be read; without it, only whole lines.
    fd: Option<TerminalFd>,
    /// Whether whole lines are read key by key as well.
    by_keys: bool,
    paint: Paint,
    /// Whether the question is still wanted that is asked now.
    wanted: Wanted,
}

/// Whether a question is still wanted; those that nothing withdraws always are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted(Option<Arc<AtomicBool>>);

/// Withdraws a question when it is dropped: it is taken off the terminal, unless its answer is being typed.
#[derive(Debug)]
pub(crate) struct WithdrawOnDrop(Arc<AtomicBool>);

impl Wanted {
    /// A question that is wanted as long as what comes with it is kept.
    pub(crate) fn until_dropped() -> (Self, WithdrawOnDrop) {
        let withdrawn = Arc::<AtomicBool>::default();
        (Self(Some(withdrawn.clone())), WithdrawOnDrop(withdrawn))
    }

    fn is_withdrawn(&self) -> bool {
        self.0.as_ref().is_some_and(|withdrawn| withdrawn.load(Ordering::Relaxed))
    }
}

impl Drop for WithdrawOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// How often it is looked whether a question is still wanted.
#[cfg(unix)]
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    /// The input has ended, or the question was given up.
    #[error("the question was not answered")]
    Ended,
    /// What asked no longer does.
    #[error("the question was withdrawn")]
    Withdrawn,
    /// The terminal cannot be read or written.
    #[error("cannot use the terminal: {0}")]
    Terminal(#[from] io::Error),
}

impl Terminal {
    /// The terminal this process belongs to, also when its input comes from elsewhere. `None` when stderr, where questions
    /// are shown, is no terminal.
    pub(crate) fn open(no_color: bool) -> Option<Self> {
        let stderr = io::stderr();
        if !stderr.is_terminal() {
            return None;
        }
        let paint = Paint::for_stream(&stderr, no_color);
        Self::own(paint).or_else(|| {
            io::stdin().is_terminal().then(|| Self { fd: None, ..Self::new(io::stdin(), stderr, paint) })
        })
    }

    /// Reads lines from here and writes questions there.
    pub(crate) fn new(
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
        paint: Paint,
    ) -> Self {
        let (input, output) = (BufReader::new(Box::new(input) as Box<dyn Read + Send>), Box::new(output));
        Self { input, output, fd: None, by_keys: false, paint, wanted: Wanted::default() }
    }

    /// Asks while that is wanted.
    pub(crate) fn ask_while<T>(
        &mut self,
        wanted: Wanted,
        question: impl FnOnce(&mut Self) -> Result<T, AskError>,
    ) -> Result<T, AskError> {
        if wanted.is_withdrawn() {
            return Err(AskError::Withdrawn);
        }
        self.wanted = wanted;
        let answer = question(self);
        self.wanted = Wanted::default();
        answer
    }

    /// Waits until something is typed, as long as it is wanted. Where the terminal cannot be watched, reading it waits.
    fn until_typed(&mut self) -> Result<(), AskError> {
        if self.wanted.0.is_none() {
            return Ok(());
        }
        loop {
            if self.wanted.is_withdrawn() {
                self.write_line("")?;
                self.say_faint("(The server no longer asks.)")?;
                return Err(AskError::Withdrawn);
            }
            if !self.input.buffer().is_empty() || self.is_typed()? {
                return Ok(());
            }
        }
    }

    /// Whether something is typed within a moment, or that cannot be told.
    #[cfg(unix)]
    fn is_typed(&self) -> io::Result<bool> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};

        let Some(fd) = &self.fd else { return Ok(true) };
        let mut fds = [PollFd::new(fd, PollFlags::IN)];
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK_EVERY.subsec_nanos()) };
        match poll(&mut fds, Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(unix))]
    fn is_typed(&self) -> io::Result<bool> {
        Ok(true)
    }

    /// Reads lines key by key where that can be done, so that ctrl-c gives up a question and not the process.
    pub(crate) fn by_keys(self) -> Self {
        Self { by_keys: true, ..self }
    }

    #[cfg(unix)]
    fn own(paint: Paint) -> Option<Self> {
        let terminal = std::fs::OpenOptions::new().read(true).write(true).open("/dev/tty");
        // A process without a terminal of its own is asked over its input instead.
        terminal.and_then(|terminal| Self::at(terminal, paint)).ok()
    }

    /// A terminal that is open for reading and writing.
    #[cfg(unix)]
    fn at(terminal: std::fs::File, paint: Paint) -> io::Result<Self> {
        let input = terminal.try_clone()?;
        let fd = Some(terminal.try_clone()?.into());
        Ok(Self { fd, ..Self::new(input, terminal, paint) })
    }

    #[cfg(not(unix))]
    fn own(_paint: Paint) -> Option<Self> {
        None
    }

    /// Raw mode, for as long as what is returned lives; nothing where there is no terminal.
    #[cfg(unix)]
    fn raw_mode(&self) -> io::Result<Option<RawMode>> {
        self.fd.as_ref().map(|fd| RawMode::begin(fd.try_clone()?)).transpose()
    }

    #[cfg(not(unix))]
    fn raw_mode(&self) -> io::Result<Option<RawMode>> {
        Ok(None)
    }

    /// Writes a text and a line break.
    pub(crate) fn say(&mut self, text: &str) -> Result<(), AskError> {
        let text = multi_line(text).into_owned();
        self.write_line(&text)
    }

    /// Writes a heading.
    pub(crate) fn say_strong(&mut self, text: &str) -> Result<(), AskError> {
        let text = self.paint.strong(&multi_line(text));
        self.write_line(&text)
    }

    /// Writes what matters less.
    pub(crate) fn say_faint(&mut self, text: &str) -> Result<(), AskError> {
        let text = self.paint.faint(&multi_line(text));
        self.write_line(&text)
    }

    /// Writes what to be careful about.
    pub(crate) fn warn(&mut self, text: &str) -> Result<(), AskError> {
        let text = self.paint.careful(&multi_line(text));
        self.write_line(&text)
    }

    /// Asks for a line of text, as it is typed but for the space around it.
    pub(crate) fn line(&mut self, label: &str) -> Result<String, AskError> {
        if self.by_keys && self.edits_lines() {
            return Ok(self.edit_line(label, "")?.trim().to_owned());
        }
        let _held = self.show_label(label)?;
        self.until_typed()?;
        let mut bytes = Vec::new();
        let limit = MAX_LINE as u64 + 1;
        (&mut self.input).take(limit).read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            // So that what comes next does not stand behind the question.
            self.write_line("")?;
            return Err(AskError::Ended);
        }
        if bytes.len() > MAX_LINE {
            return Err(io::Error::other(format!("a line of more than {MAX_LINE} bytes")).into());
        }
        let text = String::from_utf8(bytes).map_err(|_| io::Error::other("what was typed is no text"))?;
        Ok(text.trim().to_owned())
    }

    /// Asks for a text; an empty line takes the default.
    pub(crate) fn text(&mut self, label: &str, default: Option<&str>) -> Result<String, AskError> {
        let label = default.map_or_else(|| label.to_owned(), |default| format!("{label} [{default}]"));
        let text = self.line(&label)?;
        Ok(if text.is_empty() { default.unwrap_or_default().to_owned() } else { text })
    }

    /// Asks for yes or no; an empty line is no.
    pub(crate) fn confirm(&mut self, question: &str) -> Result<bool, AskError> {
        loop {
            match self.line(&format!("{question} [y/N]"))?.to_ascii_lowercase().as_str() {
                "y" | "yes" => return Ok(true),
                "" | "n" | "no" => return Ok(false),
                _ => self.say("Please answer yes or no.")?,
            }
        }
    }

    /// Asks for one of several letters or the words they begin; an empty line is the default.
    pub(crate) fn letter(&mut self, question: &str, words: &[&str], default: char) -> Result<char, AskError> {
        loop {
            let typed = self.line(question)?.to_ascii_lowercase();
            if typed.is_empty() {
                return Ok(default);
            }
            let meant = words.iter().find(|word| **word == typed || word.get(..1) == Some(typed.as_str()));
            match meant.and_then(|word| word.chars().next()) {
                Some(letter) => return Ok(letter),
                None => self.say(&format!("Please answer {}.", words.join(", ")))?,
            }
        }
    }

    /// Asks for one of several things by its number or name; an empty line takes the default.
    pub(crate) fn choose(
        &mut self,
        label: &str,
        options: &[String],
        default: Option<usize>,
    ) -> Result<usize, AskError> {
        self.list(options)?;
        let shown = default.map(|index| (index + 1).to_string());
        loop {
            let typed = self.text(label, shown.as_deref())?;
            match find(options, &typed) {
                Some(index) => return Ok(index),
                None => self.say(&format!("Please answer with a number from 1 to {}.", options.len()))?,
            }
        }
    }

    /// Asks for something that is not shown while it is typed, where the terminal can do that.
    pub(crate) fn hidden(&mut self, label: &str) -> Result<String, AskError> {
        if self.fd.is_none() {
            self.warn("What you type will be seen.")?;
            return self.line(label);
        }
        let _raw = self.raw_mode()?;
        let _held = self.show_label(label)?;
        let typed = read_hidden(&mut self.input)?;
        self.output.write_all(b"\n")?;
        typed.ok_or(AskError::Ended)
    }

    /// Asks for a change to a value; what is typed is taken when it is JSON and passes the check.
    pub(crate) fn edit_json(
        &mut self,
        current: &Value,
        check: &dyn Fn(&Value) -> Result<(), String>,
    ) -> Result<Value, AskError> {
        // Between two attempts as well, or keys that are pressed meanwhile would be taken for a line of their own.
        let _raw = self.raw_mode()?;
        let mut text = current.to_string();
        loop {
            let typed = self.edit_line("JSON", &text)?;
            let read = serde_json::from_str(&typed).map_err(|error| format!("That is no JSON: {error}"));
            match read.and_then(|value| check(&value).map(|()| value)) {
                Ok(value) => return Ok(value),
                Err(why) => self.warn(&why)?,
            }
            text = typed;
        }
    }

    /// Asks for a change to a line: in place where it can be edited; elsewhere the new line is typed, and an empty one
    /// keeps the old.
    fn edit_line(&mut self, label: &str, text: &str) -> Result<String, AskError> {
        if !self.edits_lines() {
            self.say_faint(text)?;
            let typed = self.line(&format!("{label} (empty keeps it)"))?;
            return Ok(if typed.is_empty() { text.to_owned() } else { typed });
        }
        if self.wanted.0.is_some() && text.is_empty() {
            // The editor waits for the first key and for nothing else.
            let _raw = self.raw_mode()?;
            let held = self.show_label(label)?;
            self.until_typed()?;
            drop(held);
            self.output.write_all(b"\r\x1b[K")?;
        }
        let unusable = |error: ReadlineError| AskError::Terminal(io::Error::other(error));
        let config = Config::builder().behavior(Behavior::PreferTerm).build();
        let mut editor = DefaultEditor::with_config(config).map_err(unusable)?;
        match editor.readline_with_initial(&self.label(label), (text, "")) {
            Ok(line) => Ok(line),
            Err(ReadlineError::Interrupted | ReadlineError::Eof | ReadlineError::Signal(_)) => {
                Err(AskError::Ended)
            }
            Err(error) => Err(unusable(error)),
        }
    }

    /// Whether lines can be edited: at a terminal that moves its cursor.
    fn edits_lines(&self) -> bool {
        self.fd.is_some() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
    }

    /// What stands before an answer.
    fn label(&self, label: &str) -> String {
        format!("{} ", self.paint.strong(&format!("{}:", one_line(label))))
    }

    fn list(&mut self, options: &[String]) -> Result<(), AskError> {
        for (number, option) in (1..).zip(options) {
            let option = one_line(option);
            self.write_line(&format!("  {number:>2}  {}", truncate(&option, COLUMNS)))?;
        }
        Ok(())
    }

    /// Shows what is asked; nothing is logged behind it before the answer has come.
    fn show_label(&mut self, label: &str) -> io::Result<Option<logging::Held>> {
        let held = self.fd.as_ref().and_then(|_| logging::hold());
        let label = self.label(label);
        self.output.write_all(label.as_bytes())?;
        self.output.flush()?;
        Ok(held)
    }

    fn write_line(&mut self, text: &str) -> Result<(), AskError> {
        self.output.write_all(text.as_bytes())?;
        self.output.write_all(b"\n")?;
        Ok(self.output.flush()?)
    }
}

/// The option with this number, counted from 1, or else this name.
fn find(options: &[String], typed: &str) -> Option<usize> {
    let by_number = typed.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    by_number
        .filter(|index| *index < options.len())
        .or_else(|| options.iter().position(|option| option.eq_ignore_ascii_case(typed)))
}

/// The columns of a terminal.
#[cfg(unix)]
pub(crate) fn columns(terminal: &impl std::os::fd::AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

#[cfg(not(unix))]
pub(crate) fn columns<T>(_terminal: &T) -> Option<usize> {
    None
}

#[cfg(test)]
mod tests;
