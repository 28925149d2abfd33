//! Conversations as text files: written by hand, run under several revisions, updated by one command.
//!
//! ```text
//! # A comment.
//! revisions: all                    which revisions the conversations below run under: all, session, stateless,
//!                                   DATE, DATE+ (from it on), ..DATE (up to it), DATE..DATE, several with commas
//! capabilities: {"roots":{}}        what the client declares, in its handshake or with each request
//! policy: lenient                   any other setting, for the function that makes the server
//!
//! == a name is echoed               begins a conversation; settings right below it hold for it alone
//! $OPEN                             the handshake where there is one
//! -> {"id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"},$META}}
//! <- {"id":1,"result":{"content":[{"type":"text","text":"hi"}],$DONE}}
//! ```
//!
//! | line | what it does |
//! |---|---|
//! | `-> {…}` | the client sends this; `"jsonrpc":"2.0"` is added |
//! | `=> …` | the client sends exactly this text |
//! | `wait 30s` | the clock moves |
//! | `do …` | tells the server's side something, in words that the [`Endpoint`] knows |
//! | `<- {…}` | the server sends this next; `"jsonrpc":"2.0"` is understood |
//! | `<- nothing` | the server sends nothing |
//! | `see …` | something else happened on the server's side, in the [`Endpoint`]'s words |
//!
//! All but comments may begin with the revisions they hold for: `<- [..DATE] {…}`. Lines that begin with a
//! space continue the line before. What the server sends and no line expects is an error.
//!
//! | in a message | what it stands for |
//! |---|---|
//! | `$META`, `$META{…}` | the `_meta` of a request: what a request without a session must have, and the members given |
//! | `$DONE`, `$DONE{…}` | what every result of a revision without sessions has, and the members of `_meta` given |
//! | `$CACHED` | `$DONE` and the cache hints |
//! | `$REVISION` | the revision of this run |
//! | `"$name"` | in `<-`, keeps the value at its first use and expects it afterwards; in `->`, the kept value |
//!
//! With the environment variable `UPDATE=1` the expectations that do not hold are rewritten with what came.

mod diff;
mod parse;
mod placeholders;
mod revisions;
mod run;
mod update;
mod write;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use refmcp_proto::revision::Revision;
use serde_json::Value;

pub use parse::{File, duration};
pub use revisions::RevisionSet;

/// The settings of a conversation that are not the transcript's own.
pub type Settings = BTreeMap<String, String>;

/// Something that takes text and gives texts: an engine, or a server at the other end of a pipe.
pub trait Endpoint {
    /// Takes what the client sends.
    fn send(&mut self, text: &str);

    /// The messages that the server has sent since the last time.
    fn receive(&mut self) -> Vec<String>;

    /// Moves the clock.
    fn advance(&mut self, by: Duration);

    /// Does what a line `do …` says.
    fn act(&mut self, order: &str) -> Result<(), String> {
        Err(format!("unknown action: {order}"))
    }

    /// What happened since the last time and was no message.
    fn events(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// What is wrong with the messages since the last time, where they are checked.
    fn faults(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// Makes the server for a conversation under a revision.
pub type Start<'a> = &'a mut dyn FnMut(&Settings, Revision) -> Result<Box<dyn Endpoint>, String>;

/// Runs every transcript (`*.txt`) of a folder; gives how many conversations were held, or what went wrong.
///
/// `server_info` is what the server calls itself.
pub fn run_folder(folder: &Path, server_info: &Value, start: Start<'_>) -> Result<usize, String> {
    let update = std::env::var_os("UPDATE").is_some_and(|value| value == "1");
    let (mut held, mut problems) = (0, Vec::new());
    for path in transcripts(folder)? {
        match run_file(&path, server_info, update, start) {
            Ok(count) => held += count,
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(held) } else { Err(problems.join("\n")) }
}

fn run_file(path: &Path, server_info: &Value, update: bool, start: Start<'_>) -> Result<usize, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let file = File::parse(&text).map_err(|why| format!("{name}:{why}"))?;
    let runs = run::run(&file, server_info, start);
    let problems: Vec<String> = runs.iter().filter_map(|run| run.problem(&file, &name)).collect();
    if problems.is_empty() {
        return Ok(runs.len());
    }
    if update {
        let updated = update::updated(&file, &runs);
        fs::write(path, updated).map_err(|error| format!("{}: {error}", path.display()))?;
        let broken: Vec<String> = runs.iter().filter_map(|run| run.beyond_update(&file, &name)).collect();
        return if broken.is_empty() { Ok(runs.len()) } else { Err(broken.join("\n")) };
    }
    Err(problems.join("\n"))
}

fn transcripts(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "txt")).collect();
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests;
