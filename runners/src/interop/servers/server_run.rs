//! One server over one transport: what it speaks, and the scenario in each revision.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::super::Paths;
use super::process::{self, ServerProcess};
use super::report::{Outcome, Section};
use super::scenario::MODERN;
use super::server::{Endpoint, Server};
use super::step::{CommandOutput, Feature, PRINTED, Step};
use crate::server::Transport;
use crate::{REVISIONS, shell};

/// What else than a revision can be asked for. `auto` comes last: it must not be misled by what was spoken before.
const ERAS: [&str; 3] = ["legacy", "modern", "auto"];

/// One server over one transport.
pub(super) struct ServerRun {
    pub(super) server: &'static Server,
    pub(super) endpoint: &'static Endpoint,
}

/// A server that can be target.
struct Target<'a> {
    refmcp: &'a Path,
    /// Where refmcp keeps what it remembers.
    state: PathBuf,
    /// A URL, or nothing.
    url: Option<String>,
    /// The command that starts the server, where there is no URL.
    command: Vec<PathBuf>,
}

impl ServerRun {
    /// Whether the server is started once and not for every command.
    pub(super) fn is_quick(&self) -> bool {
        self.endpoint.transport != Transport::Stdio
    }

    fn name(&self) -> String {
        format!("server-{}-{}", self.server.name, self.endpoint.transport.name())
    }

    pub(super) fn execute(&self, paths: &Paths) -> Section {
        let begin = Instant::now();
        let mut section = Section {
            server: self.server.name,
            transport: self.endpoint.transport.title(),
            revisions: self.endpoint.scenario_revisions.to_vec(),
            features: (self.endpoint.scenario)().iter().map(|feature| feature.name).collect(),
            ..Section::default()
        };
        if let Err(error) = self.fill(paths, &mut section) {
            section.problems.push(format!("{error:#}"));
        }
        println!(
            "{:<14} {:<9} {}  ({})",
            self.server.name,
            self.endpoint.transport.name(),
            section.tally(),
            shell::duration(begin.elapsed())
        );
        section
    }

    fn fill(&self, paths: &Paths, section: &mut Section) -> Result<()> {
        let results = paths.out.join("results");
        let state = results.join(self.name());
        if state.exists() {
            fs::remove_dir_all(&state).with_context(|| format!("cannot remove {}", state.display()))?;
        }
        fs::create_dir_all(&state).with_context(|| format!("cannot make {}", state.display()))?;
        let port = process::free_port()?;
        let placed = |word: &&str| word.replace("PORT", &port.to_string());
        let mut command = self.server.words(paths);
        command.extend(self.endpoint.words.iter().map(|word| PathBuf::from(placed(word))));
        if !self.is_quick() {
            let target = Target { refmcp: &paths.server, state, url: None, command };
            self.scenario(&target, section);
            return Ok(());
        }
        let log = results.join(format!("{}.log", self.name()));
        let running =
            ServerProcess::start(&command, port, &log).with_context(|| format!("see {}", log.display()))?;
        let url = Some(placed(&self.endpoint.url));
        self.scenario(&Target { refmcp: &paths.server, state, url, command: Vec::new() }, section);
        let status = running.stop()?;
        ensure!(!self.server.is_ours() || status.success(), "the server ended with {status}");
        Ok(())
    }

    fn scenario(&self, target: &Target<'_>, section: &mut Section) {
        for era in REVISIONS.into_iter().chain(ERAS) {
            section.eras.push((era, target.agree(era, self.expected(era))));
        }
        for revision in self.endpoint.scenario_revisions {
            for feature in (self.endpoint.scenario)() {
                section.cells.insert((revision, feature.name), target.show(&feature, revision));
            }
        }
    }

    /// What has to be agreed on when this is asked for.
    fn expected(&self, era: &str) -> Option<&'static str> {
        let newest = REVISIONS.len() - 1;
        // This transport belongs to revisions with sessions; over it, others have to be asked for.
        let sessions = self.endpoint.transport == Transport::HttpSse;
        match era {
            "auto" if !sessions => self.endpoint.speaks.last().copied(),
            "auto" | "legacy" => {
                self.endpoint.speaks.iter().rfind(|revision| index_of(revision) < newest).copied()
            }
            "modern" => self.endpoint.speaks.iter().find(|revision| index_of(revision) == newest).copied(),
            date => self.endpoint.speaks.iter().find(|revision| **revision == date).copied(),
        }
    }
}

/// The revision's place among all.
fn index_of(revision: &str) -> usize {
    REVISIONS.iter().position(|known| *known == revision).unwrap_or(REVISIONS.len())
}

