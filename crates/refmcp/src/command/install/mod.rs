//! `refmcp install`: writes a server's entry into the configuration file of another program, and takes it back.

mod diff;
mod edit;
mod entry;
mod file;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use refmcp_client::redact;
use serde::Serialize;
use serde_json::Value;

use crate::args::{ExitError, ExitReason, InstallOptions, usage};
use crate::config::{ConfigHost, ConfigScope, Platform};
use crate::store::StateFolder;
use crate::store::installs::{self, Change};
use crate::ui::output::{print, print_aside, show};
use crate::ui::style::Paint;
use crate::ui::terminal::Terminal;
use crate::ui::text::one_line;
use edit::{Edited, with_entry};
use file::ConfigFile;

pub(crate) fn run(options: &InstallOptions) -> Result<ExitReason> {
    let file = ConfigFile::open(&place(options)?)?;
    let outcome = if options.undo { undo(options, &file) } else { install(options, &file) }?;
    show(options.output, &outcome, || outcome.text.clone())?;
    Ok(ExitReason::Done)
}

/// What became of the file.
#[derive(Debug, Serialize)]
struct Outcome {
    host: ConfigHost,
    /// Where the file really is.
    file: PathBuf,
    /// The name of the entry.
    server: String,
    action: Action,
    /// False where the change was only to be shown, and where there was none.
    written: bool,
    /// The entry that was asked for, as it may be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    /// The command that takes the change back.
    #[serde(skip_serializing_if = "Option::is_none")]
    undo: Option<String>,
    /// What is left to say to people, who have seen the diff.
    #[serde(skip)]
    text: String,
}

/// A change of a file.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    /// The entry was added.
    Added,
    /// Another entry of that name was replaced.
    Replaced,
    /// The file has the entry already.
    Unchanged,
    /// The file is what it was before the last change.
    Restored,
    /// The file was not there before the last change, and is removed.
    Removed,
}

/// The file that is meant, and whether it is the user's own.
fn place(options: &InstallOptions) -> Result<PathBuf> {
    if let Some(path) = &options.config {
        return Ok(path.clone());
    }
    let place =
        options.host.file(scope(options), Platform::CURRENT, Path::new(""), &|name| std::env::var_os(name));
    place.context(
        "the environment does not say where your files are: set HOME, or name the file with --config",
    )
}

fn scope(options: &InstallOptions) -> ConfigScope {
    let in_folder = !options.user && options.host.has(ConfigScope::Folder);
    if in_folder { ConfigScope::Folder } else { ConfigScope::User }
}

fn install(options: &InstallOptions, file: &ConfigFile) -> Result<Outcome> {
    let own = std::env::current_exe().context("cannot find out where refmcp itself is")?;
    let (name, entry) = entry::wanted(options, &own)?;
    let shown = one_line(&file.shown()).into_owned();
    let before = file.text.as_deref();
    let edited = with_entry(before.unwrap_or_default(), options.host.member(), &name, &entry);
    let mut outcome = Outcome {
        host: options.host,
        file: file.real.clone(),
        server: name,
        action: Action::Unchanged,
        written: false,
        entry: Some(shown_entry(options, entry.to_value())?),
        diff: None,
        undo: None,
        text: format!("{shown} has this server already\n"),
    };
    let name = &outcome.server;
    let (after, action) = match edited.map_err(|error| usage!("{shown}: {error}; nothing was written"))? {
        Edited::Same => return Ok(outcome),
        Edited::Replaced(_) if !options.replace => {
            let how = "give --replace to change it, or another --name";
            return Err(usage!("{shown} has another server {name:?}: {how}").into());
        }
        Edited::Added(text) => (text, Action::Added),
        Edited::Replaced(text) => (text, Action::Replaced),
    };
    outcome.text.clear();
    let (diff, written) = agreed(options, file, Some(&after), "Write it?")?;
    outcome.written = written;
    if outcome.written {
        let state = StateFolder::from_env()?;
        let change = Change::new(&file.real, name, before, &after, file.missing_folders());
        let private = options.config.is_none() && scope(options) == ConfigScope::User;
        installs::keep(&state, change, || file.write(&after, private))?;
        let undo = undo_command(options);
        outcome.text = format!("written: {shown}\nto take it back: {undo}\n");
        outcome.undo = Some(undo);
    }
    Ok(Outcome { action, diff: Some(diff), ..outcome })
}

