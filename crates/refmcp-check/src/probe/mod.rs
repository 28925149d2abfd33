//! The probes: each sends requests that are right or wrong in one respect, and judges what comes back.
//!
//! A probe is a row of a table. A *gentle* one keeps the rules for clients, or breaks none that could harm the session: it shares
//! its session with others, and an auditor judges all that passes there. A *harsh* one has a connection of its own, and only
//! the probe judges what a server answers to a client like that. CONTRIBUTING.md says how one is added.

mod authorization;
mod context;
mod http;
mod input_rounds;
mod items;
mod lifecycle;
mod messages;
mod stateless;
mod tasks;
mod tools;
mod utilities;

use refmcp_client::transport::BoxFuture;
use refmcp_proto::revision::Revision;
use refmcp_proto::rule::Rule;

pub(crate) use context::{Context, Shared, reason};

use crate::target::{Target, TargetTransport};

/// A probe.
pub(crate) struct Probe {
    pub(crate) name: &'static str,
    /// The rules that it judges.
    pub(crate) rules: &'static [&'static Rule],
    /// The rules that the auditor judges by what the probe brings about.
    pub(crate) audited: &'static [&'static Rule],
    pub(crate) transport: ProbeTransport,
    pub(crate) conduct: Conduct,
    /// Whether it is made where the server lets the check in nowhere.
    pub(crate) is_without_access: bool,
    /// In which of the revisions that the server speaks it runs.
    pub(crate) runs: Runs,
    pub(crate) run: Run,
}

type Run = for<'a> fn(&'a mut Context) -> BoxFuture<'a, Result<(), Stop>>;

/// The transports that a probe can be made over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProbeTransport {
    Any,
    /// Where all messages share one stream.
    Pipe,
    /// At a child process.
    Child,
    /// Over streamable HTTP.
    Http,
    /// Over HTTP+SSE.
    Sse,
}

impl ProbeTransport {
    fn is(self, target: &Target) -> bool {
        match self {
            Self::Any => true,
            Self::Pipe => !matches!(target.transport, TargetTransport::Http(_)),
            Self::Child => matches!(target.transport, TargetTransport::Child(_)),
            Self::Http => matches!(target.transport, TargetTransport::Http(_)),
            Self::Sse => matches!(target.transport, TargetTransport::Sse(..)),
        }
    }
}

/// How a probe treats the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conduct {
    Gentle,
    Harsh,
}

/// In which revisions a probe runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runs {
    /// In each that has one of its rules.
    Each,
    /// In the newest that has one of its rules: what it shows hardly depends on the revision.
    Newest,
}

/// Why a probe judges no further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The server does not offer what it needs, or it may not be tried.
    Skipped(String),
    /// It could not be found out.
    NotVerified(String),
}

impl Probe {
    /// A probe that keeps the rules for clients.
    const fn gentle(name: &'static str, rules: &'static [&'static Rule], run: Run) -> Self {
        let (transport, conduct) = (ProbeTransport::Any, Conduct::Gentle);
        let (audited, is_without_access, runs): (&[&Rule], _, _) = (&[], false, Runs::Each);
        Self { name, rules, audited, transport, conduct, is_without_access, runs, run }
    }

    /// A probe that breaks them.
    pub(crate) const fn harsh(name: &'static str, rules: &'static [&'static Rule], run: Run) -> Self {
        Self { conduct: Conduct::Harsh, ..Self::gentle(name, rules, run) }
    }

    /// The same over one transport alone.
    const fn over(self, transport: ProbeTransport) -> Self {
        Self { transport, ..self }
    }

    /// The same, in the newest revision alone, and where the server wants authorization too.
    const fn without_access(self) -> Self {
        Self { is_without_access: true, ..self.once() }
    }

    /// The same, by which the auditor judges these rules.
    const fn for_auditor(self, audited: &'static [&'static Rule]) -> Self {
        Self { audited, ..self }
    }

    /// The same in the newest revision alone.
    const fn once(self) -> Self {
        Self { runs: Runs::Newest, ..self }
    }

    /// Whether a revision has what the probe judges.
    pub(crate) fn is_of(&self, revision: Revision) -> bool {
        self.rules.is_empty() || self.rules.iter().any(|rule| rule.revisions.contains(revision))
    }

    pub(crate) fn fits(&self, target: &Target) -> bool {
        self.transport.is(target)
    }
}

/// Every probe.
pub(crate) fn all() -> impl Iterator<Item = &'static Probe> {
    let families = [
        messages::PROBES,
        lifecycle::PROBES,
        stateless::PROBES,
        http::PROBES,
        authorization::PROBES,
        tools::PROBES,
        input_rounds::PROBES,
        items::PROBES,
        utilities::PROBES,
        tasks::PROBES,
    ];
    families.into_iter().flatten()
}

/// The names of all probes.
pub fn probe_names() -> impl Iterator<Item = &'static str> {
    all().map(|probe| probe.name)
}

/// The rules that probes judge, each once. An auditor judges others by what passes.
pub fn checked_rules() -> impl Iterator<Item = &'static Rule> {
    let mut seen = std::collections::HashSet::new();
    all().flat_map(|probe| probe.rules).copied().filter(move |rule| seen.insert(rule.id))
}

#[cfg(test)]
mod tests {
    use refmcp_audit::verdict::Role;

    use super::*;

    #[test]
    fn probes_have_different_names_and_judge_rules_that_bind_servers() {
        let mut names: Vec<&str> = all().map(|probe| probe.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for rule in checked_rules() {
            assert!(Role::Server.is_bound_by(rule), "{rule}");
        }
    }
}
