//! The project stands for itself: its files name no place of the machine it was written on, and no host that happens
//! to serve a package.

use super::Violation;
use super::source::Source;

/// What must not be named, in pieces, so that this file does not name it either.
const FORBIDDEN: [(&str, &str); 9] = [
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("sha", "red/"), "a folder outside the project"),
    (concat!("registry.npm", "js.org"), "the host of a registry"),
    (concat!("registry.yarn", "pkg.com"), "the host of a registry"),
    (concat!("pypi", ".org"), "the host of a registry"),
    (concat!("files.python", "hosted.org"), "the host of a registry"),
    (concat!("index.crates", ".io"), "the host of a registry"),
    (concat!("static.crates", ".io"), "the host of a registry"),
    (concat!("deb.deb", "ian.org"), "the host of a registry"),
];

/// The folder of the specification's schemas, which lies beside the project and is read by tests.
const SCHEMAS: &str = concat!("sha", "red/spec/schema");

pub(crate) fn check(source: &Source) -> Vec<Violation> {
    let mut violations = Vec::new();
    for line in &source.lines {
        for (word, what) in FORBIDDEN {
            if names(&line.text, word) {
                violations.push(Violation::new(&source.path, line.number, format!("names {what}: {word}")));
            }
        }
    }
    violations
}

/// Whether the word is there, at a word's beginning, and not as the start of what may be named.
fn names(text: &str, word: &str) -> bool {
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(char::is_alphanumeric) && !text[at..].starts_with(SCHEMAS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> bool {
        !check(&Source::new("a.md", text)).is_empty()
    }

    #[test]
    fn every_word_is_found() {
        for (word, _) in FORBIDDEN {
            assert!(wrong(&format!("see {word}x")), "{word}");
        }
    }

    #[test]
    fn parts_of_words_and_the_schemas_are_fine() {
        assert!(!wrong(concat!("fire", "wo", "rk/s and home", "wo", "rk/")));
        assert!(!wrong(concat!("../sha", "red/spec/schema/a.json")));
        assert!(wrong(concat!("../sha", "red/spec/other")));
    }

    #[test]
    fn what_a_lock_file_says_by_itself_is_fine() {
        assert!(!wrong("source = \"registry+https://github.com/rust-lang/crates.io-index\""));
    }
}
