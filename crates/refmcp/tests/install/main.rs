//! `refmcp install` and `refmcp servers`, as typed: what is written where, taken back and shown.

#![cfg(unix)]

#[cfg(target_os = "linux")]
mod asked;
mod changes;
mod entries;
mod listing;
mod refusals;
#[path = "../serving/mod.rs"]
mod serving;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const REFMCP: &str = env!("CARGO_BIN_EXE_refmcp");

/// A user with a home, a folder to work in and a state folder.
struct User {
    folder: TempDir,
}

/// What came of a command.
#[derive(Debug)]
struct Came {
    code: i32,
    out: String,
    err: String,
}

impl User {
    fn new() -> Self {
        let user = Self { folder: tempfile::tempdir().unwrap() };
        for folder in ["home", "work"] {
            fs::create_dir(user.path(folder)).unwrap();
        }
        user
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(REFMCP);
        command.args(words).stdin(Stdio::null());
        self.place(command)
    }

    /// A program in this user's place.
    fn place(&self, mut command: Command) -> Command {
        for variable in ["REFMCP_LOG", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR"] {
            command.env_remove(variable);
        }
        command
            .current_dir(self.path("work"))
            .env("REFMCP_STATE_DIR", self.path("state"))
            .env("HOME", self.path("home"));
        command
    }

    fn run(&self, words: &[&str]) -> Came {
        came(self.command(words).output().unwrap())
    }

    /// Runs a command that must succeed; what it printed.
    fn done(&self, words: &[&str]) -> String {
        let came = self.run(words);
        assert_eq!((came.code, came.err.as_str()), (0, ""), "{words:?}: {came:?}");
        came.out
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|fault| panic!("{name}: {fault}"))
    }
}

fn came(output: Output) -> Came {
    Came {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}
