//! Help beyond the descriptions of options: examples, the manual page, completion scripts.

mod completion;
mod manual;

pub(super) use completion::LineArgs;
pub(crate) use completion::{CompletionShell, definition, parse_shared_options, print_completions};
pub(crate) use manual::print_manual;

/// The examples of every command, each behind a line `# COMMAND`. A test parses every one of them.
const EXAMPLES: &str = include_str!("examples.txt");

/// What the help of a command shows below its options.
pub(super) fn examples(command: &str) -> &'static str {
    let section = EXAMPLES.split_once(&format!("# {command}\n")).map_or("", |(_, section)| section);
    section.split("\n\n#").next().unwrap_or(section).trim_end()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::{Command, CommandFactory};

    use crate::args::{Args, parse_from, split_words};

    /// Every command with its path, the program first.
    fn commands(command: &Command, path: &str, all: &mut Vec<(String, Command)>) {
        let path = format!("{path} {}", command.get_name()).trim_start().to_owned();
        let shown = |sub: &&Command| sub.get_name() != "help" && !sub.is_hide_set();
        for sub in command.get_subcommands().filter(shown) {
            commands(sub, &path, all);
        }
        all.push((path, command.clone()));
    }

    /// The words that are ours in an example's line, which may have other commands and files around it.
    fn ours(line: &str) -> String {
        let line = line.strip_prefix("source <(").and_then(|line| line.strip_suffix(')')).unwrap_or(line);
        let line =
            line.rsplit_once("| refmcp ").map_or(line.to_owned(), |(_, rest)| format!("refmcp {rest}"));
        let end = [" > ", " | "].iter().filter_map(|end| line.find(end)).min().unwrap_or(line.len());
        line[..end].to_owned()
    }

    #[test]
    fn every_command_has_examples_that_can_be_typed() {
        let mut built = Args::command();
        built.build();
        let mut all = Vec::new();
        commands(&built, "", &mut all);
        assert!(all.len() > 20, "{}", all.len());
        for (path, command) in all {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let (_, examples) = help.split_once("Examples:\n").unwrap_or_else(|| panic!("{path} has none"));
            let lines: Vec<&str> =
                examples.lines().filter(|line| !line.starts_with("   ")).map(str::trim).collect();
            assert!((2..=6).contains(&lines.len()), "{path}: {lines:?}");
            for line in lines {
                let typed = ours(line);
                assert!(typed.contains(&path) || path == "refmcp", "{path}: {line}");
                let words = split_words(&typed).unwrap().into_iter().map(OsString::from);
                if let Err(error) = parse_from(words) {
                    panic!("{line}: {error}");
                }
            }
            assert!(help.lines().all(|line| line.chars().count() <= 120), "{path}: a line is too long");
        }
    }
}
