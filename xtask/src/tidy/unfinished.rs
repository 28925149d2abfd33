//! Nothing unfinished is left behind: no skipped test, no placeholder, no debugging output.

use super::Violation;
use super::source::Source;

const MACROS: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// Tests are looked at like the rest.
pub(crate) fn check(source: &Source) -> Vec<Violation> {
    let mut violations = Vec::new();
    for line in &source.lines {
        let text = line.without_comment();
        let attribute = text.trim_start().strip_prefix("#[").unwrap_or_default();
        let skips = attribute.strip_prefix("ignore").is_some_and(|rest| rest.starts_with([']', ' ', '=']));
        if skips {
            violations.push(Violation::new(
                &source.path,
                line.number,
                "a test that is not run tests nothing",
            ));
        }
        if let Some(name) = MACROS.into_iter().find(|name| calls(text, name)) {
            violations.push(Violation::new(&source.path, line.number, format!("`{name}!` must not stay")));
        }
    }
    violations
}

/// Whether the macro of this name is called, and not one whose name only ends like it.
fn calls(text: &str, name: &str) -> bool {
    let call = format!("{name}!(");
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(&call).any(|(at, _)| !text[..at].ends_with(part_of_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> usize {
        check(&Source::new("src/a.rs", text)).len()
    }

    #[test]
    fn macros_and_skipped_tests_are_found() {
        for name in MACROS {
            assert_eq!(wrong(&format!("    {name}!()")), 1, "{name}");
            assert_eq!(wrong(&format!("    my_{name}!()")), 0, "{name}");
            assert_eq!(wrong(&format!("    // {name}!()")), 0, "{name}");
        }
        assert_eq!(wrong("    #[ignore]"), 1);
        assert_eq!(wrong("#[ignore = \"slow\"]"), 1);
        assert_eq!(wrong("#[ignored]"), 0);
    }
}
