//! The scripts that make shells ask refmcp, and the candidates as each script reads them:
//!
//! - bash: words as they are to be inserted; those that are complete end in a space.
//! - zsh: `open` or `closed`, the word, and what is shown for it, with tabs between them.
//! - fish: the word and its description, with a tab between them.

use std::fmt::Write;

use clap_complete::Shell;

use super::line::Line;
use super::{Candidate, Candidates};
use crate::args::CompletionShell;

/// Tells the script to complete file names by the shell itself.
const FILES: &str = ":files";

/// The script of a shell; `None` for shells whose scripts do not ask refmcp.
pub(crate) fn script(shell: Shell) -> Option<&'static str> {
    match shell {
        Shell::Bash => Some(include_str!("scripts/refmcp.bash")),
        Shell::Zsh => Some(include_str!("scripts/_refmcp.zsh")),
        Shell::Fish => Some(include_str!("scripts/refmcp.fish")),
        _ => None,
    }
}

/// The candidates as the script of a shell reads them.
pub(super) fn answer(shell: CompletionShell, line: &Line, found: &Candidates) -> String {
    let mut answer = String::new();
    for word in &found.words {
        // Writing to a text does not fail.
        let _ = match shell {
            CompletionShell::Bash => match for_bash(line, word) {
                Some(word) => writeln!(answer, "{word}"),
                None => Ok(()),
            },
            CompletionShell::Zsh => {
                let kind = if word.is_open { "open" } else { "closed" };
                let separator = if word.description.is_empty() { "" } else { "  -- " };
                writeln!(answer, "{kind}\t{}\t{}{separator}{}", word.text, word.text, word.description)
            }
            CompletionShell::Fish => writeln!(answer, "{}\t{}", word.text, word.description),
        };
    }
    if found.files {
        let _ = writeln!(answer, "{FILES}");
    }
    answer
}

/// A word as bash inserts it, without the part that bash keeps. Names come from servers, so every character with a
/// meaning to the shell is quoted; a word that cannot be quoted is left out.
fn for_bash(line: &Line, word: &Candidate) -> Option<String> {
    let rest = word.text.get(line.replaced.kept..)?;
    let escaped = |special: &dyn Fn(char) -> bool| {
        rest.chars().fold(String::new(), |mut text, c| {
            if special(c) {
                text.push('\\');
            }
            text.push(c);
            text
        })
    };
    match line.replaced.quote {
        // Bash closes the quotes itself.
        Some('\'') => (!rest.contains('\'')).then(|| rest.to_owned()),
        Some(_) => (!rest.contains('!')).then(|| escaped(&|c| matches!(c, '"' | '\\' | '$' | '`'))),
        None => {
            let plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,".contains(c);
            let end = if word.is_open { "" } else { " " };
            Some(escaped(&|c| !plain(c)) + end)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::bash_line;
    use super::*;

    fn bash(typed: &str, word: &str) -> Option<String> {
        let words = [" \t\n\"'@><=;|&(:".to_owned(), format!("refmcp call a {typed}")];
        for_bash(&bash_line(&words).unwrap(), &Candidate::new(word, ""))
    }

    #[test]
    fn bash_gets_the_part_that_it_replaces() {
        assert_eq!(bash("s", "sum").unwrap(), "sum ");
        assert_eq!(bash("file:", "file:///a").unwrap(), "///a ");
        assert_eq!(bash("t key=", "key=a b").unwrap(), "a\\ b ");
        assert_eq!(bash("'a ", "a b").unwrap(), "a b");
    }

    #[test]
    fn names_of_servers_are_quoted() {
        assert_eq!(
            bash("", "$(rm -rf ~);`x`|&<>!").unwrap(),
            "\\$\\(rm\\ -rf\\ \\~\\)\\;\\`x\\`\\|\\&\\<\\>\\! "
        );
        assert_eq!(bash("\"", "$(x)`y`\"").unwrap(), "\\$(x)\\`y\\`\\\"");
        assert_eq!(bash("\"", "a!b"), None);
        assert_eq!(bash("'", "$(x)").unwrap(), "$(x)");
        assert_eq!(bash("'", "';x"), None);
    }
}
