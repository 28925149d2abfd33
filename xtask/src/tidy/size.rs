//! A file is short enough to be read in one sitting.

use super::Violation;
use super::source::Source;

/// Lines that are not tests.
const LIMIT: usize = 500;

/// The scenarios of foreign clients are tests too.
const SCENARIOS: &str = "interop/";

pub(crate) fn check(source: &Source) -> Option<Violation> {
    if source.path.starts_with(SCENARIOS) {
        return None;
    }
    let lines = source.code().count();
    (lines > LIMIT).then(|| {
        let last = source.code().last().map_or(1, |line| line.number);
        Violation::new(
            &source.path,
            last,
            format!("{lines} lines without tests, {LIMIT} at most: split the file"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_do_not_count() {
        let long = "    a();\n".repeat(LIMIT);
        assert!(check(&Source::new("src/a.rs", &long)).is_none());
        assert!(
            check(&Source::new("src/a.rs", &format!("{long}#[cfg(test)]\nmod tests {{\n{long}}}\n")))
                .is_none()
        );
        assert!(check(&Source::new("src/a.rs", &format!("{long}b();\n"))).is_some());
        assert!(check(&Source::new("interop/a/src/main.rs", &format!("{long}b();\n"))).is_none());
        assert!(check(&Source::new("tests/a.rs", &format!("{long}b();\n"))).is_none());
    }
}
