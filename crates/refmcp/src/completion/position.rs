//! The position that a line has reached in the definition of the command line: options, their values, commands.

use clap::{Arg, ArgAction, Command};

use super::{Candidate, Candidates, DESCRIPTION};
use crate::ui::text::{first_line, truncate};

/// The position that a line has reached.
pub(super) struct Position<'a> {
    /// The command so far.
    command: &'a Command,
    /// Its names.
    pub(super) path: Vec<&'a str>,
    /// The words that are neither options nor their values.
    pub(super) positionals: Vec<String>,
    /// Options and their values.
    pub(super) values: Vec<(&'a str, String)>,
    /// The option whose value is next.
    pending: Option<&'a Arg>,
    /// Whether the line is past `--`, in the command of a server.
    pub(super) is_in_server_command: bool,
}

impl<'a> Position<'a> {
    pub(super) fn parse(command: &'a Command, words: &[String]) -> Self {
        let mut position = Self {
            command,
            path: Vec::new(),
            positionals: Vec::new(),
            values: Vec::new(),
            pending: None,
            is_in_server_command: false,
        };
        words.iter().for_each(|word| position.read(word));
        position
    }

    fn read(&mut self, word: &str) {
        if self.is_in_server_command {
            return;
        }
        if let Some(option) = self.pending.take() {
            self.values.push((option.get_id().as_str(), word.to_owned()));
        } else if word == "--" {
            self.is_in_server_command = true;
        } else if let Some(long) = word.strip_prefix("--") {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let option = self.command.get_arguments().find(|option| option.get_long() == Some(name));
            self.take(option, value);
        } else if let Some(cluster) = word.strip_prefix('-').filter(|cluster| !cluster.is_empty()) {
            self.read_cluster(cluster);
        } else if let Some(sub) = self.command.find_subcommand(word).filter(|_| self.positionals.is_empty()) {
            self.command = sub;
            self.path.push(sub.get_name());
        } else {
            self.positionals.push(word.to_owned());
        }
    }

    /// `-vx` is `-v -x`; `-oVALUE` and `-o=VALUE` are `-o VALUE`.
    fn read_cluster(&mut self, cluster: &str) {
        for (at, letter) in cluster.char_indices() {
            let option = self.command.get_arguments().find(|option| option.get_short() == Some(letter));
            let rest = cluster.get(at + letter.len_utf8()..).unwrap_or_default();
            let takes_value = option.is_some_and(takes_value);
            self.take(
                option,
                Some(rest.strip_prefix('=').unwrap_or(rest)).filter(|rest| takes_value && !rest.is_empty()),
            );
            if takes_value {
                return;
            }
        }
    }

    fn take(&mut self, option: Option<&'a Arg>, value: Option<&str>) {
        let Some(option) = option.filter(|option| takes_value(option)) else { return };
        match value {
            Some(value) => self.values.push((option.get_id().as_str(), value.to_owned())),
            None => self.pending = Some(option),
        }
    }

    /// The value of an option.
    pub(super) fn value(&self, id: &str) -> Option<&str> {
        self.values.iter().find(|(known, _)| *known == id).map(|(_, value)| value.as_str())
    }

    /// The option whose value is to be completed, and the beginning of that value.
    pub(super) fn valued<'b>(&self, last: &'b str) -> Option<(&'a str, &'b str)> {
        if let Some(option) = self.pending {
            return Some((option.get_id().as_str(), last));
        }
        let (name, value) = last.strip_prefix("--")?.split_once('=')?;
        let option = self.command.get_arguments().find(|option| option.get_long() == Some(name))?;
        Some((option.get_id().as_str(), value))
    }

    /// Options and their values, where the last word is one.
    pub(super) fn options(&self, last: &str) -> Option<Candidates> {
        if self.is_in_server_command {
            return None;
        }
        if let Some((id, value)) = self.valued(last) {
            // A server has to be asked for some values.
            if super::values::is_known(id) {
                return None;
            }
            let option = self.command.get_arguments().find(|option| option.get_id() == id)?;
            let prefix = last.get(..last.len() - value.len()).unwrap_or_default();
            return Some(declared_values(option).after(prefix));
        }
        if !last.starts_with('-') {
            return None;
        }
        let shown = self.command.get_arguments().filter(|option| !option.is_hide_set());
        Some(Candidates::words(shown.filter_map(|option| {
            let help = option.get_help().map(ToString::to_string).unwrap_or_default();
            Some(Candidate::new(format!("--{}", option.get_long()?), summary(&help)))
        })))
    }

    /// What the definition alone says: names of commands, or the values of a word.
    pub(super) fn declared(&self) -> Candidates {
        if self.command.has_subcommands() && self.positionals.is_empty() {
            let shown = self.command.get_subcommands().filter(|sub| !sub.is_hide_set());
            return Candidates::words(shown.map(|sub| {
                let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
                Candidate::new(sub.get_name(), summary(&about))
            }));
        }
        let mut positionals = self.command.get_positionals().filter(|positional| !positional.is_last_set());
        positionals.nth(self.positionals.len()).map(declared_values).unwrap_or_default()
    }
}