fn undo(options: &InstallOptions, file: &ConfigFile) -> Result<Outcome> {
    let shown = one_line(&file.shown()).into_owned();
    let state = StateFolder::from_env()?;
    let changes = installs::of_file(&state, &file.real)?;
    let Some(last) = changes.last() else {
        return Err(usage!("refmcp has written nothing to {shown} that it could take back").into());
    };
    let gone = || usage!("{shown} is not there any more, so there is nothing to take back");
    let text = file.text.as_deref().ok_or_else(gone)?;
    let found = installs::latest(&changes, text).and_then(|change| Some((change, change.undone(text)?)));
    let Some((change, before)) = found else {
        let how = format!("take the server {:?} out of it by hand", last.server);
        return Err(usage!("{shown} has changed since refmcp wrote it, and is left as it is: {how}").into());
    };
    let (diff, written) = agreed(options, file, before.as_deref(), "Take it back?")?;
    if written {
        installs::forget(&state, change, || match &before {
            Some(before) => file.write(before, false),
            None => file.remove(&change.folders),
        })?;
    }
    let (action, done) = match before {
        Some(_) => (Action::Restored, "as before"),
        None => (Action::Removed, "removed"),
    };
    Ok(Outcome {
        host: options.host,
        file: file.real.clone(),
        server: change.server.clone(),
        action,
        written,
        entry: None,
        diff: Some(diff),
        undo: None,
        text: if written { format!("{done}: {shown}\n") } else { String::new() },
    })
}

/// An entry without its secrets, unless they are to be shown.
fn shown_entry(options: &InstallOptions, entry: Value) -> Result<Value> {
    if options.show_secrets {
        return Ok(entry);
    }
    Ok(serde_json::from_str(&diff::masked(&entry.to_string()))?)
}

/// Shows what would become of the file; the diff as it is shown, and whether it is to be done.
fn agreed(
    options: &InstallOptions,
    file: &ConfigFile,
    after: Option<&str>,
    question: &str,
) -> Result<(String, bool)> {
    let is_json = options.output.is_json();
    // No colours in a JSON document.
    let paint = Paint::for_stream(&std::io::stdout(), is_json);
    let diff = |shown| diff::unified(&file.shown(), file.text.as_deref(), after, shown, paint);
    let whole = diff(str::to_owned);
    let diff = if options.show_secrets { whole.clone() } else { diff(diff::masked) };
    if !is_json {
        print(diff.as_bytes()).context("cannot write to standard output")?;
    }
    if diff != whole {
        print_aside(
            "Secrets are shown as ***; the file has them as they are, and --show-secrets shows them.\n",
        );
    }
    if options.dry_run || options.yes {
        return Ok((diff, !options.dry_run));
    }
    let Some(mut terminal) = Terminal::open(false) else {
        let how = "give --yes to write it, or --dry-run to see only what would change";
        return Err(usage!("nothing was written, since there is no terminal to ask at: {how}").into());
    };
    if is_json {
        // The document comes when everything is done; what is agreed to has to be seen before.
        print_aside(&diff);
    }
    match terminal.confirm(question) {
        Ok(true) => Ok((diff, true)),
        Ok(false) | Err(_) => Err(ExitError::new(ExitReason::Failed, "nothing was written").into()),
    }
}

/// What to type to take a change back.
fn undo_command(options: &InstallOptions) -> String {
    let host = options.host.to_possible_value().map(|host| host.get_name().to_owned());
    let mut words = vec!["refmcp".to_owned(), "install".to_owned()];
    words.extend(host);
    if options.user {
        words.push("--user".to_owned());
    }
    if let Some(path) = &options.config {
        words.extend(["--config".to_owned(), path.to_string_lossy().into_owned()]);
    }
    words.push("--undo".to_owned());
    redact::joined(&words)
}
