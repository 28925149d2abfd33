//! The programs that foreign clients and the conformance suite start.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::shell::{self, cargo};

/// The packages of the programs, built in one go.
pub const PACKAGES: [&str; 4] = ["--package", "refmcp", "--package", "refmcp-conformance"];

/// The profile for programs that are only tried: optimized like a release, and linked in a fraction of the time.
const PROFILE: &str = "fast-release";

/// A folder of built programs.
#[derive(Debug, Clone)]
pub struct Build {
    folder: PathBuf,
}

impl Build {
    /// The programs as the working tree has them.
    pub fn of_tree() -> Result<Self> {
        let mut build = cargo(["build", "--profile", PROFILE]);
        shell::run(build.args(PACKAGES))?;
        Ok(Self::in_folder(shell::target_directory()?.join(PROFILE)))
    }

    /// The programs that are or will be in a folder.
    pub fn in_folder(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Where the programs are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The server and command line.
    pub fn refmcp(&self) -> PathBuf {
        self.folder.join(format!("refmcp{}", std::env::consts::EXE_SUFFIX))
    }
}

/// The release build of the working tree, for what is measured.
pub(crate) fn release() -> Result<()> {
    let mut build = cargo(["build", "--release"]);
    shell::run(build.args(PACKAGES))
}
