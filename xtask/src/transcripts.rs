//! The recorded conversations: data that a test named `transcripts` compares with what the code does.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use refmcp_runners::shell;

use crate::metadata::Metadata;
use crate::schemas;
use crate::test::QUICK;

const TEST: &str = "transcripts";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Prints where they differ.
    Compare,
    /// Write what is so now; the difference is then read in the diff.
    Update,
}

/// Runs the test in every crate that has it.
pub(crate) fn run(mode: Mode) -> Result<()> {
    let metadata = Metadata::load()?;
    let crates: Vec<_> = metadata.members().into_iter().filter(|package| package.has_test(TEST)).collect();
    if crates.is_empty() {
        bail!("no crate has a test named `{TEST}`");
    }
    let schemas = schemas::prepare()?;
    let mut test = shell::cargo(["test", "--all-features", "--test", TEST]);
    // Together with those of `quick`: another choice of packages would build their dependencies anew.
    let mut packages: BTreeSet<&str> = QUICK.into_iter().collect();
    packages.extend(crates.iter().map(|package| package.name.as_str()));
    test.args(packages.iter().map(|name| format!("--package={name}")));
    test.env(schemas::VARIABLE, &schemas);
    if mode == Mode::Update {
        test.env("UPDATE", "1");
    }
    shell::run(&mut test)
}
