//! Servers that configuration files name: `mcp.json` and the files of VS Code, Claude and Cursor.
//!
//! | file | shape |
//! |---|---|
//! | `mcp.json`, `.mcp.json`, `.claude.json`, `.cursor/mcp.json`, `claude_desktop_config.json` | `{"mcpServers": {name: entry}}` |
//! | `.vscode/mcp.json` and the user's `mcp.json` of VS Code | `{"servers": {name: entry}, "inputs": [input]}` |
//!
//! An entry that is wrong becomes a [`Problem`] and leaves the others alone. Entries are kept as they are written until
//! [`Servers::resolve`] fills in their variables.

use std::fmt;
use std::path::{Path, PathBuf};

use refmcp_auth::secret::Secret;
use serde::Serialize;

use crate::args::UrlTransport;
use crate::ui::redact;

mod entry;
mod env_file;
mod hosts;
mod input;
#[cfg(test)]
mod random_files;
mod read;
mod resolve;
mod start;
#[cfg(test)]
mod tests;
mod trust;

pub(crate) use hosts::{ConfigHost, ConfigScope, Platform, usual_files};
pub(crate) use input::{Input, InputKind};
pub(crate) use read::{BYTE_ORDER_MARK, SYNTAX, check_exists, read, read_all, read_named};
pub(crate) use resolve::is_variable_name;
pub(crate) use start::{Start, changes_what_runs};
pub(crate) use trust::{identity, resolve_unasked, sent_variables, trust_status};

/// What one or several configuration files name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Servers {
    /// The servers, in the order of the files.
    pub(crate) servers: Vec<ServerEntry>,
    /// What has to be asked for before some of them can be started.
    pub(crate) inputs: Vec<Input>,
    /// What is wrong with the files.
    pub(crate) problems: Vec<Problem>,
}

impl Servers {
    fn of_problem(problem: Problem) -> Self {
        Self { problems: vec![problem], ..Self::default() }
    }

    /// The server of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&ServerEntry> {
        self.servers.iter().find(|entry| entry.name == name)
    }

    /// Adds what another file names. Where both name the same server, the one that was there first stays.
    fn add(&mut self, other: Self) {
        self.problems.extend(other.problems);
        self.inputs.extend(other.inputs);
        for entry in other.servers {
            match self.get(&entry.name) {
                Some(first) => {
                    let why =
                        format!("is not used: {} has a server of the same name", first.source.display());
                    self.problems.push(Problem::hint(&entry.source, why).of_server(&entry.name));
                }
                None => self.servers.push(entry),
            }
        }
    }
}

/// One server of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerEntry {
    pub(crate) name: String,
    /// The file that names it.
    pub(crate) source: PathBuf,
    pub(crate) launch: Launch,
    /// True if the file says that it is not to be used.
    pub(crate) disabled: bool,
    /// The SHA-256 of the text that it was read from.
    pub(crate) source_sha256: String,
    /// Variables of our environment whose values were filled in.
    pub(crate) used_variables: Vec<String>,
}

/// How to get to a server.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Launch {
    /// Start a program.
    Command {
        /// A path, or a name to look for in `PATH`.
        program: String,
        args: Vec<String>,
        env: Vec<(String, Secret)>,
        cwd: Option<PathBuf>,
        /// A file with more environment variables; those in `env` come first.
        env_file: Option<PathBuf>,
    },
    /// Connect to a URL, with these headers.
    Remote { transport: UrlTransport, url: String, headers: Vec<(String, Secret)> },
}

impl fmt::Debug for Launch {
    /// Arguments and addresses may hold secrets as well.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Launch");
        shown.field("target", &redact::launch(self));
        match self {
            Self::Command { env, cwd, env_file, .. } => {
                shown.field("env", env).field("cwd", cwd).field("env_file", env_file)
            }
            Self::Remote { transport, headers, .. } => {
                shown.field("transport", transport).field("headers", headers)
            }
        };
        shown.finish()
    }
}

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// The file or the entry cannot be used.
    Error,
    /// Nothing is lost, but it may not be what was meant.
    Hint,
}

/// Something wrong with a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize)]
#[error("{}", self.shown())]
pub(crate) struct Problem {
    /// The file.
    pub(crate) file: PathBuf,
    /// The server whose entry it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<String>,
    /// The member that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) member: Option<String>,
    pub(crate) severity: Severity,
    pub(crate) message: String,
}

impl Problem {
    fn error(file: &Path, message: impl Into<String>) -> Self {
        let (file, message) = (file.to_owned(), message.into());
        Self { file, server: None, member: None, severity: Severity::Error, message }
    }

    fn hint(file: &Path, message: impl Into<String>) -> Self {
        Self { severity: Severity::Hint, ..Self::error(file, message) }
    }

    fn of_server(self, name: &str) -> Self {
        Self { server: Some(name.to_owned()), ..self }
    }

    fn of_member(self, member: &str) -> Self {
        Self { member: Some(member.to_owned()), ..self }
    }

    /// True if the file cannot be used at all.
    pub(crate) fn is_of_whole_file(&self) -> bool {
        self.severity == Severity::Error && self.server.is_none() && self.member.is_none()
    }

    /// Names come from files, and are quoted so that they cannot steer a terminal.
    fn shown(&self) -> String {
        let server = self.server.as_ref().map(|server| format!(": server {server:?}")).unwrap_or_default();
        let member = self.member.as_ref().map(|member| format!(": {member:?}")).unwrap_or_default();
        format!("{}{server}{member}: {}", self.file.display(), self.message)
    }
}