impl Target<'_> {
    fn command(&self, era: &str, output: &str, words: &[&str]) -> Command {
        let mut command = Command::new(self.refmcp);
        // A command may have commands of its own.
        let names = if words.first() == Some(&"task") { 2 } else { 1 };
        let (names, rest) = words.split_at_checked(names).unwrap_or((words, &[]));
        command.args(names).args(["--protocol-version", era, "--output", output, "--yes", "--timeout", "30"]);
        command.args(&self.url).args(rest);
        if !self.command.is_empty() {
            command.arg("--").args(&self.command);
        }
        // Nothing of what the person who runs this has decided or set may matter.
        command.current_dir(&self.state).env("REFMCP_STATE_DIR", &self.state).env("NO_COLOR", "1");
        for set in ["REFMCP_LOG", "REFMCP_LOG_FORMAT", "REFMCP_MASK_ARGUMENTS"] {
            command.env_remove(set);
        }
        command
    }

    /// Asks for an era.
    fn agree(&self, era: &str, expected: Option<&str>) -> Outcome {
        let output = match process::run(&mut self.command(era, "json", &["info"])) {
            Ok(output) => output,
            Err(error) => return Outcome::Failed(format!("{error:#}")),
        };
        let agreed =
            output.document().ok().and_then(|info| Some(info.get("protocolVersion")?.as_str()?.to_owned()));
        match (agreed, expected) {
            (Some(agreed), Some(expected)) if agreed == expected && output.exit == Some(0) => {
                Outcome::Ok(agreed)
            }
            (None, None) if tells_why(&output.err) => Outcome::Unsupported(output.reason()),
            (agreed, expected) => {
                Outcome::Failed(format!("{expected:?} was expected, not {agreed:?}: {}", output.reason()))
            }
        }
    }

    /// Shows a feature.
    fn show(&self, feature: &Feature, revision: &str) -> Outcome {
        let mut printed = None;
        for step in &feature.steps {
            let output = match self.run_step(step, revision, printed.as_deref().unwrap_or_default()) {
                Ok(output) => output,
                Err(error) => return Outcome::Failed(format!("{}: {error:#}", step.words.join(" "))),
            };
            let exit = if step.watched.is_empty() { step.exit } else { output.exit.unwrap_or(step.exit) };
            if let Some(error) = output.fault(exit, step.checks) {
                let refused = !feature.is_in(index_of(revision)) && is_refused(&output, index_of(revision));
                return match refused {
                    true => Outcome::Unsupported(output.reason()),
                    false => Outcome::Failed(format!("{}: {error}", step.words.join(" "))),
                };
            }
            printed.get_or_insert_with(|| output.out.trim().to_owned());
        }
        Outcome::Ok(String::new())
    }

    fn run_step(&self, step: &Step, revision: &str, printed: &str) -> Result<CommandOutput> {
        let words: Vec<&str> =
            step.words.iter().map(|word| if *word == PRINTED { printed } else { *word }).collect();
        let mut command = self.command(revision, step.output, &words);
        if step.watched.is_empty() {
            return process::run(&mut command);
        }
        process::watch(&mut command, step.watched, || match step.meanwhile {
            Some(words) => process::run(&mut self.command(revision, "text", words)).map(drop),
            None => Ok(()),
        })
    }
}

/// True if standard error has an error of ours, which is a document where results are.
fn tells_why(err: &str) -> bool {
    err.lines().any(|line| line.starts_with("refmcp: ") || line.starts_with("{\"error\":"))
}

/// Whether something was turned down that the revision does not have: with an error, a tool that says so, or, for
/// what a revision merely leaves out of a result, without it.
fn is_refused(output: &CommandOutput, revision: usize) -> bool {
    match output.exit {
        Some(1) => revision < MODERN || output.err.contains("(-32601)"),
        Some(5) => true,
        Some(0) => output.document().is_ok_and(|result| result.get("structuredContent").is_none()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::server::SERVERS;
    use super::*;

    #[test]
    fn what_has_to_be_agreed_on_follows_from_what_is_spoken() {
        let everything = ServerRun { server: &SERVERS[0], endpoint: &SERVERS[0].endpoints[0] };
        let ours = ServerRun { server: &SERVERS[5], endpoint: &SERVERS[5].endpoints[0] };
        let over_sse = ServerRun { server: &SERVERS[5], endpoint: &SERVERS[5].endpoints[2] };
        assert_eq!(over_sse.expected("auto"), Some("2025-11-25"));
        let of = |server_run: &ServerRun| {
            ["auto", "legacy", "modern", "2024-11-05"].map(|era| server_run.expected(era))
        };
        assert_eq!(of(&everything), [Some("2025-11-25"), Some("2025-11-25"), None, Some("2024-11-05")]);
        assert_eq!(
            of(&ours),
            [Some("2026-07-28"), Some("2025-11-25"), Some("2026-07-28"), Some("2024-11-05")]
        );
    }

    #[test]
    fn errors_are_told_in_words_or_as_a_document() {
        assert!(tells_why("Starting...\nrefmcp: no"));
        assert!(tells_why("{\"error\":{\"message\":\"no\"}}"));
        assert!(!tells_why("Starting..."));
    }

    #[test]
    fn a_refusal_is_told_from_a_fault() {
        let output =
            |exit, out: &str, err: &str| CommandOutput { exit, out: out.to_owned(), err: err.to_owned() };
        assert!(is_refused(&output(Some(1), "", "refmcp: no ping (-32601)"), MODERN));
        assert!(!is_refused(&output(Some(1), "", "refmcp: broken (-32603)"), MODERN));
        assert!(is_refused(&output(Some(0), r#"{"content":[]}"#, ""), 0));
        assert!(!is_refused(&output(Some(0), r#"{"structuredContent":{}}"#, ""), 0));
        assert!(!is_refused(&output(Some(4), "", "refmcp: no connection"), 0));
    }
}
