//! Completion of command lines: the answers to the scripts of the shells, and bash, zsh and fish themselves at a terminal.

#![cfg(target_os = "linux")]

mod bash;
mod candidates;
mod consent;
mod fish;
mod lines;
#[path = "../support/mod.rs"]
mod support;
mod terminal;
mod zsh;

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use support::{REFMCP, wait_until_gone};

/// What bash takes words apart at.
const BREAKS: &str = " \t\n\"'@><=;|&(:";

/// A user who has the program on their `PATH`.
struct User(support::User);

impl Deref for User {
    type Target = support::User;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl User {
    fn new() -> Self {
        Self(support::User::new())
    }

    /// A program in this user's place.
    fn place(&self, command: Command) -> Command {
        let mut command = self.0.place(command);
        let programs = Path::new(REFMCP).parent().unwrap().display();
        let path = std::env::var("PATH").unwrap_or_default();
        // Other tests keep the machine busy.
        command.env("PATH", format!("{programs}:{path}")).env("REFMCP_COMPLETION_TIMEOUT", "20");
        command
    }

    /// How long it takes until a server that does not answer is given up, where nothing else was said.
    fn given_up(&self, target: &str) -> Duration {
        let mut command = Command::new(REFMCP);
        command.args(["__complete", "fish", "--", "refmcp", "call", target, "su"]).stdin(Stdio::null());
        let begin = Instant::now();
        let output = self.place(command).env_remove("REFMCP_COMPLETION_TIMEOUT").output().unwrap();
        assert!(
            output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(),
            "{output:?}"
        );
        begin.elapsed()
    }

    /// Runs a command that must succeed without a word on stderr; what it printed.
    fn run(&self, words: &[&str]) -> String {
        let mut command = Command::new(REFMCP);
        command.args(words).stdin(Stdio::null());
        let output = self.place(command).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{words:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What fish is told for a line, the last word of which is to be completed: the words alone.
    fn fish(&self, words: &[&str]) -> Vec<String> {
        let words: Vec<&str> = ["__complete", "fish", "--", "refmcp"].iter().chain(words).copied().collect();
        let word = |line: &str| line.split('\t').next().unwrap_or_default().to_owned();
        self.run(&words).lines().map(word).collect()
    }

    /// What bash is told for a line.
    fn bash(&self, line: &str) -> Vec<String> {
        let answer = self.run(&["__complete", "bash", "--", BREAKS, line]);
        answer.lines().map(str::to_owned).collect()
    }

    /// A program that leaves its process id when it is started, and becomes `refmcp stdio`.
    fn server(&self) -> String {
        self.program(&format!("'{REFMCP}' stdio"))
    }

    /// A program that leaves its process id when it is started, and becomes another.
    fn program(&self, becomes: &str) -> String {
        let path = self.path("server");
        let mark = self.path("started");
        let script = format!("#!/bin/sh\necho noise >&2\necho $$ > '{}'\nexec {becomes}\n", mark.display());
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn was_started(&self) -> bool {
        self.path("started").exists()
    }

    /// Waits until the program that was started has ended.
    fn wait_until_ended(&self) {
        let id = fs::read_to_string(self.path("started")).unwrap();
        wait_until_gone(id.trim().parse().unwrap());
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}
