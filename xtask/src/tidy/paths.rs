//! Every path that ARCHITECTURE.md and CONTRIBUTING.md name exists.

use super::Violation;
use super::source::Source;

const DOCUMENTS: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];

/// How a path of the project begins. A path in a crate may leave out `crates/`.
const FOLDERS: [&str; 10] = [
    "bench/", "crates/", "deploy/", "docs/", "fuzz/", "interop/", "refmcp-", "refmcp/", "runners/", "xtask/",
];

/// Checks one document against the files of the project.
pub(crate) fn check(document: &Source, files: &[Source]) -> Vec<Violation> {
    if !DOCUMENTS.contains(&document.path.as_str()) {
        return Vec::new();
    }
    let mut violations = Vec::new();
    for line in &document.lines {
        for path in line.text.split(|sign: char| !is_in_path(sign)).filter(|word| is_path(word)) {
            if !exists(path.trim_end_matches('.'), files) {
                violations.push(Violation::new(&document.path, line.number, format!("there is no {path}")));
            }
        }
    }
    violations
}

fn is_in_path(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || "_-./*".contains(sign)
}

/// Patterns are no paths.
fn is_path(word: &str) -> bool {
    word.contains('/') && !word.contains('*') && FOLDERS.iter().any(|folder| word.starts_with(folder))
}

fn exists(path: &str, files: &[Source]) -> bool {
    let is_there = |path: &str| {
        let folder = format!("{}/", path.trim_end_matches('/'));
        files.iter().any(|file| file.path == path || file.path.starts_with(&folder))
    };
    is_there(path) || is_there(&format!("crates/{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_folders_are_found() {
        let files = [Source::new("crates/refmcp-a/src/b.rs", ""), Source::new("xtask/src/main.rs", "")];
        let wrong = |text: &str| check(&Source::new("ARCHITECTURE.md", text), &files).len();
        for right in [
            "`crates/refmcp-a/src/b.rs`",
            "see refmcp-a/src/.",
            "(xtask/src)",
            "crates/*/c.rs",
            "a/b",
            "refmcp-a",
        ] {
            assert_eq!(wrong(right), 0, "{right}");
        }
        assert_eq!(wrong("`refmcp-a/src/c.rs` and xtask/src/tidy/"), 2);
        assert!(check(&Source::new("README.md", "xtask/none.rs"), &files).is_empty());
    }
}
