//! Completion of command lines in bash, zsh and fish. The script of a shell asks the hidden command `__complete` how the
//! line may go on; servers are asked only where that starts nothing that was not agreed to, and for a short time.

mod definition;
mod line;
mod names;
mod query;
mod script;
mod values;

use std::ffi::OsString;
use std::time::Duration;

use crate::args::CompletionShell;
use crate::ui::output::print;
use crate::ui::text::one_line;
use line::{Line, bash_line};

pub(crate) use script::script;

/// Candidates that are shown; more are of no use.
const MOST: usize = 500;

/// Columns of what is said about a candidate.
const DESCRIPTION: usize = 80;

/// A word that could stand in place of the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate {
    text: String,
    description: String,
    /// Whether the word goes on, so that no space follows.
    is_open: bool,
}

impl Candidate {
    fn new(text: impl Into<String>, description: impl Into<String>) -> Self {
        Self { text: text.into(), description: description.into(), is_open: false }
    }

    fn open(self) -> Self {
        Self { is_open: true, ..self }
    }
}

/// What could stand in place of the last word.
#[derive(Debug, Default, PartialEq, Eq)]
struct Candidates {
    words: Vec<Candidate>,
    /// Whether the shell completes the names of files there.
    files: bool,
}

impl Candidates {
    fn words(words: impl IntoIterator<Item = Candidate>) -> Self {
        Self { words: words.into_iter().collect(), files: false }
    }

    fn files() -> Self {
        Self { words: Vec::new(), files: true }
    }

    /// The same, each with something in front.
    fn after(mut self, prefix: &str) -> Self {
        for word in &mut self.words {
            word.text.insert_str(0, prefix);
        }
        self
    }
}

/// How long a person who presses tab waits for a server.
const PATIENCE: Duration = Duration::from_millis(1500);

/// The variable that says how many seconds it is instead.
const PATIENCE_VARIABLE: &str = "REFMCP_COMPLETION_TIMEOUT";

/// The longest that can be said.
const LONGEST_PATIENCE: f64 = 60.0;

/// How much longer it may take in all, whatever holds it up, such as a file that another process has locked.
const MARGIN: Duration = Duration::from_millis(1500);

/// How long a server is waited for.
fn patience() -> Duration {
    let said = std::env::var(PATIENCE_VARIABLE).ok().and_then(|text| text.parse::<f64>().ok());
    let said = said.filter(|seconds| (0.0..=LONGEST_PATIENCE).contains(seconds));
    said.map_or(PATIENCE, Duration::from_secs_f64)
}

/// Prints how a line may go on. Nothing else is ever printed: what goes wrong leaves nothing to suggest.
pub(crate) fn run(shell: CompletionShell, words: &[OsString]) {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let line = match shell {
        CompletionShell::Bash => bash_line(&words),
        CompletionShell::Zsh | CompletionShell::Fish => Line::of_words(&words),
    };
    let Some(line) = line else { return };
    std::thread::spawn(|| {
        std::thread::sleep(patience() + MARGIN);
        std::process::exit(0);
    });
    let mut found = candidates(&line);
    found.words.retain(|word| word.text.starts_with(&line.last) && is_harmless(&word.text));
    found.words.dedup_by(|one, other| one.text == other.text);
    found.words.truncate(MOST);
    // A shell that reads no more has no use for the rest.
    let _ = print(script::answer(shell, &line, &found).as_bytes());
}

fn candidates(line: &Line) -> Candidates {
    let command = crate::args::definition();
    let position = definition::Position::of(&command, &line.words);
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

/// Names come from servers and files, and are put onto a command line: nothing may be in them that does something.
fn is_harmless(text: &str) -> bool {
    !text.is_empty() && one_line(text) == text && !text.contains(['\n', '\t', '\r'])
}
