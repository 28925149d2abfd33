//! `refmcp shell`, typed through a pseudo-terminal and fed with scripts.

#![cfg(target_os = "linux")]

mod models;
mod plain;
mod questions;
mod screen;
#[path = "../serving/mod.rs"]
mod serving;
mod several;
mod states;
mod typed;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How long anything may take before a test fails. Other tests keep the machine busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// The built program.
const REFMCP: &str = env!("CARGO_BIN_EXE_refmcp");

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
