//! Completion of command lines in bash, zsh and fish. The script of a shell hands the line to the hidden command
//! `__complete`, which prints candidates; servers are asked only where that starts nothing without consent, and briefly.

mod position;
mod shells;
mod values;

use std::ffi::OsString;
use std::time::Duration;

use crate::args::CompletionShell;
use crate::ui::output::print;
use crate::ui::text::one_line;
use shells::{TypedLine, answer, bash_line};

pub(crate) use shells::script;
pub(crate) use values::of_schema;

/// The most candidates that are printed.
pub(crate) const MAX_CANDIDATES: usize = 500;

/// The most columns of a description.
const DESCRIPTION: usize = 80;

/// A candidate for the last word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) text: String,
    description: String,
    /// Whether the word continues, so that no space follows.
    pub(crate) is_open: bool,
}

impl Candidate {
    pub(crate) fn new(text: impl Into<String>, description: impl Into<String>) -> Self {
        Self { text: text.into(), description: description.into(), is_open: false }
    }

    pub(crate) fn open(self) -> Self {
        Self { is_open: true, ..self }
    }
}

/// The candidates for the last word.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Candidates {
    pub(crate) words: Vec<Candidate>,
    /// Whether the shell completes file names.
    files: bool,
}

impl Candidates {
    fn words(words: impl IntoIterator<Item = Candidate>) -> Self {
        Self { words: words.into_iter().collect(), files: false }
    }

    fn files() -> Self {
        Self { words: Vec::new(), files: true }
    }

    /// The same, each with this prefix.
    fn after(mut self, prefix: &str) -> Self {
        for word in &mut self.words {
            word.text.insert_str(0, prefix);
        }
        self
    }
}

/// How long a server is waited for after a press of the tab key.
const TIMEOUT: Duration = Duration::from_millis(1500);

/// The variable with the number of seconds instead, up to [`MAX_TIMEOUT`].
const TIMEOUT_VARIABLE: &str = "REFMCP_COMPLETION_TIMEOUT";

const MAX_TIMEOUT: f64 = 60.0;

/// How much longer the process may take in all, such as for a file that another process has locked.
const MARGIN: Duration = Duration::from_millis(1500);

fn timeout() -> Duration {
    let seconds = std::env::var(TIMEOUT_VARIABLE).ok().and_then(|text| text.parse::<f64>().ok());
    let seconds = seconds.filter(|seconds| (0.0..=MAX_TIMEOUT).contains(seconds));
    seconds.map_or(TIMEOUT, Duration::from_secs_f64)
}

/// Prints the candidates for the last word of a line, and nothing else: an error leaves no candidates.
pub(crate) fn run(shell: CompletionShell, words: &[OsString]) {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let line = match shell {
        CompletionShell::Bash => bash_line(&words),
        CompletionShell::Zsh | CompletionShell::Fish => TypedLine::of_words(&words),
    };
    let Some(line) = line else { return };
    std::thread::spawn(|| {
        std::thread::sleep(timeout() + MARGIN);
        std::process::exit(0);
    });
    let mut found = candidates(&line);
    found.words.retain(|word| word.text.starts_with(&line.last) && is_harmless(&word.text));
    found.words.dedup_by(|one, other| one.text == other.text);
    found.words.truncate(MAX_CANDIDATES);
    // A shell that reads no more has no use for the rest.
    let _ = print(answer(shell, &line, &found).as_bytes());
}

fn candidates(line: &TypedLine) -> Candidates {
    let command = crate::args::definition();
    let position = position::Position::parse(&command, &line.words);
    if let Some(found) = position.options(&line.last) {
        return found;
    }
    if position.is_in_server_command {
        return Candidates::files();
    }
    match values::candidates(&position, line) {
        Some(found) => found,
        None => position.declared(),
    }
}

/// Names come from servers and files and are put onto a command line: control characters are not let through.
pub(crate) fn is_harmless(text: &str) -> bool {
    !text.is_empty() && one_line(text) == text && !text.contains(['\n', '\t', '\r'])
}
