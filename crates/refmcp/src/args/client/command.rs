//! The commands that drive a server, with their arguments resolved.

use std::path::PathBuf;

use refmcp_proto::model::{CompletionRef, LogLevel};
use url::Url;

use super::{AuthCommand, BridgeListenOptions, CheckOptions, ReplayOptions, ReplayUse, SkillsCommand};
use crate::args::{Target, UrlTransport};
use crate::arguments::ArgumentInput;

/// A command that drives a server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ClientCommand {
    /// Open a session with a server, and do this in it.
    InSession(Target, SessionCommand),
    /// Talk to servers, line by line; with none named, to all of the configuration file.
    Shell { targets: Vec<Target> },
    /// Serve clients of one transport and revision by a server of another.
    Bridge { from: BridgeSide, to: Target },
    /// Check a server by the rules of the specification.
    Check(Target, Box<CheckOptions>),
    /// Use a recording again.
    Replay { file: PathBuf, using: ReplayUse, options: Box<ReplayOptions> },
    /// Log in or out, or show the logins.
    Auth(AuthCommand),
}

/// What is done in a session.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SessionCommand {
    /// Show what it offers: lists, or single things by their names, whole.
    List { what: ListKind, names: Vec<String> },
    /// Call a tool.
    Call { tool: String, arguments: ArgumentInput },
    /// Call a tool as a task.
    CallAsTask { tool: String, arguments: ArgumentInput, is_detached: bool },
    /// Ask for a task, or change it.
    Task(TaskCommand),
    /// Read a resource.
    Read { uri: String },
    /// Get a prompt.
    Prompt { name: String, arguments: ArgumentInput },
    /// Ask for values that an argument could have.
    Complete {
        /// What the argument belongs to.
        of: CompletionRef,
        /// The argument's name.
        argument: String,
        /// How its value begins.
        prefix: String,
        /// Arguments that already have a value.
        context: Vec<(String, String)>,
    },
    /// Show what changes.
    Watch { uris: Vec<String> },
    /// Show who the server is.
    Info,
    /// Show, verify or save skills.
    Skills(SkillsCommand),
    /// Select a model.
    SelectModel { name: String },
    /// Show the apps.
    ListApps,
    /// Show an app, by its URI or a tool.
    ShowApp { app: String },
    /// Show what the server says of itself beyond the protocol.
    Metadata,
    /// Send any request; the parameters are JSON, or `@FILE`.
    Raw { method: String, params: Option<String> },
    /// Set the least severe log messages the server sends.
    SetLevel { level: LogLevel },
}

/// What is done about tasks; they are named by their ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TaskCommand {
    /// Show the tasks that the server keeps.
    List,
    /// Show how far one has come.
    Get(String),
    /// Wait until one ends, and show its result.
    Result(String),
    /// Cancel one.
    Cancel(String),
    /// Show how far one comes, until it ends.
    Watch(String),
}

impl ClientCommand {
    /// The one server that the command drives, if it is one.
    pub(crate) fn target(&self) -> Option<&Target> {
        match self {
            Self::InSession(target, _) | Self::Check(target, _) | Self::Bridge { to: target, .. } => {
                Some(target)
            }
            Self::Replay { using: ReplayUse::Client(target), .. } => Some(target),
            // A login needs no hint that one is needed.
            Self::Auth(AuthCommand::Status { target }) => target.as_ref(),
            Self::Auth(_) | Self::Shell { .. } | Self::Replay { .. } => None,
        }
    }
}

/// The kinds of things that a server lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ListKind {
    /// Tools.
    Tools,
    /// Resources.
    Resources,
    /// Resource templates.
    Templates,
    /// Prompts.
    Prompts,
    /// Skills.
    Skills,
    /// Models, which are beyond the protocol.
    Models,
    /// All of it.
    All,
}

impl ListKind {
    /// How they are written.
    pub(crate) const NAMES: [&str; 7] =
        ["tools", "resources", "templates", "prompts", "skills", "models", "all"];
}

/// The side of a bridge that clients are on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BridgeSide {
    /// The process that started the bridge.
    Stdio,
    /// Clients that connect to this address.
    Listen { url: Url, transport: UrlTransport, listen: BridgeListenOptions },
}
