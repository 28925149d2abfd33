//! What is wrong with a configuration file, and where.

use std::fmt;
use std::path::{Path, PathBuf};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// What it is about cannot be used.
    Error,
    /// Nothing is lost, but it may not be what was meant.
    Hint,
}

/// Something wrong with a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The file.
    pub source: PathBuf,
    /// The server whose entry it is in.
    pub server: Option<String>,
    /// The member that is wrong.
    pub member: Option<String>,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
}

impl Problem {
    pub(super) fn error(source: &Path, message: impl Into<String>) -> Self {
        let source = source.to_owned();
        Self { source, server: None, member: None, severity: Severity::Error, message: message.into() }
    }

    pub(super) fn hint(source: &Path, message: impl Into<String>) -> Self {
        Self { severity: Severity::Hint, ..Self::error(source, message) }
    }

    pub(super) fn of_server(self, name: &str) -> Self {
        Self { server: Some(name.to_owned()), ..self }
    }

    pub(super) fn of_member(self, member: &str) -> Self {
        Self { member: Some(member.to_owned()), ..self }
    }
}

impl std::error::Error for Problem {}

impl fmt::Display for Problem {
    /// Names come from files, and are shown so that they cannot steer a terminal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source.display())?;
        if let Some(server) = &self.server {
            write!(f, ": server {server:?}")?;
        }
        if let Some(member) = &self.member {
            write!(f, ": {member:?}")?;
        }
        write!(f, ": {}", self.message)
    }
}