/// The first line of a description, short enough to stand beside a word.
pub(super) fn summary(text: &str) -> String {
    truncate(&first_line(text), DESCRIPTION).into_owned()
}

fn takes_value(option: &Arg) -> bool {
    matches!(option.get_action(), ArgAction::Set | ArgAction::Append)
}

fn declared_values(option: &Arg) -> Candidates {
    let possible = option.get_possible_values();
    if !possible.is_empty() {
        return Candidates::words(possible.iter().filter(|value| !value.is_hide_set()).map(|value| {
            let help = value.get_help().map(ToString::to_string).unwrap_or_default();
            Candidate::new(value.get_name(), summary(&help))
        }));
    }
    let names = option.get_value_names().unwrap_or_default();
    let is_file = names.iter().any(|name| matches!(name.as_str(), "FILE" | "DIR" | "PATH"));
    if is_file { Candidates::files() } else { Candidates::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(found: &Candidates) -> Vec<&str> {
        found.words.iter().map(|word| word.text.as_str()).collect()
    }

    fn at<T>(words: &[&str], look: impl FnOnce(&Position<'_>) -> T) -> T {
        let command = crate::args::definition();
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        look(&Position::parse(&command, &words))
    }

    #[test]
    fn options_are_told_from_words() {
        let line =
            ["--log", "info", "call", "-yH", "A: b", "--config=f", "-ojson", "a", "-e=K=v", "t", "x=1"];
        at(&line, |position| {
            assert_eq!(position.path, ["call"]);
            assert_eq!(position.positionals, ["a", "t", "x=1"]);
            let values: Vec<_> = position.values.iter().map(|(id, value)| (*id, value.as_str())).collect();
            let expected =
                [("log", "info"), ("headers", "A: b"), ("config", "f"), ("output", "json"), ("env", "K=v")];
            assert_eq!(values, expected);
        });
        at(&["call", "a", "--", "call", "--config"], |position| {
            assert!(position.is_in_server_command && position.options("--").is_none());
        });
    }

    #[test]
    fn what_is_declared_is_offered() {
        let commands = at(&[], |position| texts(&position.declared()).join(" "));
        assert!(
            commands.contains("call") && commands.contains("install") && !commands.contains("__complete"),
            "{commands}"
        );
        assert!(at(&["trust"], |position| texts(&position.declared()).contains(&"allow")));
        let hosts = at(&["install"], |position| texts(&position.declared()).join(" "));
        assert_eq!(hosts, "vscode claude-desktop claude-code cursor");
        let options = at(&["call"], |position| texts(&position.options("--he").unwrap()).join(" "));
        assert!(options.contains("--header") && options.contains("--log-format"), "{options}");
        let values = |words: &[&str], last: &str| at(words, |position| position.options(last).unwrap());
        assert_eq!(texts(&values(&["call", "-o"], "")), ["text", "json", "jsonl"]);
        assert_eq!(
            texts(&values(&["call"], "--output=j")),
            ["--output=text", "--output=json", "--output=jsonl"]
        );
        assert!(values(&["call", "--config"], "").files);
        assert_eq!(values(&["call", "--timeout"], ""), Candidates::default());
    }
}
