//! What ARCHITECTURE.md promises and no compiler checks.
//!
//! One check, one file. Each takes what it looks at as a value and returns what is wrong, so each is tested without
//! touching a disk.

mod arrows;
mod comparisons;
mod dates;
mod headers;
mod licences;
mod names;
mod paths;
mod pronouns;
mod size;
mod source;
mod spdx;
mod tree;
mod unfinished;
mod words;

use std::fmt;
use std::fs;

use anyhow::{Context, Result, bail};
use refmcp_runners::shell;

use crate::metadata::{Metadata, Package};
use licences::Policy;

/// Something that is not as it should be, and where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    path: String,
    line: usize,
    what: String,
}

impl Violation {
    fn new(path: impl Into<String>, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.into(), line, what: what.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// Looks at everything and prints what is wrong.
pub(crate) fn run() -> Result<()> {
    let metadata = Metadata::load()?;
    let sources = source::read_all(&shell::root())?;
    let policy = Policy::load(&shell::root().join("deny.toml"))?;
    let lock = read(&shell::root().join("Cargo.lock"))?;

    let mut violations = Vec::new();
    violations.extend(arrows::check(&metadata));
    violations.extend(tree::check(&metadata));
    violations.extend(licences::check(&metadata, &policy, &lock));
    for source in &sources {
        violations.extend(words::check(source));
        violations.extend(paths::check(source, &sources));
        violations.extend(pronouns::check(source));
        if source.is_rust() {
            violations.extend(comparisons::check(source));
            violations.extend(dates::check(source));
            violations.extend(headers::check(source));
            violations.extend(names::check(source));
            violations.extend(size::check(source));
            violations.extend(unfinished::check(source));
        }
    }
    violations.sort();
    for violation in &violations {
        println!("{violation}");
    }
    if violations.is_empty() {
        let rust = sources.iter().filter(|source| source.is_rust()).count();
        let (files, packages) = (sources.len(), metadata.packages.len());
        println!("{files} files, {rust} of them Rust, and {packages} packages are in order");
        return Ok(());
    }
    bail!("tidy found {} violation(s)", violations.len())
}

/// A violation in a package's manifest, at the line that names `dependency`.
fn in_manifest(metadata: &Metadata, package: &Package, dependency: &str, what: String) -> Violation {
    let text = fs::read_to_string(&package.manifest_path).unwrap_or_default();
    Violation::new(metadata.relative(&package.manifest_path), line_naming(&text, dependency), what)
}

/// The line of a manifest on which a dependency is declared, or the first one.
fn line_naming(manifest: &str, dependency: &str) -> usize {
    let declares = |line: &str| {
        let rest = line.trim_start().trim_start_matches('"').strip_prefix(dependency);
        rest.is_some_and(|rest| rest.starts_with([' ', '.', '=', '"']))
    };
    manifest.lines().position(declares).map_or(1, |index| index + 1)
}

/// Reads a file of ours as text, naming it when that fails.
fn read(path: &std::path::Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_reads_like_a_compiler_message() {
        assert_eq!(Violation::new("a/b.rs", 3, "is wrong").to_string(), "a/b.rs:3: is wrong");
    }

    #[test]
    fn the_line_of_a_dependency_is_found() {
        let manifest = "[dependencies]\ntokio-util.workspace = true\ntokio = \"1\"\n";
        assert_eq!(line_naming(manifest, "tokio"), 3);
        assert_eq!(line_naming(manifest, "tokio-util"), 2);
        assert_eq!(line_naming(manifest, "serde"), 1);
    }
}
