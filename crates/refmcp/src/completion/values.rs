//! Values that configuration files and servers know: names of servers, tools, prompts and arguments, URIs of resources.

use std::path::Path;

use super::line::Line;
use super::position::{Position, summary};
use super::query::{self, Query};
use super::{Candidate, Candidates};
use crate::args::{CompletionReference, ListKind};
use crate::config;
use crate::ui::redact;

/// Whether values of an option come from files or servers.
pub(super) fn is_known(option: &str) -> bool {
    matches!(option, "model" | "prompt" | "template" | "to" | "tool")
}

/// Candidates from files and servers; `None` where the definition of the command line says it all.
pub(super) fn candidates(position: &Position<'_>, line: &Line) -> Option<Candidates> {
    let last = line.last.as_str();
    if let Some((option, value)) = position.valued(last) {
        let prefix = last.get(..last.len() - value.len()).unwrap_or_default();
        return Some(option_values(position, option)?.after(prefix));
    }
    let given = position.positionals.as_slice();
    let targets = || Some(servers(position, last));
    let ask = |target: &String, question: Query<'_>| Some(query::ask(&position.values, target, &question));
    match (position.path.as_slice(), given) {
        (["list"], []) => {
            let mut found = servers(position, last);
            found.words.splice(0..0, ListKind::NAMES.map(|kind| Candidate::new(kind, "")));
            Some(found)
        }
        (["list"], [kind]) if ListKind::parse(kind).is_some() => targets(),
        (["list"], [kind, target, ..]) => match ListKind::parse(kind)? {
            ListKind::Tools => ask(target, Query::Tools),
            ListKind::Resources => ask(target, Query::Resources),
            ListKind::Templates => ask(target, Query::Templates),
            ListKind::Prompts => ask(target, Query::Prompts),
            ListKind::Models => ask(target, Query::Models),
            ListKind::All => Some(Candidates::default()),
        },
        (["models"], []) => {
            let mut found = position.declared();
            found.words.extend(servers(position, last).words);
            Some(found)
        }
        (["models", "list" | "select"] | ["metadata"], []) => targets(),
        (["call" | "read" | "prompt" | "complete" | "watch" | "info" | "raw"], [])
        | (["shell"], _)
        | (["auth", "login" | "status" | "logout"] | ["trust", "allow" | "disable" | "revoke"], []) => {
            targets()
        }
        (["models", "select"], [target]) => ask(target, Query::Models),
        (["call"], [target]) => ask(target, Query::Tools),
        (["call"], [target, tool, given @ ..]) => ask(target, Query::ToolArguments { tool, given, last }),
        (["read"], [target]) | (["watch"], [target, ..]) => ask(target, Query::Resources),
        (["prompt"], [target]) => ask(target, Query::Prompts),
        (["prompt"], [target, name, given @ ..]) => {
            let of = CompletionReference::Prompt(name.clone());
            ask(target, Query::Arguments { of: &of, given, last })
        }
        (["complete"], [target]) => {
            let value = |id| position.value(id).map(str::to_owned);
            let of = value("prompt").map(CompletionReference::Prompt);
            let of = of.or_else(|| value("template").map(CompletionReference::Template))?;
            ask(target, Query::Arguments { of: &of, given: &[], last })
        }
        (["list" | "read" | "complete" | "info" | "raw"], _) => Some(Candidates::default()),
        _ => None,
    }
}

fn option_values(position: &Position<'_>, option: &str) -> Option<Candidates> {
    // The server may be named later on the line, and then it is not known yet.
    let ask = |question: Query<'_>| match position.positionals.first() {
        Some(target) => query::ask(&position.values, target, &question),
        None => Candidates::default(),
    };
    Some(match (position.path.as_slice(), option) {
        (["complete"], "prompt") => ask(Query::Prompts),
        (["complete"], "template") => ask(Query::Templates),
        (_, "model") => ask(Query::Models),
        (["trust", _], "tool") => ask(Query::Tools),
        (["bridge"], "to") => servers(position, ""),
        _ => return Some(Candidates::default()),
    })
}

/// The servers that the usual configuration files name, or the one of `--config`. Nothing is started.
fn servers(position: &Position<'_>, last: &str) -> Candidates {
    // A URL is not the beginning of a name.
    if last.contains("://") {
        return Candidates::default();
    }
    let known = match position.value("config") {
        Some(file) => config::read(Path::new(file)),
        None => config::read_all(&config::usual_files()),
    };
    let usable = known.servers.iter().filter(|entry| !entry.disabled);
    Candidates::words(
        usable.map(|entry| Candidate::new(&entry.name, summary(&redact::launch(&entry.launch)))),
    )
}
