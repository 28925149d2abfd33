//! Words that configuration files and servers know: names of servers, tools, prompts and arguments, addresses of
//! resources.

use super::definition::Position;
use super::line::Line;
use super::query::{self, Question};
use super::{Candidate, Candidates, names};
use crate::args::{CompletionReference, ListKind, Target};

/// Whether the values of an option are more than its definition says.
pub(super) fn is_known(option: &str) -> bool {
    matches!(option, "prompt" | "template" | "to" | "tool")
}

/// What files and servers have for this place; `None` where the definition says it all.
pub(super) fn candidates(position: &Position<'_>, line: &Line) -> Option<Candidates> {
    let last = line.last.as_str();
    if let Some((option, value)) = position.valued(last) {
        let prefix = last.get(..last.len() - value.len()).unwrap_or_default();
        return Some(option_values(position, option)?.after(prefix));
    }
    let given = position.positionals.as_slice();
    let targets = || Some(names::servers(position, last));
    let ask = |target: &String, question: Question<'_>| Some(query::ask(&position.values, target, &question));
    match (position.path.as_slice(), given) {
        (["list"], []) => {
            let mut found = names::servers(position, last);
            let kinds = ["tools", "resources", "templates", "prompts", "models", "all"];
            found.words.splice(0..0, kinds.map(|kind| Candidate::new(kind, "")));
            Some(found)
        }
        (["list"], [kind]) if ListKind::parse(kind).is_some() => targets(),
        (["list"], [kind, target, ..]) => match ListKind::parse(kind)? {
            ListKind::Tools => ask(target, Question::Tools),
            ListKind::Resources => ask(target, Question::Resources),
            ListKind::Templates => ask(target, Question::Templates),
            ListKind::Prompts => ask(target, Question::Prompts),
            ListKind::Models | ListKind::All => Some(Candidates::default()),
        },
        (["models"], []) => {
            let mut found = position.declared();
            found.words.extend(names::servers(position, last).words);
            Some(found)
        }
        (["models", "list" | "select"] | ["metadata"], []) => targets(),
        (["call" | "read" | "prompt" | "complete" | "watch" | "info" | "raw"], [])
        | (["shell"], _)
        | (["auth", "login" | "status" | "logout"] | ["trust", "allow" | "disable" | "revoke"], []) => {
            targets()
        }
        (["call"], [target]) => ask(target, Question::Tools),
        (["call"], [target, tool, given @ ..]) => ask(target, Question::ToolArguments { tool, given, last }),
        (["read"], [target]) | (["watch"], [target, ..]) => ask(target, Question::Resources),
        (["prompt"], [target]) => ask(target, Question::Prompts),
        (["prompt"], [target, name, given @ ..]) => {
            let of = CompletionReference::Prompt(name.clone());
            ask(target, Question::Arguments { of: &of, given, last })
        }
        (["complete"], [target]) => {
            let value = |id| position.value(id).map(str::to_owned);
            let of = value("prompt").map(CompletionReference::Prompt);
            let of = of.or_else(|| value("template").map(CompletionReference::Template))?;
            ask(target, Question::Arguments { of: &of, given: &[], last })
        }
        (["list" | "read" | "complete" | "info" | "raw"], _) => Some(Candidates::default()),
        _ => None,
    }
}

fn option_values(position: &Position<'_>, option: &str) -> Option<Candidates> {
    // The server may be named later on the line, and then it is not known yet.
    let ask = |question: Question<'_>| match position.positionals.first() {
        Some(target) => query::ask(&position.values, target, &question),
        None => Candidates::default(),
    };
    Some(match (position.path.as_slice(), option) {
        (["complete"], "prompt") => ask(Question::Prompts),
        (["complete"], "template") => ask(Question::Templates),
        (["trust", _], "tool") => ask(Question::Tools),
        (["bridge"], "to") => names::servers(position, ""),
        _ => return Some(Candidates::default()),
    })
}

/// Whether a word means a server that can be looked for.
pub(super) fn is_target(word: &str) -> Option<Target> {
    Target::parse(word).ok()
}
