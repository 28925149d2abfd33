//! `refmcp install`: writes a server's entry into the configuration file of another program, and takes it back.

mod diff;
mod edit;
mod entry;
mod file;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::args::{ExitError, ExitReason, InstallOptions, UsageError, join_words};
use crate::config::{ConfigScope, Platform};
use crate::store::StateFolder;
use crate::store::installs::{self, Change};
use crate::ui::output::print;
use crate::ui::style::Paint;
use crate::ui::terminal::Terminal;
use crate::ui::text::one_line;
use edit::{Edited, names_of_secrets, with_entry};
use file::ConfigFile;

pub(crate) fn run(options: &InstallOptions) -> Result<ExitReason> {
    let file = ConfigFile::open(&place(options)?)?;
    if options.undo { undo(options, &file) } else { install(options, &file) }
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

fn install(options: &InstallOptions, file: &ConfigFile) -> Result<ExitReason> {
    let own = std::env::current_exe().context("cannot find out where refmcp itself is")?;
    let (name, entry) = entry::wanted(options, &own)?;
    let shown = one_line(&file.shown()).into_owned();
    let before = file.text.as_deref();
    let edited = with_entry(before.unwrap_or_default(), options.host.member(), &name, &entry);
    let after =
        match edited.map_err(|fault| UsageError::new(format!("{shown}: {fault}; nothing was written")))? {
            Edited::Same => return said(&format!("{shown} has this server already\n")),
            Edited::Replaced(_) if !options.replace => {
                let how = "give --replace to change it, or another --name";
                return Err(UsageError::new(format!("{shown} has another server {name:?}: {how}")).into());
            }
            Edited::Added(text) | Edited::Replaced(text) => text,
        };
    if !agreed(options, file, Some(&after), "Write it?")? {
        return Ok(ExitReason::Done);
    }
    let state = StateFolder::from_env()?;
    let change = Change::new(&file.real, &name, before, &after, file.missing_folders());
    let private = options.config.is_none() && scope(options) == ConfigScope::User;
    installs::keep(&state, change, || file.write(&after, private))?;
    said(&format!("written: {shown}\nto take it back: {}\n", undo_command(options)))
}

fn undo(options: &InstallOptions, file: &ConfigFile) -> Result<ExitReason> {
    let shown = one_line(&file.shown()).into_owned();
    let state = StateFolder::from_env()?;
    let changes = installs::of_file(&state, &file.real)?;
    let Some(last) = changes.last() else {
        return Err(UsageError::new(format!(
            "refmcp has written nothing to {shown} that it could take back"
        ))
        .into());
    };
    let gone = || UsageError::new(format!("{shown} is not there any more, so there is nothing to take back"));
    let text = file.text.as_deref().ok_or_else(gone)?;
    let found = installs::latest(&changes, text).and_then(|change| Some((change, change.undone(text)?)));
    let Some((change, before)) = found else {
        let how = format!("take the server {:?} out of it by hand", last.server);
        let what = format!("{shown} has changed since refmcp wrote it, and is left as it is: {how}");
        return Err(UsageError::new(what).into());
    };
    if !agreed(options, file, before.as_deref(), "Take it back?")? {
        return Ok(ExitReason::Done);
    }
    installs::forget(&state, change, || match &before {
        Some(before) => file.write(before, false),
        None => file.remove(&change.folders),
    })?;
    said(&match before {
        Some(_) => format!("as before: {shown}\n"),
        None => format!("removed: {shown}\n"),
    })
}

/// Shows what would become of the file; whether it is to be done.
fn agreed(options: &InstallOptions, file: &ConfigFile, after: Option<&str>, question: &str) -> Result<bool> {
    let before = file.text.as_deref();
    let paint = Paint::for_stream(&std::io::stdout(), false);
    let name = file.shown();
    let change = diff::unified(&name, before, after, paint);
    said(&change)?;
    let secrets = [before, after].into_iter().flatten().flat_map(names_of_secrets);
    if secrets.map(|name| format!("\"{name}\"")).any(|name| change.contains(&name)) {
        eprintln!("Careful: values of env and headers are shown above as they are in the file, secrets too.");
    }
    if options.dry_run {
        return Ok(false);
    }
    if options.yes {
        return Ok(true);
    }
    let Some(mut terminal) = Terminal::open(false) else {
        let how = "give --yes to write it, or --dry-run to see only what would change";
        return Err(UsageError::new(format!(
            "nothing was written, since there is no terminal to ask at: {how}"
        ))
        .into());
    };
    match terminal.confirm(question) {
        Ok(true) => Ok(true),
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
    join_words(&words)
}

fn said(text: &str) -> Result<ExitReason> {
    print(text.as_bytes()).context("cannot write to standard output")?;
    Ok(ExitReason::Done)
}
