//! The steps of the tour as a table: when each happens, which clients it is for, and what it shows.

use std::collections::BTreeSet;
use std::fmt;

use refmcp_server::peer::Peer;
use refmcp_server::revision::{Elicitation, Lifecycle, Resumption, UrlElicitation};

/// A step of the tour. The order is that in which they happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Lists come in pages.
    Pages,
    /// The client is pinged.
    Ping,
    /// A call tells of its progress.
    Progress,
    /// Log messages at each level.
    Logs,
    /// A tool comes and goes.
    ToolListChange,
    /// A prompt comes and goes.
    PromptListChange,
    /// A resource comes and goes.
    ResourceListChange,
    /// Resources that the client has subscribed to are updated.
    ResourceUpdate,
    /// The client is asked for its roots.
    Roots,
    /// The client is asked to sample its model.
    Sampling,
    /// The same with a tool that the model can ask for.
    SamplingTools,
    /// The user is shown a form.
    ElicitForm,
    /// The user is sent to a URL.
    ElicitUrl,
    /// The client is asked for its roots after they have changed.
    RootsChange,
    /// A call is answered late.
    Slow,
    /// A result with content of each kind.
    Content,
    /// A result that says `isError`.
    ToolError,
    /// A call that is answered by a JSON-RPC error.
    ProtocolError,
    /// A call that waits to be cancelled.
    Cancel,
    /// The stream of a call ends before its result.
    Cut,
    /// The session ends.
    Expiry,
    /// A session is opened in an older revision than requested.
    VersionFallback,
}

/// When a step happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// When the client lists.
    List,
    /// In an open session, while no call is in flight.
    Session,
    /// In an open session, or in a call of any tool.
    SessionOrCall,
    /// In a call of any tool.
    Call,
    /// In any call but the client's first.
    LaterCall,
    /// By the result of the tool `tour`.
    TourResult,
    /// After the last result of the tool `tour`, or after the third call of other tools.
    LastCall,
    /// When the client opens a session again.
    Initialize,
}

/// A row of the table.
struct Row {
    name: &'static str,
    occasion: Occasion,
    shows: &'static str,
}

impl Step {
    /// Every step, in the order in which they happen.
    pub const ALL: [Self; 22] = [
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
        Self::ToolError,
        Self::ProtocolError,
        Self::Cancel,
        Self::Cut,
        Self::Expiry,
        Self::VersionFallback,
    ];

    const fn row(self) -> Row {
        use Occasion::{Call, Initialize, LastCall, LaterCall, List, Session, SessionOrCall, TourResult};
        let (name, occasion, shows) = match self {
            Self::Pages => ("pages", List, "lists come in pages, to be followed by their cursors"),
            Self::Ping => ("ping", Session, "the server pings the client"),
            Self::Progress => ("progress", Call, "a call tells of its progress"),
            Self::Logs => ("logs", SessionOrCall, "log messages at each of the eight levels"),
            Self::ToolListChange => ("tool-list-change", SessionOrCall, "a tool comes and goes"),
            Self::PromptListChange => ("prompt-list-change", SessionOrCall, "a prompt comes and goes"),
            Self::ResourceListChange => ("resource-list-change", SessionOrCall, "a resource comes and goes"),
            Self::ResourceUpdate => ("resource-update", SessionOrCall, "resources are updated"),
            Self::Roots => ("roots", SessionOrCall, "the client is asked for its roots"),
            Self::Sampling => ("sampling", SessionOrCall, "the client's model is asked for a text"),
            Self::SamplingTools => ("sampling-tools", SessionOrCall, "the client's model is given a tool"),
            Self::ElicitForm => ("elicit-form", SessionOrCall, "a form with a field of every kind"),
            Self::ElicitUrl => ("elicit-url", SessionOrCall, "the user is sent to a web page"),
            Self::RootsChange => {
                ("roots-change", SessionOrCall, "roots are asked for again once they change")
            }
            Self::Slow => ("slow", Call, "a call is answered after six seconds of progress"),
            Self::Content => ("content", TourResult, "a result with content of every kind"),
            Self::ToolError => ("tool-error", TourResult, "a result that says isError"),
            Self::ProtocolError => ("protocol-error", TourResult, "a JSON-RPC error, -32602"),
            Self::Cancel => ("cancel", TourResult, "a call that waits to be cancelled"),
            Self::Cut => ("cut", LaterCall, "the stream of a call ends before its result"),
            Self::Expiry => ("expiry", LastCall, "the session ends: 404 to the next request"),
            Self::VersionFallback => {
                ("version-fallback", Initialize, "a session in an older revision than requested")
            }
        };
        Row { name, occasion, shows }
    }

