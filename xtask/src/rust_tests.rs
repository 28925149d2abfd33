//! The Rust tests: run by cargo-nextest where it is installed, otherwise by `cargo test`.
//!
//! Both build the same; nextest runs tests of several crates side by side, each in a process of its own. Tests in
//! documentation are cargo's alone.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use refmcp_runners::shell::{self, cargo};

use crate::schemas;

/// How long the tests may take, building them included; many times what they need.
const WITHIN: Duration = Duration::from_secs(40 * 60);

/// The oldest version of nextest that is used: the first that was tried.
const NEXTEST: [u32; 3] = [0, 9, 143];

/// Names the file to the tests that they write a line to about what they cannot check on this machine.
const NOT_CHECKED: &str = "REFMCP_NOT_CHECKED";

/// Which tests of which packages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Selection<'a> {
    /// The packages; all of the workspace when there are none.
    pub(crate) packages: &'a [&'a str],
    /// What the names of the tests contain.
    pub(crate) filter: Option<&'a str>,
    /// Whether the code in documentation is run as well.
    pub(crate) documentation: bool,
}

impl Selection<'static> {
    /// Unit, integration and documentation tests of everything; the examples are built, for tests that run them.
    pub(crate) const ALL: Self = Self { packages: &[], filter: None, documentation: true };
}

/// Runs the tests, and adds to `not_checked` what they could not check on this machine.
pub(crate) fn run(selection: Selection<'_>, not_checked: &mut Vec<String>) -> Result<()> {
    let schemas = schemas::prepare()?;
    let report = shell::target_directory()?.join("not-checked.txt");
    fs::write(&report, "").with_context(|| format!("cannot write {}", report.display()))?;
    let mut ended = Ok(());
    for arguments in commands(selection, has_nextest()) {
        let mut command = cargo(arguments.iter().map(String::as_str));
        command.env(schemas::VARIABLE, &schemas).env(NOT_CHECKED, &report);
        // What comes next is run also after a failure.
        ended = ended.and(shell::run_within(&mut command, WITHIN));
    }
    not_checked.extend(lines(&report)?);
    ended
}

/// The arguments of cargo, one command after the other.
fn commands(selection: Selection<'_>, nextest: bool) -> Vec<Vec<String>> {
    let mut packages = vec!["--all-features".to_owned()];
    match selection.packages {
        [] => packages.push("--workspace".to_owned()),
        named => packages.extend(named.iter().map(|name| format!("--package={name}"))),
    }
    let command = |words: &[&str], after: &[&str]| {
        let words = words.iter().map(|word| (*word).to_owned());
        let after = after.iter().map(|word| (*word).to_owned());
        words.chain(packages.clone()).chain(after).chain(selection.filter.map(str::to_owned)).collect()
    };
    let mut commands = Vec::new();
    match (nextest, selection.documentation) {
        (false, true) => commands.push(command(&["test", "--no-fail-fast"], &["--"])),
        (false, false) => commands.push(command(&["test", "--no-fail-fast", "--all-targets"], &["--"])),
        (true, _) => {
            let words = ["nextest", "run", "--no-fail-fast", "--status-level=slow", "--no-tests=pass"];
            commands.push(command(&words, &["--"]));
        }
    }
    if nextest && selection.documentation {
        commands.push(command(&["test", "--no-fail-fast", "--doc"], &["--"]));
    }
    commands
}

/// Whether cargo-nextest is installed, in a version that will do.
fn has_nextest() -> bool {
    let asked = Command::new("cargo-nextest").args(["nextest", "--version"]).stderr(Stdio::null()).output();
    let found = asked.ok().and_then(|output| version(&String::from_utf8_lossy(&output.stdout)));
    match found {
        Some(version) if version >= NEXTEST => true,
        Some(version) => {
            println!(
                "cargo-nextest {} is too old; cargo test runs the tests",
                version.map(|n| n.to_string()).join(".")
            );
            false
        }
        None => false,
    }
}

/// The version in `cargo-nextest 0.9.143 (60fa45f63 2026-08-04)`.
fn version(printed: &str) -> Option<[u32; 3]> {
    let numbers = printed.split_whitespace().nth(1)?.split('.').map(|number| number.parse().ok());
    numbers.collect::<Option<Vec<u32>>>()?.try_into().ok()
}

/// What tests have written, each line once.
fn lines(file: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let lines: BTreeSet<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    Ok(lines.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(selection: Selection<'_>, nextest: bool) -> Vec<String> {
        commands(selection, nextest).iter().map(|words| words.join(" ")).collect()
    }

    #[test]
    fn documentation_is_tested_with_and_without_nextest() {
        assert_eq!(shown(Selection::ALL, false), ["test --no-fail-fast --all-features --workspace --"]);
        let [first, second] = &shown(Selection::ALL, true)[..] else { panic!("two commands") };
        assert!(first.starts_with("nextest run --no-fail-fast"), "{first}");
        assert_eq!(second, "test --no-fail-fast --doc --all-features --workspace --");
    }

    #[test]
    fn packages_and_a_filter_reach_cargo() {
        let some = Selection { packages: &["a", "b"], filter: Some("name"), documentation: false };
        assert_eq!(
            shown(some, false),
            ["test --no-fail-fast --all-targets --all-features --package=a --package=b -- name"]
        );
        let [only] = &shown(some, true)[..] else { panic!("one command") };
        assert!(only.ends_with("--all-features --package=a --package=b -- name"), "{only}");
    }

    #[test]
    fn versions_of_nextest_are_read_and_compared() {
        assert_eq!(
            version("cargo-nextest 0.9.143 (60fa45f63 2026-08-04)\nrelease: 0.9.143\n"),
            Some([0, 9, 143])
        );
        assert_eq!(version("error: no such command"), None);
        assert!([0, 9, 99] < NEXTEST && [0, 10, 0] > NEXTEST);
    }

    #[test]
    fn what_was_not_checked_is_told_once() {
        let file = std::env::temp_dir().join(format!("xtask-not-checked-{}", std::process::id()));
        fs::write(&file, "b\na\n\nb\n").unwrap();
        assert_eq!(lines(&file).unwrap(), ["a", "b"]);
        fs::remove_file(&file).unwrap();
    }
}
