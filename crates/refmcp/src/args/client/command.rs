//! The commands that drive a server, with their arguments resolved.

use refmcp_proto::model::LogLevel;
use url::Url;

use super::{AuthCommand, BridgeListenOptions};
use crate::args::{Target, UrlTransport};
use crate::arguments::ArgumentInput;

/// A command that drives a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClientCommand {
    /// Show what it offers: lists, or single things by their names, whole.
    List { target: Target, what: ListKind, names: Vec<String> },
    /// Call a tool.
    Call { target: Target, tool: String, arguments: ArgumentInput },
    /// Read a resource.
    Read { target: Target, uri: String },
    /// Get a prompt.
    Prompt { target: Target, name: String, arguments: ArgumentInput },
    /// Ask for values that an argument could have.
    Complete {
        target: Target,
        /// What the argument belongs to.
        of: CompletionReference,
        /// The argument's name.
        argument: String,
        /// How its value begins.
        prefix: String,
        /// Arguments that already have a value.
        context: Vec<(String, String)>,
    },
    /// Show what changes.
    Watch { target: Target, uris: Vec<String> },
    /// Show who the server is.
    Info { target: Target },
    /// Select a model.
    SelectModel { target: Target, name: String },
    /// Show what the server says of itself beyond the protocol.
    Metadata { target: Target },
    /// Send any request; the parameters are JSON, or `@FILE`.
    Raw { target: Target, method: String, params: Option<String> },
    /// Set the least severe log messages the server sends.
    SetLevel { target: Target, level: LogLevel },
    /// Talk to servers, line by line; with none named, to all of the configuration file.
    Shell { targets: Vec<Target> },
    /// Serve clients of one transport and revision by a server of another.
    Bridge { from: BridgeSide, to: Target },
    /// Log in or out, or show the logins.
    Auth(AuthCommand),
}

impl ClientCommand {
    /// The one server that the command drives, if it is one.
    pub(crate) fn target(&self) -> Option<&Target> {
        match self {
            Self::List { target, .. }
            | Self::Call { target, .. }
            | Self::Read { target, .. }
            | Self::Prompt { target, .. }
            | Self::Complete { target, .. }
            | Self::Watch { target, .. }
            | Self::Info { target }
            | Self::SelectModel { target, .. }
            | Self::Metadata { target }
            | Self::Raw { target, .. }
            | Self::SetLevel { target, .. }
            | Self::Bridge { to: target, .. } => Some(target),
            // A login needs no hint that one is needed.
            Self::Auth(AuthCommand::Status { target }) => target.as_ref(),
            Self::Auth(_) | Self::Shell { .. } => None,
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
    /// Models, which are beyond the protocol.
    Models,
    /// All of it.
    All,
}

impl ListKind {
    /// The names that [`ListKind::parse`] knows.
    pub(crate) const NAMES: [&str; 6] = ["tools", "resources", "templates", "prompts", "models", "all"];

    pub(crate) fn parse(name: &str) -> Option<Self> {
        let kinds = [Self::Tools, Self::Resources, Self::Templates, Self::Prompts, Self::Models, Self::All];
        Self::NAMES.iter().zip(kinds).find_map(|(known, kind)| (*known == name).then_some(kind))
    }
}

/// The prompt or template that an argument belongs to (`ref` of `completion/complete`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CompletionReference {
    /// A prompt, by name.
    Prompt(String),
    /// A resource template, by its URI.
    Template(String),
}

/// The side of a bridge that clients are on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BridgeSide {
    /// The process that started the bridge.
    Stdio,
    /// Clients that connect to this address.
    Listen { url: Url, transport: UrlTransport, listen: BridgeListenOptions },
}
