//! Every dependency has a licence that deny.toml allows and comes from the registry.
//!
//! cargo-deny checks the same and more, but takes minutes to build; this takes none.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::{Violation, read, spdx};
use crate::metadata::Metadata;

/// What deny.toml says about licences.
#[derive(Debug, Deserialize)]
pub(crate) struct Policy {
    licenses: Licences,
}

#[derive(Debug, Deserialize)]
struct Licences {
    allow: Vec<String>,
}

impl Policy {
    pub(crate) fn load(path: &Path) -> Result<Self> {
        toml::from_str(&read(path)?).with_context(|| format!("cannot understand {}", path.display()))
    }
}

/// `lock` is the text of Cargo.lock, to say where a package is.
pub(crate) fn check(metadata: &Metadata, policy: &Policy, lock: &str) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in metadata.packages.iter().filter(|package| !metadata.is_member(package)) {
        let mut wrong = |what: String| {
            let what = format!("{} {}: {what}", package.name, package.version);
            let line = line_in_lock(lock, &package.name, &package.version);
            violations.push(Violation::new("Cargo.lock", line, what));
        };
        match &package.license {
            None => wrong("names no licence".to_owned()),
            Some(licence) if !spdx::is_met(licence, &policy.licenses.allow) => {
                wrong(format!("licence `{licence}` is not allowed by deny.toml"));
            }
            Some(_) => {}
        }
        match &package.source {
            Some(source) if source.starts_with("registry+") => {}
            Some(source) => wrong(format!("comes from `{source}`, not from the registry")),
            None => wrong("is a path outside this workspace".to_owned()),
        }
    }
    violations
}

/// The line of a lock file at which a package begins, or the first one.
fn line_in_lock(lock: &str, name: &str, version: &str) -> usize {
    let wanted = (format!("name = \"{name}\""), format!("version = \"{version}\""));
    let mut pairs = lock.lines().zip(lock.lines().skip(1));
    pairs.position(|(first, second)| (first, second) == (&wanted.0, &wanted.1)).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::sample;

    fn policy() -> Policy {
        toml::from_str("[licenses]\nallow = [\"MIT\"]\n").unwrap()
    }

    #[test]
    fn licence_and_origin_are_looked_at() {
        let mut metadata = sample::metadata(&[("refmcp", &[]), ("a", &[]), ("b", &[]), ("c", &[])]);
        metadata.packages[0].license = None; // ours
        assert_eq!(check(&metadata, &policy(), ""), []);

        metadata.packages[1].license = Some("GPL-3.0".to_owned());
        metadata.packages[2].license = None;
        metadata.packages[3].source = Some("git+https://example.com/c".to_owned());
        let found: Vec<_> =
            check(&metadata, &policy(), "").into_iter().map(|violation| violation.what).collect();
        assert_eq!(
            found,
            [
                "a 1.0.0: licence `GPL-3.0` is not allowed by deny.toml",
                "b 1.0.0: names no licence",
                "c 1.0.0: comes from `git+https://example.com/c`, not from the registry",
            ]
        );
    }

    #[test]
    fn a_package_is_found_in_the_lock_file() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n\n[[package]]\nname = \"a\"\nversion = \"2.0.0\"\n";
        assert_eq!(line_in_lock(lock, "a", "2.0.0"), 6);
        assert_eq!(line_in_lock(lock, "b", "2.0.0"), 1);
    }
}
