//! Installs the packages of npm and Python that a lock file names, once for each state of that file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell;

const NODE: &str = "Node.js 20 or later, with npm, is needed";
const PYTHON: &str = "Python 3.10 or later, with venv, is needed";

const PYTHON_PROGRAM: &str = if cfg!(windows) { "python" } else { "python3" };

/// Installs the packages of `package-lock.json` in a folder.
pub(crate) fn npm(folder: &Path) -> Result<()> {
    let node = node_version()?;
    let stamp = Stamp::new(&folder.join("node_modules"), &folder.join("package-lock.json"), &node)?;
    stamp.unless_current(|| {
        let mut install = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
        // Some packages want a newer Node for programs in them that are not used, and npm would warn of that.
        install.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]);
        shell::run(install.current_dir(folder)).context(NODE)
    })
}

/// Installs the packages of a requirements file into a virtual environment.
pub(crate) fn python(venv: &Path, requirements: &Path) -> Result<()> {
    let python = python_version()?;
    Stamp::new(venv, requirements, &python)?.unless_current(|| {
        let mut create = Command::new(PYTHON_PROGRAM);
        shell::run(create.args(["-m", "venv", "--clear"]).arg(venv)).context(PYTHON)?;
        let mut install = Command::new(in_venv(venv, "python"));
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
        shell::run(install.arg(requirements))
    })
}

/// A program of a virtual environment.
pub(crate) fn in_venv(venv: &Path, program: &str) -> PathBuf {
    let folder = if cfg!(windows) { "Scripts" } else { "bin" };
    venv.join(folder).join(format!("{program}{}", std::env::consts::EXE_SUFFIX))
}

/// The version of Node, if it is new enough.
fn node_version() -> Result<String> {
    let version = first_line(Command::new("node").arg("--version")).context(NODE)?;
    match numbers(&version)[..] {
        [major, ..] if major >= 20 => Ok(version),
        _ => bail!("{NODE}; this one is {version}"),
    }
}

/// The version of Python, if it is new enough.
fn python_version() -> Result<String> {
    let version = first_line(Command::new(PYTHON_PROGRAM).arg("--version")).context(PYTHON)?;
    match numbers(&version)[..] {
        [major, minor, ..] if (major, minor) >= (3, 10) => {}
        _ => bail!("{PYTHON}; this one is {version}"),
    }
    shell::output(Command::new(PYTHON_PROGRAM).args(["-c", "import ensurepip, venv"])).context(PYTHON)?;
    Ok(version)
}

fn first_line(command: &mut Command) -> Result<String> {
    let text = shell::output(command)?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// The numbers in a version: `v20.20.2`, `Python 3.11.7`.
fn numbers(version: &str) -> Vec<u32> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

/// A file in the folder of the packages: the lock file and the interpreter that they were installed for. It is deleted
/// with the folder.
struct Stamp {
    path: PathBuf,
    wanted: String,
}

impl Stamp {
    fn new(folder: &Path, lock: &Path, interpreter: &str) -> Result<Self> {
        let text = fs::read_to_string(lock).with_context(|| format!("cannot read {}", lock.display()))?;
        Ok(Self::of(folder, interpreter, &text))
    }

    fn of(folder: &Path, interpreter: &str, lock: &str) -> Self {
        Self { path: folder.join(".installed-for"), wanted: format!("{interpreter}\n{lock}") }
    }

    /// Does the work and writes the stamp, unless the stamp is current.
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
        let folder = std::env::temp_dir().join(format!("runners-stamp-{}", std::process::id()));
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
