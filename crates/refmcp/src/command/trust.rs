//! `refmcp trust`: what may be done without asking.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use crate::args::{ExitReason, OutputFormat, Target, TrustChange, TrustCommand, UsageError, usage};
use crate::config;
use crate::store::StateFolder;
use crate::store::trust::{
    Decision, ServerEntry, ServerIdentity, Source, Subject, Trust, TrustStatus, decide, revoke,
};
use crate::ui::output::{show, show_list};
use crate::ui::render::View;
use crate::ui::render::table::Table;
use crate::ui::style::Paint;
use crate::ui::suggest::choices;
use crate::ui::text::one_line;

pub(crate) fn run(command: TrustCommand) -> Result<ExitReason> {
    let folder = StateFolder::from_env()?;
    let format = command.format();
    let (change, decision) = match command {
        TrustCommand::List { .. } => {
            let trust = Trust::load(&folder)?;
            match format {
                OutputFormat::Jsonl => {
                    show_list(format, &trust.servers, String::new)?;
                    show_list(format, &trust.tools, String::new)?;
                    show_list(format, &trust.skills, String::new)?;
                }
                _ => show(format, &trust, || listed(&trust, View::for_stdout(false).width))?,
            }
            return Ok(ExitReason::Done);
        }
        TrustCommand::Allow(change) => (change, Some(Decision::Allowed)),
        TrustCommand::Disable(change) => (change, Some(Decision::Disabled)),
        TrustCommand::Revoke(change) => (change, None),
    };
    let changed = changed(&folder, change, decision)?;
    show(format, &changed, || changed.text())?;
    Ok(ExitReason::Done)
}

/// What came of a change.
#[derive(Serialize)]
struct Changed {
    /// What it is about.
    subject: String,
    decision: Option<Decision>,
    /// Whether there was anything to forget, where that was asked for.
    found: bool,
}

impl Changed {
    fn text(&self) -> String {
        let done = self.decision.map_or("forgotten", decision);
        if !self.found {
            return format!("nothing was decided about {}\n", one_line(&self.subject));
        }
        format!("{done}: {}\n", one_line(&self.subject))
    }
}

fn changed(folder: &StateFolder, change: TrustChange, decision: Option<Decision>) -> Result<Changed> {
    let subject = subject(change)?;
    let what = match &subject {
        Subject::Server(server) => server.to_string(),
        Subject::Tool { target, tool } => format!("{tool} of {target}"),
        Subject::Skill { .. } if decision.is_some() => {
            let what = "a skill is approved with its files: use `refmcp skills pull`; here it can be revoked";
            return Err(UsageError::new(what).into());
        }
        Subject::Skill { target, uri } => format!("{uri} of {target}"),
    };
    let found = match decision {
        Some(decision) => decide(folder, subject, decision).map(|()| true)?,
        None => revoke(folder, &subject)?,
    };
    Ok(Changed { subject: what, decision, found })
}

/// What the words are about.
fn subject(change: TrustChange) -> Result<Subject> {
    let target = match (change.target, change.command) {
        (Some(word), _) => Target::parse(&word)?,
        (None, command) => Target::Command(command),
    };
    if let Some(uri) = change.skill {
        return Ok(Subject::Skill { target: target.name().key().to_owned(), uri });
    }
    match (change.tool, target) {
        (Some(tool), target) => Ok(Subject::Tool { target: target.name().key().to_owned(), tool }),
        (None, Target::Command(command)) => {
            let of_file = change.config.as_deref().map(|file| identity_of(&command, file)).transpose()?;
            Ok(Subject::Server(of_file.unwrap_or_else(|| ServerIdentity::new(&command, None))))
        }
        (None, Target::Named(name)) => identity(&name, change.config.as_deref()).map(Subject::Server),
        (None, target @ Target::Url { .. }) => {
            let what = "nothing is started for an address; say which tool there, with --tool";
            Err(usage!("{target}: {what}").into())
        }
    }
}

/// A command of a configuration file.
fn identity_of(command: &[String], file: &Path) -> Result<ServerIdentity> {
    let source = Source::read(file)?;
    let known = config::read(file);
    for entry in &known.servers {
        let Ok(entry) = config::resolve_unasked(&known, entry) else { continue };
        if entry.start().is_ok_and(|start| start.is_some_and(|start| start.words == command))
            && let Some(identity) = config::identity(&entry)?
        {
            return Ok(identity);
        }
    }
    Ok(ServerIdentity::new(command, Some(source)))
}

/// What starts the server that a configuration file names, or what is sent to it.
fn identity(name: &str, file: Option<&Path>) -> Result<ServerIdentity> {
    let known = config::read_named(file);
    let Some(entry) = known.get(name) else {
        let problems: String = known.problems.iter().map(|problem| format!("; {problem}")).collect();
        let names: Vec<&str> = known.servers.iter().map(|entry| entry.name.as_str()).collect();
        let there = choices(name, &names, "there is")
            .unwrap_or_else(|| "they name none; a command stands after `--`".to_owned());
        return Err(usage!("no configuration file names a server {name:?}: {there}{problems}").into());
    };
    let entry = config::resolve_unasked(&known, entry)?;
    Ok(config::identity(&entry)?.ok_or_else(|| {
        let what = "nothing is started for it, and nothing of your environment sent; say which tool of it, with --tool";
        usage!("{name}: {what}")
    })?)
}

