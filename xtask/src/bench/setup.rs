//! Getting everything ready: the release build, the programs of `bench`, and the packages of other languages.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{build, shell};

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
            python(version)?;
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
    once(&to.join("node_modules"), &from.join("package-lock.json"), || {
        let mut install = Command::new("npm");
        install.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(&to);
        shell::run(&mut install)
            .context("Node.js 20 or later, with npm, is needed for the TypeScript servers")
    })
}

fn python(version: &str) -> Result<()> {
    let venv = shell::root().join(format!("target/bench/python-{version}"));
    let lock = shell::root().join(format!("bench/python/{version}.txt"));
    once(&venv, &lock, || {
        let mut create = Command::new("python3");
        shell::run(create.args(["-m", "venv", "--clear"]).arg(&venv))
            .context("Python 3.10 or later, with venv, is needed for the Python servers")?;
        let mut install = Command::new(venv.join("bin/python"));
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
        shell::run(install.arg(&lock))
    })
}

/// Does the work unless a note in the folder says that it was done for this lock file.
fn once(folder: &Path, lock: &Path, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let (note, wanted) = (folder.join(".installed-for"), fs::read_to_string(lock)?);
    if fs::read_to_string(&note).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    work()?;
    fs::write(&note, wanted).with_context(|| format!("cannot write {}", note.display()))
}
