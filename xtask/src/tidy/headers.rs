//! Every Rust file opens by saying what it is for.

use super::Violation;
use super::source::Source;

pub(crate) fn check(source: &Source) -> Option<Violation> {
    let first = source.lines.first().map_or("", |line| line.text.as_str());
    let says_something = first.strip_prefix("//! ").is_some_and(|text| !text.trim().is_empty());
    (!says_something)
        .then(|| Violation::new(&source.path, 1, "the first line must be `//! ` and what this file is for"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_counts() {
        let is_right = |text| check(&Source::new("a.rs", text)).is_none();
        assert!(is_right("//! Does this.\n\nuse std;\n"));
        assert!(!is_right("\n//! Too late.\n"));
        assert!(!is_right("//!\n//! Too late.\n"));
        assert!(!is_right("use std;\n"));
        assert!(!is_right(""));
    }
}
