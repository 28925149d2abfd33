//! Getting a foreign client ready: its packages, once for each state of its lock file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::client::{Client, Language, in_venv};
use super::{Places, first_line};
use crate::shell;

const NODE: &str = "Node.js 20 or later, with npm, is needed for the TypeScript clients";
const PYTHON: &str = "Python 3.10 or later, with venv, is needed for the Python clients";

/// Installs or builds what the client needs, unless that is done already.
pub(crate) fn prepare(client: &Client, places: &Places) -> Result<()> {
    let folder = client.folder(&places.sources);
    ensure!(folder.is_dir(), "there is no folder {}", folder.display());
    let built = client.built(&places.out);
    match client.language {
        Language::TypeScript => {
            let node = node()?;
            let stamp = Stamp::new(&folder.join("node_modules"), client, places, &node)?;
            stamp.unless_current(|| {
                let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
                let mut install = Command::new(npm);
                install.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(&folder);
                shell::run(&mut install).context(NODE)
            })
        }
        Language::Python => {
            let python = python()?;
            let stamp = Stamp::new(&built, client, places, &python)?;
            stamp.unless_current(|| {
                let mut venv = Command::new(PYTHON_PROGRAM);
                shell::run(venv.args(["-m", "venv", "--clear"]).arg(&built)).context(PYTHON)?;
                let mut install = Command::new(in_venv(&built, "python"));
                install.args([
                    "-m",
                    "pip",
                    "install",
                    "--quiet",
                    "--disable-pip-version-check",
                    "--requirement",
                ]);
                shell::run(install.arg(client.lock(&places.sources)))
            })
        }
        Language::Rust => {
            // cargo knows by itself what is current.
            let mut build = shell::cargo(["build", "--locked", "--manifest-path"]);
            shell::run(build.arg(folder.join("Cargo.toml")).arg("--target-dir").arg(&built))
        }
    }
}

const PYTHON_PROGRAM: &str = if cfg!(windows) { "python" } else { "python3" };

/// The version of Node, when it will do.
fn node() -> Result<String> {
    let version = first_line(Command::new("node").arg("--version")).context(NODE)?;
    match numbers(&version)[..] {
        [major, ..] if major >= 20 => Ok(version),
        _ => bail!("{NODE}; this one is {version}"),
    }
}

/// The version of Python, when it will do.
fn python() -> Result<String> {
    let version = first_line(Command::new(PYTHON_PROGRAM).arg("--version")).context(PYTHON)?;
    match numbers(&version)[..] {
        [major, minor, ..] if (major, minor) >= (3, 10) => {}
        _ => bail!("{PYTHON}; this one is {version}"),
    }
    shell::output(Command::new(PYTHON_PROGRAM).args(["-c", "import ensurepip, venv"])).context(PYTHON)?;
    Ok(version)
}

/// The numbers in a version: `v20.20.2`, `Python 3.11.7`.
fn numbers(version: &str) -> Vec<u32> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

/// A note inside the folder of what was installed: which lock file and which interpreter it was made for. Whoever
/// deletes the folder deletes the note.
struct Stamp {
    path: PathBuf,
    wanted: String,
}

impl Stamp {
    fn new(folder: &Path, client: &Client, places: &Places, interpreter: &str) -> Result<Self> {
        let lock = client.lock(&places.sources);
        let text = fs::read_to_string(&lock).with_context(|| format!("cannot read {}", lock.display()))?;
        Ok(Self::of(folder, interpreter, &text))
    }

    fn of(folder: &Path, interpreter: &str, lock: &str) -> Self {
        Self { path: folder.join(".installed-for"), wanted: format!("{interpreter}\n{lock}") }
    }

    /// Does the work unless the note says it is done, and notes that it is.
    fn unless_current(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        if fs::read_to_string(&self.path).is_ok_and(|found| found == self.wanted) {
            return Ok(());
        }
        work()?;
        fs::write(&self.path, &self.wanted).with_context(|| format!("cannot write {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(numbers("v20.20.2"), [20, 20, 2]);
        assert_eq!(numbers("Python 3.11.7"), [3, 11, 7]);
    }

    #[test]
    fn work_is_done_once_for_each_lock_file() {
        let folder = std::env::temp_dir().join(format!("xtask-stamp-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut done = 0;
        for (interpreter, lock) in [("1", "a"), ("1", "a"), ("1", "b"), ("2", "b"), ("2", "b")] {
            let work = || {
                done += 1;
                Ok(())
            };
            Stamp::of(&folder, interpreter, lock).unless_current(work).unwrap();
        }
        let failed = Stamp::of(&folder, "3", "c").unless_current(|| bail!("no network"));
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(done, 3);
        assert!(failed.is_err());
    }
}
