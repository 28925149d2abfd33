//! No file has a name that says nothing.

use super::Violation;
use super::source::Source;

const EMPTY: [&str; 4] = ["utils", "common", "helpers", "misc"];

pub(crate) fn check(source: &Source) -> Option<Violation> {
    let stem = source.path.strip_suffix("/mod.rs").or_else(|| source.path.strip_suffix(".rs"))?;
    let name = stem.rsplit('/').next()?;
    EMPTY.contains(&name).then(|| {
        Violation::new(&source.path, 1, format!("`{name}` says nothing: name the file after what it holds"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_module_folders_are_looked_at() {
        let is_right = |path| check(&Source::new(path, "")).is_none();
        assert!(!is_right("crates/a/src/utils.rs"));
        assert!(!is_right("crates/a/src/common/mod.rs"));
        assert!(is_right("crates/a/src/mod.rs"));
        assert!(is_right("crates/a/src/commons.rs"));
        assert!(is_right("crates/a/src/common/frames.rs"));
    }
}
