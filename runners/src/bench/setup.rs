//! Getting everything ready: the release build, the programs of `bench`, and the packages of other languages.

use std::fs;

use anyhow::{Context, Result};

use crate::{build, install, shell};

pub(super) fn prepare(other_languages: bool) -> Result<()> {
    build::release()?;
    shell::run(&mut shell::cargo([
        "build",
        "--release",
        "--locked",
        "--manifest-path",
        "bench/Cargo.toml",
        "--target-dir",
        "target/bench",
    ]))?;
    if other_languages {
        typescript()?;
        for version in ["v1", "v2"] {
            let venv = shell::root().join(format!("target/bench/python-{version}"));
            install::python(&venv, &shell::root().join(format!("bench/python/{version}.txt")))?;
        }
    }
    Ok(())
}

/// The servers are copied to where their packages are, because Node looks for them there.
fn typescript() -> Result<()> {
    let (from, to) = (shell::root().join("bench/typescript"), shell::root().join("target/bench/typescript"));
    fs::create_dir_all(&to)?;
    for file in fs::read_dir(&from).context("no folder bench/typescript")? {
        let file = file?;
        fs::copy(file.path(), to.join(file.file_name()))?;
    }
    install::npm(&to)
}
