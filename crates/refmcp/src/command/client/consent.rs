//! Consent to what a configuration file has started or sent: asked for once, and again when anything of it has changed.

use anyhow::Result;
use refmcp_client::redact;

use super::connect::Servers;
use crate::args::{ExitError, ExitReason, usage};
use crate::config::{ServerEntry, Start, changes_what_runs, sent_variables};
use crate::store::trust::{Decision, ServerIdentity, Subject, Trust, TrustStatus};
use crate::store::{StateFolder, trust};

/// What the user is asked to agree to.
struct Question {
    heading: String,
    lines: Vec<Line>,
    /// The files that want it.
    files: String,
    /// Such as `Start it?`.
    question: &'static str,
    /// What is said when the answer is no.
    refused: &'static str,
    /// What would be done, where the user cannot be asked.
    would: String,
}

/// A line of what is shown.
struct Line {
    shown: String,
    /// The same with its secrets.
    whole: String,
    is_careful: bool,
}

impl Line {
    fn plain(text: String) -> Self {
        Self { whole: text.clone(), shown: text, is_careful: false }
    }
}

impl Servers<'_> {
    /// Whether the program of a server may be started like this.
    pub(super) async fn agreed_to_start(&self, entry: &ServerEntry, start: &Start) -> Result<()> {
        let identity = entry.start_identity(start)?;
        self.agreed(&entry.name, identity, || start_question(entry, start)).await
    }

    /// Whether the values of our environment that an entry names may be sent to its server.
    pub(super) async fn agreed_to_send(&self, entry: &ServerEntry) -> Result<()> {
        let Some(sent) = sent_variables(entry) else { return Ok(()) };
        let names = sent.variables.join(", ");
        let question = Question {
            heading: format!("The server {} is sent values of your environment:", entry.name),
            lines: vec![Line::plain(names.clone()), Line::plain(format!("to {}", sent.to))],
            files: entry.source.display().to_string(),
            question: "Send them?",
            refused: "nothing was sent",
            would: format!("{} would send the values of {names} to {}", entry.name, sent.to),
        };
        let identity = entry.send_identity(sent)?;
        self.agreed(&entry.name, identity, || question).await
    }

    async fn agreed(
        &self,
        name: &str,
        identity: ServerIdentity,
        question: impl FnOnce() -> Question,
    ) -> Result<()> {
        let folder = StateFolder::from_env()?;
        let status = Trust::load(&folder)?.server(&identity);
        match status {
            TrustStatus::Allowed => return Ok(()),
            TrustStatus::Disabled => {
                let how = format!("refmcp trust allow {name}");
                return Err(usage!("{name} was disabled here; to use it again: {how}").into());
            }
            TrustStatus::Unknown | TrustStatus::Changed if self.shared.yes => return Ok(()),
            TrustStatus::Unknown | TrustStatus::Changed => {}
        }
        let changed = status == TrustStatus::Changed;
        let Question { heading, lines, files, question, refused, would } = question();
        let answer = self.person.ask(move |terminal| {
            terminal.say_strong(&heading)?;
            for Line { shown, is_careful, .. } in &lines {
                match is_careful {
                    true => terminal.warn(&format!("  {shown}"))?,
                    false => terminal.say(&format!("  {shown}"))?,
                }
            }
            terminal.say_faint(&format!("  from {files}"))?;
            if changed {
                terminal.warn("  careful: a file or the program has changed since you allowed it")?;
            }
            if lines.iter().all(|line| line.whole == line.shown) {
                return terminal.letter(
                    &format!("{question} [yes, always, No]"),
                    &["yes", "always", "no"],
                    'n',
                );
            }
            let label = format!("{question} [yes, always, show its secrets, No]");
            match terminal.letter(&label, &["yes", "always", "show", "no"], 'n')? {
                's' => {
                    for Line { whole, .. } in &lines {
                        terminal.say(&format!("  {whole}"))?;
                    }
                    let label = format!("{question} [yes, always, No]");
                    terminal.letter(&label, &["yes", "always", "no"], 'n')
                }
                letter => Ok(letter),
            }
        });
        match answer.await {
            Some(Ok('a')) => trust::decide(&folder, Subject::Server(identity), Decision::Allowed),
            Some(Ok('y')) => Ok(()),
            Some(_) => Err(ExitError::new(ExitReason::Failed, refused).into()),
            None => {
                let file = self.shared.config.as_ref().map(|file| format!(" --config {}", file.display()));
                let file = file.unwrap_or_default();
                let how = format!("run `refmcp trust allow {name}{file}` first, or give --yes");
                Err(usage!("{would}, and the user cannot be asked: {how}").into())
            }
        }
    }
}

fn start_question(entry: &ServerEntry, start: &Start) -> Question {
    let words = start.found_words();
    let command = Line {
        shown: redact::joined(&redact::words_to_confirm(&words)),
        whole: redact::joined(&words),
        is_careful: false,
    };
    let directory = Line::plain(format!("in {}", start.directory().display()));
    let variables = start.variables.iter().map(|(name, value)| variable(name, value.reveal()));
    let changing = start.variables.iter().filter(|(name, _)| changes_what_runs(name));
    let changing: Vec<&str> = changing.map(|(name, _)| name.as_str()).collect();
    let with = match changing.as_slice() {
        [] => String::new(),
        names => format!(", with {} changed", names.join(", ")),
    };
    let env_file = start.env_file.as_ref().map(|file| format!(" and {}", file.file)).unwrap_or_default();
    Question {
        heading: format!("The server {} is started by this command:", entry.name),
        lines: [command, directory].into_iter().chain(variables).collect(),
        files: format!("{}{env_file}", entry.source.display()),
        question: "Start it?",
        refused: "it was not started",
        would: format!("{} would start `{}`{with}", entry.name, redact::command_line(&words)),
    }
}

/// A variable that a file sets. The value of one that changes what runs is shown whatever it is.
fn variable(name: &str, value: &str) -> Line {
    let word = format!("{name}={value}");
    let whole = format!("with {}", redact::joined(&[&word]));
    if changes_what_runs(name) {
        let shown = format!("{whole}, which changes what runs");
        return Line { whole: shown.clone(), shown, is_careful: true };
    }
    // As the value of an option, which is masked only where its name or itself looks like a secret.
    let masked = redact::words_to_confirm(&["program", &format!("--{word}")]).pop().unwrap_or_default();
    let shown = format!("with {}", redact::joined(&[masked.trim_start_matches("--")]));
    Line { shown, whole, is_careful: false }
}
