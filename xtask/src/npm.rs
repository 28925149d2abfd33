//! Packages of npm: what a lock file names, installed once for each state of that file.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::shell;

/// Installs what the lock file in a folder names, unless that is done already.
pub(crate) fn install(folder: &Path) -> Result<()> {
    let stamp = folder.join("node_modules/.installed");
    let lock = fs::read_to_string(folder.join("package-lock.json"))
        .with_context(|| format!("no lock file in {}", folder.display()))?;
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    let mut install = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    // Some packages want a newer Node for programs in them that are not used, and npm would warn of that.
    install.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]);
    shell::run(install.current_dir(folder))?;
    fs::write(&stamp, lock).with_context(|| format!("cannot note the installation in {}", folder.display()))
}
