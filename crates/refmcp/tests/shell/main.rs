//! `refmcp shell`, typed through a pseudo-terminal and fed with scripts.

#![cfg(target_os = "linux")]

mod models;
mod one_server;
mod questions;
mod scripts;
mod server_states;
mod several_servers;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::{REFMCP, Terminal};

/// A command whose state is kept in this folder, and nowhere else.
fn in_folder(mut command: Command, folder: &Path) -> Command {
    for variable in ["REFMCP_LOG", "REFMCP_LOG_FORMAT", "REFMCP_MASK_ARGUMENTS", "XDG_STATE_HOME"] {
        command.env_remove(variable);
    }
    for variable in ["CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME"] {
        command.env_remove(variable);
    }
    command.env("REFMCP_STATE_DIR", folder.join("state")).env("HOME", folder).env("NO_COLOR", "1");
    command
}

/// What `sum` says.
fn total(sum: u32) -> String {
    format!("{{\"total\":{sum}}}")
}

/// `refmcp shell` with these arguments, at a terminal.
fn shell(folder: &Path, args: &[&str]) -> Terminal {
    let mut command = Command::new(REFMCP);
    command.arg("shell").args(args).env("TERM", "xterm");
    Terminal::start(&in_folder(command, folder), 160)
}

/// A shell with one `refmcp stdio`, at its first prompt.
fn shell_with_server(folder: &Path, options: &[&str]) -> Terminal {
    let mut terminal = shell(folder, &[options, &["--", REFMCP, "stdio"]].concat());
    terminal.expect("refmcp> ");
    terminal
}

/// A shell with a server that is a script and speaks an older version. Its argument is a pipe, in which it can wait for
/// the test.
fn shell_with_script(folder: &Path, options: &[&str], script: &str) -> (Terminal, PathBuf) {
    let (file, pipe) = (folder.join("server.sh"), folder.join("pipe"));
    fs::write(&file, script).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let server = ["--protocol-version", "legacy", "--", "sh", file.to_str().unwrap(), pipe.to_str().unwrap()];
    (shell(folder, &[options, &server].concat()), pipe)
}
