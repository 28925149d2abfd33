//! What the scripts of shells hand over, the words of a line and the beginning of the last one, and what they get.

use std::fmt::Write;

use clap_complete::Shell;

use super::{Candidate, Candidates};
use crate::args::CompletionShell;

/// A line up to the cursor.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TypedLine {
    /// The words before the last one, without the program.
    pub(super) words: Vec<String>,
    /// As much as there is of the last one, without quotes.
    pub(super) last: String,
    /// How the shell replaces it.
    pub(super) replaced: Replaced,
}

/// The part of the last word that a shell replaces.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Replaced {
    /// Bytes of the last word, without quotes, that stay.
    pub(super) kept: usize,
    /// The quotation mark that is open.
    pub(super) quote: Option<char>,
}

impl TypedLine {
    /// A line whose words a shell has taken apart, the program first.
    pub(super) fn of_words(words: &[String]) -> Option<Self> {
        let (last, words) = words.get(1..)?.split_last()?;
        Some(Self { words: words.to_vec(), last: last.clone(), replaced: Replaced::default() })
    }
}

/// What bash knows: the characters at which it takes words apart, which are not only spaces, and the line up to the
/// cursor.
pub(super) fn bash_line(words: &[String]) -> Option<TypedLine> {
    let [breaks, line] = words else { return None };
    let mut scanner = Scanner { breaks, words: Vec::new(), word: None };
    scanner.read(line);
    let current = scanner.word.unwrap_or_default();
    // Variables may be set before the program.
    let is_variable = |word: &&String| {
        word.split_once('=')
            .is_some_and(|(name, _)| name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()))
    };
    let program = scanner.words.iter().take_while(is_variable).count();
    let words = scanner.words.get(program + 1..)?.to_vec();
    let replaced = Replaced { kept: current.kept, quote: current.quote };
    Some(TypedLine { words, last: current.text, replaced })
}

#[derive(Debug, Default)]
struct Word {
    text: String,
    kept: usize,
    quote: Option<char>,
}

struct Scanner<'a> {
    breaks: &'a str,
    words: Vec<String>,
    word: Option<Word>,
}

impl Scanner<'_> {
    fn read(&mut self, line: &str) {
        let mut rest = line.chars();
        while let Some(c) = rest.next() {
            let quote = self.word.as_ref().and_then(|word| word.quote);
            match (quote, c) {
                (Some(open), c) if c == open => self.current().quote = None,
                (Some('"'), '\\') => match rest.next() {
                    Some(c @ ('"' | '\\' | '$' | '`')) => self.current().text.push(c),
                    Some(c) => self.current().text.extend(['\\', c]),
                    None => {}
                },
                (Some(_), c) => self.current().text.push(c),
                (None, '\'' | '"') => {
                    let word = self.current();
                    word.quote = Some(c);
                    word.kept = word.text.len();
                }
                (None, '\\') => {
                    if let Some(c) = rest.next() {
                        self.current().text.push(c);
                    }
                }
                (None, c) if c.is_whitespace() => self.words.extend(self.word.take().map(|word| word.text)),
                (None, c) => {
                    let is_break = self.breaks.contains(c);
                    let word = self.current();
                    word.text.push(c);
                    if is_break {
                        word.kept = word.text.len();
                    }
                }
            }
        }
    }

    fn current(&mut self) -> &mut Word {
        self.word.get_or_insert_default()
    }
}

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
pub(super) fn answer(shell: CompletionShell, line: &TypedLine, found: &Candidates) -> String {
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
fn for_bash(line: &TypedLine, word: &Candidate) -> Option<String> {
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
    use super::*;

    /// What bash has in COMP_WORDBREAKS.
    const BREAKS: &str = " \t\n\"'@><=;|&(:";

    #[test]
    fn lines_of_bash_are_taken_apart() {
        for (line, words, last, kept, quote) in [
            ("refmcp ", &[][..], "", 0, None),
            ("refmcp ca", &[], "ca", 0, None),
            ("A=1 refmcp ca", &[], "ca", 0, None),
            ("refmcp call http://h:1/m", &["call"], "http://h:1/m", 9, None),
            ("refmcp call a t key=", &["call", "a", "t"], "key=", 4, None),
            ("refmcp call a t key=va", &["call", "a", "t"], "key=va", 4, None),
            ("refmcp call 'a b' t", &["call", "a b"], "t", 0, None),
            ("refmcp call 'a b", &["call"], "a b", 0, Some('\'')),
            ("refmcp call a t key=\"v:x", &["call", "a", "t"], "key=v:x", 4, Some('"')),
            ("refmcp call a\\ b\\", &["call"], "a b", 0, None),
            ("refmcp call \"a\\\"b\" ", &["call", "a\"b"], "", 0, None),
        ] {
            let found = bash_line(&[BREAKS.to_owned(), line.to_owned()]).unwrap();
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            let replaced = Replaced { kept, quote };
            assert_eq!(found, TypedLine { words, last: last.to_owned(), replaced }, "{line}");
        }
        for other in [&[][..], &["x"], &[BREAKS, ""], &[BREAKS, "ref"], &["a", "b", "c"]] {
            let words: Vec<String> = other.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(bash_line(&words), None, "{other:?}");
        }
    }

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
