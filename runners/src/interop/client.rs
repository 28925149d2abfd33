//! The foreign clients: what they are called and how one is started.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use super::Paths;
use crate::install::{self, in_venv};
use crate::server::Transport;
use crate::shell;

/// A folder of `interop/`.
#[derive(Debug, PartialEq)]
pub(crate) struct Client {
    /// The folder's name, and how the client calls itself in its results.
    pub(crate) name: &'static str,
    pub(crate) language: Language,
}

/// What a client is written in, and so what it takes to set it up and start it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    /// `client.mjs`, packages from `package-lock.json`.
    TypeScript,
    /// `client.py`, packages from `requirements.txt`.
    Python,
    /// A binary with a `Cargo.lock` of its own.
    Rust,
}

pub(crate) const CLIENTS: [Client; 5] = [
    Client { name: "typescript-v1", language: Language::TypeScript },
    Client { name: "typescript-v2", language: Language::TypeScript },
    Client { name: "python-v1", language: Language::Python },
    Client { name: "python-v2", language: Language::Python },
    Client { name: "rmcp", language: Language::Rust },
];

impl Client {
    /// Whether it is run over this transport: what holds for a relay is seen with one client of each language.
    pub(crate) fn uses(&self, transport: Transport) -> bool {
        transport.seen() == transport || ["typescript-v1", "python-v1"].contains(&self.name)
    }

    /// The client's source folder.
    pub(crate) fn folder(&self, sources: &Path) -> PathBuf {
        sources.join(self.name)
    }

    /// The folder that what it needs is built in. What is written in Rust shares one, and so most of what is built.
    pub(crate) fn built(&self, out: &Path) -> PathBuf {
        out.join(if self.language == Language::Rust { "rmcp" } else { self.name })
    }

    /// Installs or builds what it needs.
    pub(crate) fn prepare(&self, paths: &Paths) -> Result<()> {
        let folder = self.folder(&paths.sources);
        ensure!(folder.is_dir(), "there is no folder {}", folder.display());
        match self.language {
            Language::TypeScript => install::npm(&folder),
            Language::Python => install::python(&self.built(&paths.out), &folder.join("requirements.txt")),
            Language::Rust => {
                let mut build = shell::cargo(["build", "--locked", "--manifest-path"]);
                build.arg(folder.join("Cargo.toml")).arg("--target-dir").arg(self.built(&paths.out));
                shell::run(&mut build)
            }
        }
    }

    /// Starts it, once it is set up; its arguments are still to be added.
    pub(crate) fn command(&self, sources: &Path, out: &Path) -> Command {
        let folder = self.folder(sources);
        match self.language {
            Language::TypeScript => {
                let mut command = Command::new("node");
                command.arg(folder.join("client.mjs"));
                command
            }
            Language::Python => {
                let mut command = Command::new(in_venv(&self.built(out), "python"));
                command.arg(folder.join("client.py")).env("PYTHONDONTWRITEBYTECODE", "1");
                command
            }
            Language::Rust => {
                let binary = format!("refmcp-interop-{}{}", self.name, std::env::consts::EXE_SUFFIX);
                Command::new(self.built(out).join("debug").join(binary))
            }
        }
    }
}
