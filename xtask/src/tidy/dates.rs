//! Only `revision/` knows dates: elsewhere code asks what holds, not which revision it is.

use refmcp_runners::REVISIONS;

use super::Violation;
use super::source::Source;

/// The one folder.
const HOME: &str = "crates/refmcp-proto/src/revision/";

/// Tools beside the product.
const FREE: [&str; 4] = ["bench/", "interop/", "runners/", "xtask/"];

/// Comments may name dates; they decide nothing.
pub(crate) fn check(source: &Source) -> Vec<Violation> {
    let free = source.path.starts_with(HOME)
        || FREE.iter().any(|folder| source.path.starts_with(folder))
        || ["examples", "benches"].iter().any(|folder| source.is_under(folder));
    if free {
        return Vec::new();
    }
    let mut violations = Vec::new();
    for line in source.code() {
        let text = line.without_comment();
        for date in REVISIONS {
            let variant = format!("V{}", date.replace('-', "_"));
            if let Some(name) = [date, variant.as_str()].into_iter().find(|name| text.contains(name)) {
                let what = format!("{name} is named outside {HOME}: ask `Rules` what holds instead");
                violations.push(Violation::new(&source.path, line.number, what));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Source::new(path, text)).into_iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn a_date_in_code_is_found_as_text_and_as_variant() {
        let text =
            "//! One.\nlet a = \"2025-06-18\";\nif b == Revision::V2026_07_28 {}\nlet c = \"2024-02-29\";\n";
        assert_eq!(lines("crates/refmcp-server/src/a.rs", text), [2, 3]);
    }

    #[test]
    fn comments_and_tests_may_name_dates() {
        let text =
            "//! 2025-06-18\na(); // since 2025-06-18\n#[cfg(test)]\nmod tests {\n    \"2025-06-18\"\n}\n";
        assert_eq!(lines("crates/refmcp-server/src/a.rs", text), [0; 0]);
        assert_eq!(lines("crates/refmcp-server/tests/a.rs", "\"2025-06-18\""), [0; 0]);
        assert_eq!(lines("crates/refmcp-server/src/a/tests.rs", "\"2025-06-18\""), [0; 0]);
    }

    #[test]
    fn their_home_and_the_tools_may_too() {
        for path in
            ["crates/refmcp-proto/src/revision/mod.rs", "interop/rmcp/src/main.rs", "crates/a/examples/b.rs"]
        {
            assert_eq!(lines(path, "\"2025-06-18\""), [0; 0], "{path}");
        }
        assert_eq!(lines("crates/refmcp-proto/src/revisions.rs", "\"2025-06-18\""), [1]);
    }
}
