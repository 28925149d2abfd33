//! The project's files, and which lines of them are tests.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// What git keeps, folders of what was built or downloaded, and the inputs that a fuzzer has written.
const SKIPPED: [&str; 6] = [".git", "target", "node_modules", "__pycache__", "corpus", "artifacts"];

/// A text file.
#[derive(Debug)]
pub(crate) struct Source {
    /// From the workspace's folder, with forward slashes.
    pub(crate) path: String,
    pub(crate) lines: Vec<Line>,
}

#[derive(Debug)]
pub(crate) struct Line {
    /// Counted from 1.
    pub(crate) number: usize,
    pub(crate) text: String,
    /// Part of an item under `#[cfg(test)]`, or of a file that holds nothing but tests.
    pub(crate) in_test: bool,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let texts: Vec<&str> = text.lines().collect();
        let rust = is_rust(path);
        let tests = if rust { test_items(&texts) } else { Vec::new() };
        let all = rust && is_test_path(path);
        let lines = texts
            .iter()
            .enumerate()
            .map(|(index, text)| Line {
                number: index + 1,
                text: (*text).to_owned(),
                in_test: all || tests.iter().any(|(first, last)| (*first..=*last).contains(&index)),
            })
            .collect();
        Self { path: path.to_owned(), lines }
    }

    pub(crate) fn is_rust(&self) -> bool {
        is_rust(&self.path)
    }

    /// Whether one of the folders it lies in has this name.
    pub(crate) fn is_under(&self, folder: &str) -> bool {
        let mut parts = self.path.split('/');
        parts.next_back();
        parts.any(|part| part == folder)
    }

    /// The lines that are not tests.
    pub(crate) fn code(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| !line.in_test)
    }
}

impl Line {
    /// The line without its comment. A `//` inside a string counts as one too when a space stands before it.
    pub(crate) fn without_comment(&self) -> &str {
        if self.text.trim_start().starts_with("//") {
            return "";
        }
        self.text.split_once(" // ").map_or(self.text.as_str(), |(code, _)| code)
    }
}

fn is_rust(path: &str) -> bool {
    path.ends_with(".rs")
}

fn is_test_path(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.starts_with("tests/") || path.contains("/tests/")
}

/// First and last index of each item under a `cfg` that asks for `test`. Formatted code is assumed: an item ends with
/// the first line that closes at its own indentation.
fn test_items(lines: &[&str]) -> Vec<(usize, usize)> {
    let mut items = Vec::new();
    let mut index = 0;
    while index < lines.len() {
        let text = lines[index].trim_start();
        let asks_for_test = ["#[cfg(test)]", "#[cfg(all(test,", "#![cfg(test)]"];
        if !asks_for_test.iter().any(|attribute| text.starts_with(attribute)) {
            index += 1;
            continue;
        }
        let last = if text.starts_with("#!") { lines.len() - 1 } else { end_of_item(lines, index) };
        items.push((index, last));
        index = last + 1;
    }
    items
}

fn end_of_item(lines: &[&str], attribute: usize) -> usize {
    let indent = lines[attribute].len() - lines[attribute].trim_start().len();
    let closes = |line: &str| {
        let text = line.trim_start();
        line.len() - text.len() == indent && !text.starts_with("#[") && text.ends_with(['}', ';'])
    };
    let rest = lines.iter().skip(attribute + 1);
    rest.zip(attribute + 1..).find(|(line, _)| closes(line)).map_or(lines.len() - 1, |(_, index)| index)
}

/// Every text file below `root` that belongs to the project.
pub(crate) fn read_all(root: &Path) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    collect(root, "", &mut sources)?;
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

fn collect(folder: &Path, prefix: &str, sources: &mut Vec<Source>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        let kind = entry.file_type()?;
        // In a worktree `.git` is a file.
        if SKIPPED.contains(&name.as_str()) {
            continue;
        }
        if kind.is_dir() && !name.starts_with(".venv") {
            collect(&entry.path(), &path, sources)?;
        } else if kind.is_file() {
            // What is not UTF-8 is no text, and nothing here looks at it.
            if let Ok(text) = String::from_utf8(fs::read(entry.path())?) {
                sources.push(Source::new(&path, &text));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(path: &str, text: &str) -> Vec<usize> {
        Source::new(path, text).code().map(|line| line.number).collect()
    }

    #[test]
    fn a_test_module_ends_where_it_closes() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\nfn c() {}\n";
        assert_eq!(code("src/a.rs", text), [1, 7]);
    }

    #[test]
    fn a_test_module_in_another_file_is_one_line() {
        let text = "#[cfg(test)]\nmod tests;\n\nfn a() {}\n";
        assert_eq!(code("src/a.rs", text), [3, 4]);
    }

    #[test]
    fn further_attributes_belong_to_the_item() {
        let text = "impl A {\n    #[cfg(test)]\n    #[must_use]\n    fn b() {\n        c();\n    }\n    fn d() {}\n}\n";
        assert_eq!(code("src/a.rs", text), [1, 7, 8]);
    }

    #[test]
    fn test_files_are_tests_throughout() {
        assert!(code("crates/a/tests/b.rs", "fn a() {}\n").is_empty());
        assert!(code("crates/a/src/b/tests.rs", "fn a() {}\n").is_empty());
        assert_eq!(code("crates/a/src/contests.rs", "fn a() {}\n"), [1]);
    }

    #[test]
    fn a_folder_is_no_file() {
        let source = Source::new("crates/a/examples/b.rs", "");
        assert!(source.is_under("examples"));
        assert!(!source.is_under("b.rs"));
    }

    #[test]
    fn comments_are_left_out() {
        let source = Source::new("a.rs", "/// b\nlet url = \"http://c\"; // d\n");
        let texts: Vec<_> = source.lines.iter().map(Line::without_comment).collect();
        assert_eq!(texts, ["", "let url = \"http://c\";"]);
    }
}
