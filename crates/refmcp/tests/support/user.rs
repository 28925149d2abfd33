//! A user of the program, with folders of their own, and how a command that they run ends.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::REFMCP;

/// A user with a home, a folder to work in and a state folder.
pub(crate) struct User {
    folder: TempDir,
    home: PathBuf,
    work: PathBuf,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) took: Duration,
}

impl User {
    /// A user who works in their home.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { home: folder.path().to_owned(), work: folder.path().to_owned(), folder }
    }

    /// A user whose folder `work` is beside `home`.
    pub(crate) fn at_work() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [home, work] = ["home", "work"].map(|name| folder.path().join(name));
        fs::create_dir(&home).unwrap();
        fs::create_dir(&work).unwrap();
        Self { folder, home, work }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A path as a word of a command.
    pub(crate) fn word(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(REFMCP);
        command.args(words).stdin(Stdio::null());
        self.place(command)
    }

    /// A program in this user's place.
    pub(crate) fn place(&self, mut command: Command) -> Command {
        for variable in ["REFMCP_LOG", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR"] {
            command.env_remove(variable);
        }
        command.current_dir(&self.work).env("REFMCP_STATE_DIR", self.path("state")).env("HOME", &self.home);
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Ended {
        let began = Instant::now();
        let output = self.command(words).output().unwrap();
        Ended { took: began.elapsed(), ..output.into() }
    }

    /// Runs a command that must succeed; what it printed.
    pub(crate) fn done(&self, words: &[&str]) -> String {
        let ended = self.run(words);
        assert_eq!((ended.code, ended.err.as_str()), (0, ""), "{words:?}: {ended:?}");
        ended.out
    }

    /// Runs a command against the reference server, started for it.
    pub(crate) fn with_stdio(&self, words: &[&str]) -> Ended {
        self.with(words, &[REFMCP, "stdio"])
    }

    /// Runs a command against a shell script that is started for it.
    pub(crate) fn with_script(&self, words: &[&str], script: &str) -> Ended {
        self.with(words, &["sh", "-c", script])
    }

    pub(crate) fn with(&self, words: &[&str], server: &[&str]) -> Ended {
        self.run(&[words, &["--"], server].concat())
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self.word(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
            took: Duration::ZERO,
        }
    }
}
