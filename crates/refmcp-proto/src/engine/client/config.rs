//! Configuration of a client engine, and options of a call.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::client_tasks::TaskIds;
use crate::jsonrpc::Limits;
use crate::model::{ClientCapabilities, Implementation, JsonObject, LogLevel, TaskMetadata};
use crate::revision::{Lifecycle, Revision, Rules, Tasks};

/// Which revisions a client allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VersionPolicy {
    /// The newest of the server: by `server/discover`, or by a session where the server does not know that.
    #[default]
    Auto,
    /// Those with sessions.
    Legacy,
    /// Those without sessions.
    Modern,
    /// This one.
    Exactly(Revision),
    /// This one, or an older one where the server does not know it.
    AtMost(Revision),
}

impl VersionPolicy {
    /// The allowed revisions, newest first.
    pub fn revisions(self) -> Vec<Revision> {
        match self {
            Self::Auto => Revision::ALL.into_iter().rev().collect(),
            Self::Legacy => Revision::with(Lifecycle::Handshake).collect(),
            Self::Modern => Revision::with(Lifecycle::PerRequest).collect(),
            Self::Exactly(revision) => vec![revision],
            Self::AtMost(newest) => {
                Revision::ALL.into_iter().rev().filter(|revision| *revision <= newest).collect()
            }
        }
    }

    /// The allowed revisions with this lifecycle, newest first.
    pub(super) fn with(self, lifecycle: Lifecycle) -> impl Iterator<Item = Revision> {
        self.revisions().into_iter().filter(move |revision| revision.lifecycle() == lifecycle)
    }
}

impl fmt::Display for VersionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Legacy => "legacy",
            Self::Modern => "modern",
            Self::Exactly(revision) => revision.as_str(),
            Self::AtMost(revision) => return write!(f, "at most {revision}"),
        })
    }
}

/// A word that names no version policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("neither auto, legacy, modern nor a revision: {}", Revision::ALL.map(Revision::as_str).join(", "))]
pub struct UnknownVersionPolicy;

impl FromStr for VersionPolicy {
    type Err = UnknownVersionPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownVersionPolicy> {
        match text {
            "auto" => Ok(Self::Auto),
            "legacy" => Ok(Self::Legacy),
            "modern" => Ok(Self::Modern),
            date => date.parse().map(Self::Exactly).map_err(|_| UnknownVersionPolicy),
        }
    }
}

/// The transport, as far as the protocol depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransportKind {
    /// One pipe for all messages: a server may ignore a request that it does not know.
    #[default]
    Pipe,
    /// Each message is an HTTP exchange: each has an end, and closing it early cancels it.
    Http,
}

/// The configuration of a client engine.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// The client's name and version.
    pub info: Implementation,
    /// What the host can do for servers.
    pub capabilities: ClientCapabilities,
    /// Which revisions it allows.
    pub version_policy: VersionPolicy,
    /// The transport.
    pub transport: TransportKind,
    /// How large messages of the server may be.
    pub limits: Limits,
    /// How long `server/discover` may take on a pipe, where a server may ignore it.
    pub probe_timeout: Duration,
    /// How long opening may take otherwise.
    pub open_timeout: Duration,
    /// Input rounds of one call.
    pub max_rounds: u32,
    /// Open requests of the server.
    pub max_server_requests: usize,
    /// How requests of the server are run as tasks (2025-11-25), where the capabilities declare that; `None` declares nothing.
    pub tasks: Option<ClientTaskConfig>,
}

/// How a client runs requests of the server as tasks (2025-11-25).
#[derive(Debug, Clone)]
pub struct ClientTaskConfig {
    /// The source of their ids.
    pub ids: TaskIds,
    /// How many are kept for one server.
    pub max_tasks: usize,
    /// Bytes of these and of their outcomes.
    pub max_bytes: usize,
    /// How long a task is kept from its creation, where the server does not ask for another time.
    pub ttl: Duration,
    /// The longest time that is granted.
    pub max_ttl: Duration,
    /// How often the server is to ask for their states.
    pub poll_interval: Duration,
}

impl ClientTaskConfig {
    /// The usual limits, with ids of this source.
    pub fn new(ids: TaskIds) -> Self {
        Self {
            ids,
            max_tasks: 1024,
            max_bytes: 16 << 20,
            ttl: Duration::from_secs(15 * 60),
            max_ttl: Duration::from_secs(3600),
            poll_interval: Duration::from_secs(1),
        }
    }
}

impl ClientConfig {
    /// A client without capabilities.
    pub fn new(info: Implementation) -> Self {
        Self {
            info,
            capabilities: ClientCapabilities::default(),
            version_policy: VersionPolicy::default(),
            transport: TransportKind::default(),
            limits: Limits { max_message_size: 64 << 20, ..Limits::default() },
            probe_timeout: Duration::from_secs(5),
            open_timeout: Duration::from_secs(60),
            max_rounds: 16,
            max_server_requests: 64,
            tasks: None,
        }
    }

    /// What the client declares in a revision.
    pub(super) fn declared_capabilities(&self, rules: &Rules) -> ClientCapabilities {
        let mut declared = self.capabilities.clone();
        if self.tasks.is_none() || rules.tasks != Tasks::Experimental {
            declared.tasks = None;
        }
        declared
    }
}

/// What holds for one call.
#[derive(Debug, Clone)]
pub struct CallOptions {
    /// How long the server may be silent about it: progress begins the time again, and it stops while a request of the
    /// server is open.
    pub idle: Duration,
    /// How long it may take in all.
    pub total: Duration,
    /// Whether progress is requested.
    pub progress: bool,
    /// From which level on log messages are wanted, where that is said with each request.
    pub log_level: Option<LogLevel>,
    /// What happens when the server requires input.
    pub input: InputHandling,
    /// What becomes of a call that the server can make a task.
    pub task: TaskHandling,
    /// Further members of `_meta`.
    pub meta: JsonObject,
    /// Parameters mirrored in `Mcp-Param-*` headers: the name without the prefix, and the value.
    pub param_headers: Vec<(String, String)>,
    /// Sends it even where the negotiated revision does not have it.
    pub unchecked: bool,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(60),
            total: Duration::from_secs(600),
            progress: false,
            log_level: None,
            input: InputHandling::Automatic,
            task: TaskHandling::default(),
            meta: JsonObject::new(),
            param_headers: Vec::new(),
            unchecked: false,
        }
    }
}

/// What becomes of a call that the server can make a task.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskHandling {
    /// Asks for a task (2025-11-25), where the server makes calls of tools tasks.
    pub requested: Option<TaskMetadata>,
    /// The caller gets the task. Otherwise it is followed until it ends, and the call ends with its outcome.
    pub is_manual: bool,
}

/// What happens to a result that requires input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputHandling {
    /// The host gives the input, and the request is repeated with it.
    Automatic,
    /// The caller gets the result.
    Manual,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_policies_have_names() {
        for (name, count) in [("auto", 5), ("legacy", 4), ("modern", 1), ("2025-06-18", 1)] {
            let version_policy: VersionPolicy = name.parse().unwrap();
            assert_eq!(
                (version_policy.to_string().as_str(), version_policy.revisions().len()),
                (name, count)
            );
        }
        let error = "newest".parse::<VersionPolicy>().unwrap_err().to_string();
        assert!(error.contains("2026-07-28"), "{error}");
    }
}