fn listed(trust: &Trust, width: Option<usize>) -> String {
    let mut table = Table::new(&["DECISION", "WHAT", "SERVER", "SOURCE", "SINCE"]);
    for entry in &trust.servers {
        let source = entry.server.source.as_ref().map(|source| &*source.file);
        let what = if entry.server.sends.is_some() { "send" } else { "start" };
        let server = entry.server.to_string();
        table.row([stands(entry), what, &server, source.unwrap_or_default(), &entry.time]);
    }
    for entry in &trust.tools {
        let what = format!("call {}", entry.tool);
        table.row([decision(entry.decision), &what, &entry.target, "", &entry.time]);
    }
    for entry in &trust.skills {
        let what = format!("skill {}", entry.approval.uri());
        table.row(["approved as it is", &what, &entry.target, "", &entry.time]);
    }
    table.render_or("nothing was decided yet", Paint::PLAIN, width)
}

/// What has become of a decision about a server.
fn stands(entry: &ServerEntry) -> &'static str {
    match entry.status() {
        TrustStatus::Changed => "changed since; will be asked again",
        _ => decision(entry.decision),
    }
}

fn decision(decision: Decision) -> &'static str {
    match decision {
        Decision::Allowed => "allowed",
        Decision::Disabled => "disabled",
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn change(
        target: Option<&str>,
        tool: Option<&str>,
        config: Option<&Path>,
        command: &[&str],
    ) -> TrustChange {
        TrustChange {
            target: target.map(str::to_owned),
            tool: tool.map(str::to_owned),
            skill: None,
            config: config.map(Path::to_owned),
            output: OutputFormat::Text,
            command: command.iter().map(|word| (*word).to_owned()).collect(),
        }
    }

    #[test]
    fn decisions_are_about_commands_names_or_tools() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mcp.json");
        let text = r#"{"mcpServers": {"a": {"command": "run", "args": ["-x"]}, "b": {"url": "http://b/"}}}"#;
        fs::write(&file, text).unwrap();
        let source = Some(Source::read(&file).unwrap());
        let run = || ["run", "-x"].map(str::to_owned).to_vec();
        let started =
            || Subject::Server(ServerIdentity::new(&run(), source.clone()).started("run", None, None));
        let tool = |target: &str| Subject::Tool { target: target.to_owned(), tool: "t".to_owned() };
        for (change, expected) in [
            (change(None, None, None, &["run", "-x"]), Subject::Server(ServerIdentity::new(&run(), None))),
            (change(Some("a"), None, Some(&file), &[]), started()),
            (change(None, None, Some(&file), &["run", "-x"]), started()),
            (change(Some("a"), Some("t"), None, &[]), tool("a")),
            (change(Some("http://b"), Some("t"), None, &[]), tool("http://b/")),
            (change(None, Some("t"), None, &["run", "a b"]), tool("run 'a b'")),
        ] {
            let shown = format!("{change:?}");
            assert_eq!(subject(change).unwrap(), expected, "{shown}");
        }
        for (change, hint) in [
            (change(Some("b"), None, Some(&file), &[]), "nothing is started"),
            (change(Some("http://b/"), None, None, &[]), "nothing is started"),
            (change(Some("c"), None, Some(&file), &[]), "names a server \"c\""),
            (change(None, None, Some(&folder.path().join("none")), &["run"]), "cannot find"),
        ] {
            let error = format!("{:#}", subject(change).unwrap_err());
            assert!(error.contains(hint), "{error}");
        }
    }

    #[test]
    fn what_was_decided_is_changed_and_listed() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateFolder::at(folder.path());
        let wipe = || change(Some("shop"), Some("wipe"), None, &[]);
        let change_to = |decision| changed(&state, wipe(), decision).unwrap().text();
        assert_eq!(change_to(Some(Decision::Disabled)), "disabled: wipe of shop\n");
        let shown = listed(&Trust::load(&state).unwrap(), None);
        assert!(shown.contains("disabled  call wipe  shop"), "{shown}");
        let narrow = listed(&Trust::load(&state).unwrap(), Some(40));
        assert!(narrow.lines().all(|line| line.len() <= 40), "{narrow}");
        assert_eq!(change_to(None), "forgotten: wipe of shop\n");
        assert_eq!(change_to(None), "nothing was decided about wipe of shop\n");
        assert_eq!(listed(&Trust::load(&state).unwrap(), None), "nothing was decided yet\n");
    }

    #[test]
    fn it_is_said_which_servers_are_asked_about_again() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateFolder::at(&folder.path().join("state"));
        let files = ["same", "changed", "gone", "off"].map(|name| folder.path().join(name));
        for file in &files {
            fs::write(file, r#"{"mcpServers": {"a": {"command": "run"}}}"#).unwrap();
            let decision = if file.ends_with("off") { Decision::Disabled } else { Decision::Allowed };
            changed(&state, change(Some("a"), None, Some(file), &[]), Some(decision)).unwrap();
        }
        for file in [&files[1], &files[3]] {
            fs::write(file, r#"{"mcpServers": {"a": {"command": "run"}, "b": {"command": "b"}}}"#).unwrap();
        }
        fs::remove_file(&files[2]).unwrap();
        let shown = listed(&Trust::load(&state).unwrap(), None);
        let rows: Vec<&str> = shown.lines().skip(1).filter_map(|row| row.split("  ").next()).collect();
        let again = "changed since; will be asked again";
        assert_eq!(rows, ["allowed", again, again, "disabled"], "{shown}");
    }
}