    /// Its name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// When it happens.
    pub const fn occasion(self) -> Occasion {
        self.row().occasion
    }

    /// What it shows.
    pub const fn shows(self) -> &'static str {
        self.row().shows
    }

    /// Whether it changes a list or a resource.
    pub(crate) fn is_change(self) -> bool {
        matches!(
            self,
            Self::ToolListChange | Self::PromptListChange | Self::ResourceListChange | Self::ResourceUpdate
        )
    }

    /// Whether it can happen to this client: its revision and transport have it, and the client declares what it takes.
    pub(crate) fn is_for(self, peer: &Peer, transport: &str) -> bool {
        let (rules, capabilities) = (peer.rules(), &peer.capabilities);
        let has_sessions = rules.lifecycle == Lifecycle::Handshake;
        let is_http = transport == "http";
        match self {
            Self::Ping => has_sessions,
            Self::Roots | Self::RootsChange if !capabilities.has_roots() => false,
            Self::RootsChange => has_sessions,
            Self::Sampling => capabilities.samples(),
            Self::SamplingTools => capabilities.samples_with_tools() && rules.sampling_tools,
            Self::ElicitForm => capabilities.elicits_forms() && rules.elicitation != Elicitation::Unknown,
            Self::ElicitUrl => {
                capabilities.elicits_urls() && rules.url_elicitation != UrlElicitation::Unknown
            }
            Self::Cut => is_http && rules.resumption == Resumption::Polling,
            Self::Expiry | Self::VersionFallback => is_http && has_sessions,
            _ => true,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The steps of a tour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TourSteps(BTreeSet<Step>);

/// A name that no step has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no step of the tour; there are all, {names}", names = Step::ALL.map(Step::name).join(", "))]
pub struct UnknownStep(pub String);

impl TourSteps {
    /// Steps by their names; `all` stands for every one.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, UnknownStep> {
        let mut steps = BTreeSet::new();
        for name in names {
            if name == "all" {
                steps.extend(Step::ALL);
                continue;
            }
            let step = Step::ALL.into_iter().find(|step| step.name() == name);
            steps.insert(step.ok_or_else(|| UnknownStep(name.to_owned()))?);
        }
        Ok(Self(steps))
    }

    /// These without others.
    #[must_use]
    pub fn without(mut self, skipped: &Self) -> Self {
        self.0.retain(|step| !skipped.has(*step));
        self
    }

    /// Whether a step is among them.
    pub fn has(&self, step: Step) -> bool {
        self.0.contains(&step)
    }

    /// The steps in their order.
    pub fn iter(&self) -> impl Iterator<Item = Step> + '_ {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_the_table_is_that_of_the_steps() {
        assert!(Step::ALL.is_sorted());
        let names: BTreeSet<&str> = Step::ALL.iter().map(|step| step.name()).collect();
        assert_eq!(names.len(), Step::ALL.len());
    }

    #[test]
    fn steps_are_chosen_by_their_names() {
        let all = TourSteps::from_names(["all"]).unwrap();
        assert_eq!(all.iter().count(), Step::ALL.len());
        let some = TourSteps::from_names(["ping", "cut"]).unwrap();
        assert_eq!(some.iter().collect::<Vec<_>>(), [Step::Ping, Step::Cut]);
        assert!(!all.without(&some).has(Step::Cut));
        let error = TourSteps::from_names(["pings"]).unwrap_err().to_string();
        assert!(
            error.starts_with("\"pings\" is no step of the tour; there are all, pages, ping,"),
            "{error}"
        );
    }
}
