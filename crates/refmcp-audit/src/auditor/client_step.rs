//! The situations that a client can be in, and what it can do there.

use std::fmt;

use refmcp_proto::revision::{Method, ServerMethod};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::conversation::declares;
use super::features::Feature;
use crate::verdict::Role;

/// A situation that a client can be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ClientStep {
    /// A list has a further page.
    Pages,
    /// The server pings.
    Ping,
    /// A tool is called.
    Progress,
    /// The server sends log messages.
    Logs,
    /// The list of tools has changed.
    ToolListChange,
    /// The list of prompts has changed.
    PromptListChange,
    /// The list of resources has changed.
    ResourceListChange,
    /// A resource was updated.
    ResourceUpdate,
    /// The server asks for roots.
    Roots,
    /// The server asks the model.
    Sampling,
    /// The server asks the model, and gives it tools.
    SamplingTools,
    /// The server asks the user by a form.
    ElicitForm,
    /// The server sends the user to a URL.
    ElicitUrl,
    /// Roots change.
    RootsChange,
    /// A call is answered late, with progress before.
    Slow,
    /// A result has content that is no text.
    Content,
    /// A result has structured content.
    Structured,
    /// A result says `isError`.
    ToolError,
    /// A call is answered by a JSON-RPC error.
    ProtocolError,
    /// A call can be cancelled.
    Cancel,
    /// The stream of a call ends before its result.
    Cut,
    /// The session has expired.
    Expiry,
    /// The session has an older revision than requested.
    VersionFallback,
}

/// What a client did in a situation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StepOutcome {
    /// What is expected of a client that supports it.
    Done,
    /// It said no: an error, or a user who declined.
    Declined,
    /// Nothing.
    Ignored,
    /// It does not declare the capability.
    NotDeclared,
    /// The situation did not arise.
    NotReached,
}

impl ClientStep {
    /// Every one, in the order of a tour.
    pub const ALL: [Self; 23] = [
        Self::Pages,
        Self::Ping,
        Self::Progress,
        Self::Logs,
        Self::ToolListChange,
        Self::PromptListChange,
        Self::ResourceListChange,
        Self::ResourceUpdate,
        Self::Roots,
        Self::Sampling,
        Self::SamplingTools,
        Self::ElicitForm,
        Self::ElicitUrl,
        Self::RootsChange,
        Self::Slow,
        Self::Content,
        Self::Structured,
        Self::ToolError,
        Self::ProtocolError,
        Self::Cancel,
        Self::Cut,
        Self::Expiry,
        Self::VersionFallback,
    ];

    /// Its name, and what a client does that supports it.
    const fn row(self) -> (&'static str, &'static str) {
        match self {
            Self::Pages => ("pages", "follows the cursors of lists"),
            Self::Ping => ("ping", "answers a ping"),
            Self::Progress => ("progress", "sends a progress token with calls"),
            Self::Logs => ("logs", "sets a log level"),
            Self::ToolListChange => ("tool-list-change", "lists tools again when they have changed"),
            Self::PromptListChange => ("prompt-list-change", "lists prompts again when they have changed"),
            Self::ResourceListChange => {
                ("resource-list-change", "lists resources again when they have changed")
            }
            Self::ResourceUpdate => ("resource-update", "reads a resource again that was updated"),
            Self::Roots => ("roots", "lists its roots"),
            Self::Sampling => ("sampling", "samples its model"),
            Self::SamplingTools => ("sampling-tools", "samples its model with tools"),
            Self::ElicitForm => ("elicit-form", "shows a form, and the user accepts"),
            Self::ElicitUrl => ("elicit-url", "offers a URL, and the user accepts"),
            Self::RootsChange => ("roots-change", "tells that its roots have changed"),
            Self::Slow => ("slow", "waits for a result that comes after five seconds of progress"),
            Self::Content => ("content", "goes on after content that is no text"),
            Self::Structured => ("structured", "goes on after structured content"),
            Self::ToolError => ("tool-error", "goes on after a result that says isError"),
            Self::ProtocolError => ("protocol-error", "goes on after a JSON-RPC error"),
            Self::Cancel => ("cancel", "cancels a call"),
            Self::Cut => ("cut", "resumes a stream that ended before the result"),
            Self::Expiry => ("expiry", "opens another session when its own has expired"),
            Self::VersionFallback => ("version-fallback", "goes on in an older revision than it requests"),
        }
    }

    /// Its name; steps of a tour have the same.
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// What a client does that supports it.
    pub const fn shows(self) -> &'static str {
        self.row().1
    }

    /// The step that a request of the server makes.
    pub(super) fn of_request(method: &str, params: &Value) -> Option<Self> {
        Some(match ServerMethod::known(method)? {
            ServerMethod::Ping => Self::Ping,
            ServerMethod::ListRoots => Self::Roots,
            ServerMethod::CreateMessage if !params["tools"].is_null() => Self::SamplingTools,
            ServerMethod::CreateMessage => Self::Sampling,
            ServerMethod::Elicit if params["mode"] == "url" => Self::ElicitUrl,
            ServerMethod::Elicit => Self::ElicitForm,
            _ => return None,
        })
    }

    /// The step that is done by listing.
    pub(super) fn of_list(method: &str) -> Option<Self> {
        Some(match Method::known(method)? {
            Method::ListTools => Self::ToolListChange,
            Method::ListPrompts => Self::PromptListChange,
            Method::ListResources => Self::ResourceListChange,
            _ => return None,
        })
    }

    /// Whether the capabilities of a client declare what the step takes; most take none.
    pub(super) fn is_declared(self, capabilities: &Value) -> bool {
        let feature = match self {
            Self::Roots => Feature::Roots,
            Self::RootsChange => Feature::ListChanges,
            Self::Sampling => Feature::Sampling,
            Self::ElicitForm => Feature::FormElicitation,
            Self::ElicitUrl => Feature::UrlElicitation,
            Self::SamplingTools => return declares(capabilities, &["sampling", "tools"]),
            _ => return true,
        };
        feature.is_declared(Role::Client, capabilities)
    }
}

impl fmt::Display for ClientStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for StepOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Done => "done",
            Self::Declined => "declined",
            Self::Ignored => "ignored",
            Self::NotDeclared => "not declared",
            Self::NotReached => "not reached",
        })
    }
}
