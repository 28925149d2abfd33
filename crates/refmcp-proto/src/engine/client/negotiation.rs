//! Version negotiation, as pure functions: which revision is tried, and what follows from the response.

use super::config::{TransportKind, VersionPolicy};
use super::io::{OpenError, TransportError};
use crate::jsonrpc::{RpcError, code};
use crate::model::UnsupportedVersionData;
use crate::revision::{Lifecycle, Method, Revision};

/// A first message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    /// `server/discover`, in a revision without sessions.
    Discover(Revision),
    /// `initialize`.
    Initialize(Revision),
}

impl Attempt {
    /// The method of the message.
    pub(super) fn method(self) -> &'static str {
        match self {
            Self::Discover(_) => Method::Discover.name(),
            Self::Initialize(_) => Method::Initialize.name(),
        }
    }
}

/// What an attempt came to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AttemptOutcome {
    /// The server named its revisions.
    Speaks(Vec<String>),
    /// The result cannot be read.
    Malformed(String),
    /// The server responded with an error.
    Error(RpcError),
    /// The transport failed, or the server refused by a status.
    Wire(TransportError),
    /// No response came in time.
    TimedOut {
        /// How long the client has waited.
        after_millis: u64,
    },
}

/// What follows from an attempt.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum NextStep {
    /// Use this revision.
    Speak(Revision),
    /// Try this next.
    Try(Attempt),
    /// There is no common revision, or no way to find one.
    GiveUp(OpenError),
}

/// What is tried first.
pub(super) fn first(version_policy: VersionPolicy) -> Attempt {
    if let Some(revision) = version_policy.with(Lifecycle::PerRequest).next() {
        return Attempt::Discover(revision);
    }
    Attempt::Initialize(version_policy.with(Lifecycle::Handshake).next().unwrap_or(Revision::LATEST_SESSION))
}

/// What follows from an attempt of `server/discover`. `again`: whether it was sent before in this revision.
pub(super) fn after_discover(
    version_policy: VersionPolicy,
    way: TransportKind,
    again: bool,
    outcome: AttemptOutcome,
) -> NextStep {
    let older = version_policy.with(Lifecycle::Handshake).next().map(Attempt::Initialize);
    match outcome {
        AttemptOutcome::Speaks(theirs) => choose(version_policy, &theirs, Some(NextStep::Speak)),
        AttemptOutcome::Error(error) => match error.code {
            code::UNSUPPORTED_VERSION => {
                let ask_in = |revision| NextStep::Try(Attempt::Discover(revision));
                match (supported(&error), older) {
                    // A server that has sessions alone names no revision without them.
                    (theirs, Some(older)) if theirs.is_empty() => NextStep::Try(older),
                    (theirs, _) => choose(version_policy, &theirs, (!again).then_some(ask_in)),
                }
            }
            // Only servers without sessions know these codes: an older revision would not help.
            code::HEADER_MISMATCH | code::MISSING_CAPABILITY => NextStep::GiveUp(OpenError::Refused(error)),
            _ => older.map_or_else(|| NextStep::GiveUp(OpenError::Refused(error)), NextStep::Try),
        },
        AttemptOutcome::Malformed(what) => {
            older.map_or_else(|| NextStep::GiveUp(OpenError::Protocol(what)), NextStep::Try)
        }
        AttemptOutcome::Wire(TransportError::Refused { status, error, body, retry_after })
            if matches!(status, 400 | 404 | 405 | 406 | 415) =>
        {
            match (error, older) {
                (Some(error), _) => after_discover(version_policy, way, again, AttemptOutcome::Error(error)),
                (None, Some(older)) => NextStep::Try(older),
                (None, None) => NextStep::GiveUp(
                    TransportError::Refused { status, error: None, body, retry_after }.into(),
                ),
            }
        }
        AttemptOutcome::Wire(error) => NextStep::GiveUp(error.into()),
        AttemptOutcome::TimedOut { after_millis } => match (way, older) {
            (TransportKind::Pipe, Some(older)) if !again => NextStep::Try(older),
            _ => NextStep::GiveUp(OpenError::TimedOut { after_millis }),
        },
    }
}

/// Whether there is something to try after a `server/discover` without response.
pub(super) fn goes_on_after_silence(version_policy: VersionPolicy, again: bool) -> bool {
    !again && version_policy.with(Lifecycle::Handshake).next().is_some()
}

/// What follows from an attempt of `initialize` in the revision `asked`. `again`: whether another one was tried before.
pub(super) fn after_initialize(
    version_policy: VersionPolicy,
    asked: Revision,
    again: bool,
    outcome: AttemptOutcome,
) -> NextStep {
    match outcome {
        AttemptOutcome::Speaks(theirs) => {
            let agreed = version_policy
                .with(Lifecycle::Handshake)
                .find(|revision| theirs.iter().any(|name| name == revision.as_str()));
            agreed.map_or_else(|| no_common(version_policy, theirs), NextStep::Speak)
        }
        AttemptOutcome::Error(error) => {
            let theirs = supported(&error);
            if theirs.is_empty() {
                return NextStep::GiveUp(OpenError::Refused(error));
            }
            let other = version_policy
                .with(Lifecycle::Handshake)
                .find(|revision| *revision != asked && theirs.iter().any(|name| name == revision.as_str()));
            if let (Some(other), false) = (other, again) {
                return NextStep::Try(Attempt::Initialize(other));
            }
            // The server was too slow to respond to `server/discover`, and knows it by now.
            let stateless = version_policy
                .with(Lifecycle::PerRequest)
                .find(|revision| theirs.iter().any(|name| name == revision.as_str()));
            stateless
                .map_or_else(|| no_common(version_policy, theirs), |it| NextStep::Try(Attempt::Discover(it)))
        }
        AttemptOutcome::Malformed(what) => NextStep::GiveUp(OpenError::Protocol(what)),
        AttemptOutcome::Wire(TransportError::Refused { error: Some(error), .. })
            if !supported(&error).is_empty() =>
        {
            after_initialize(version_policy, asked, again, AttemptOutcome::Error(error))
        }
        AttemptOutcome::Wire(error) => NextStep::GiveUp(error.into()),
        AttemptOutcome::TimedOut { after_millis } => NextStep::GiveUp(OpenError::TimedOut { after_millis }),
    }
}

/// Goes on with the newest common revision: by `stateless` with one that has no sessions, if given.
fn choose(
    version_policy: VersionPolicy,
    theirs: &[String],
    stateless: Option<impl Fn(Revision) -> NextStep>,
) -> NextStep {
    let common = |lifecycle| {
        version_policy.with(lifecycle).find(|revision| theirs.iter().any(|name| name == revision.as_str()))
    };
    if let (Some(revision), Some(go_on)) = (common(Lifecycle::PerRequest), stateless) {
        return go_on(revision);
    }
    common(Lifecycle::Handshake).map_or_else(
        || no_common(version_policy, theirs.to_vec()),
        |it| NextStep::Try(Attempt::Initialize(it)),
    )
}

fn no_common(version_policy: VersionPolicy, theirs: Vec<String>) -> NextStep {
    let ours = version_policy.revisions().into_iter().map(Revision::as_str).collect();
    NextStep::GiveUp(OpenError::NoCommonRevision { ours, theirs })
}

/// The supported revisions that an error names.
fn supported(error: &RpcError) -> Vec<String> {
    let data = error.data.clone().and_then(|data| serde_json::from_value(data).ok());
    data.map_or_else(Vec::new, |data: UnsupportedVersionData| data.supported)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MODERN: Revision = Revision::V2026_07_28;
    const SESSION: Revision = Revision::V2025_11_25;

    fn error(code: i64, supported: &[&str]) -> AttemptOutcome {
        let error = RpcError::new(code, "no");
        AttemptOutcome::Error(if supported.is_empty() {
            error
        } else {
            error.with_data(json!({ "supported": supported }))
        })
    }

    fn refused(status: u16, error: Option<i64>) -> AttemptOutcome {
        let error = error.map(|code| RpcError::new(code, "no"));
        AttemptOutcome::Wire(TransportError::Refused {
            status,
            error,
            body: String::new(),
            retry_after: None,
        })
    }

    fn message_received(names: &[&str]) -> AttemptOutcome {
        AttemptOutcome::Speaks(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn discover_outcomes_decide_the_next_step() {
        let open = |revision| NextStep::Try(Attempt::Initialize(revision));
        let cases = [
            (message_received(&["2026-07-28"]), NextStep::Speak(MODERN)),
            (message_received(&["2025-06-18", "2024-11-05"]), open(Revision::V2025_06_18)),
            (error(-32022, &["2026-07-28"]), NextStep::Try(Attempt::Discover(MODERN))),
            (error(-32022, &["2025-03-26"]), open(Revision::V2025_03_26)),
            (error(-32022, &[]), open(SESSION)),
            (error(-32601, &[]), open(SESSION)),
            (error(-32602, &[]), open(SESSION)),
            (error(-32000, &[]), open(SESSION)),
            (refused(400, None), open(SESSION)),
            (refused(404, Some(-32601)), open(SESSION)),
            (refused(405, None), open(SESSION)),
            (refused(400, Some(-32000)), open(SESSION)),
            (AttemptOutcome::Malformed("?".into()), open(SESSION)),
            (AttemptOutcome::TimedOut { after_millis: 1 }, open(SESSION)),
        ];
        for (outcome, step) in cases {
            assert_eq!(
                after_discover(VersionPolicy::Auto, TransportKind::Pipe, false, outcome.clone()),
                step,
                "{outcome:?}"
            );
        }
        for hopeless in [
            error(-32020, &[]),
            error(-32021, &[]),
            error(-32022, &["2099-01-01"]),
            refused(500, None),
            refused(400, Some(-32020)),
            AttemptOutcome::Wire(TransportError::Unauthorized { status: 401, challenge: None, reason: None }),
            AttemptOutcome::Wire(TransportError::Unreachable("gone".into())),
        ] {
            let step = after_discover(VersionPolicy::Auto, TransportKind::Http, false, hopeless.clone());
            assert!(matches!(step, NextStep::GiveUp(_)), "{hopeless:?}: {step:?}");
        }
        let silence = AttemptOutcome::TimedOut { after_millis: 1 };
        assert_eq!(
            after_discover(VersionPolicy::Auto, TransportKind::Http, false, silence),
            NextStep::GiveUp(OpenError::TimedOut { after_millis: 1 }),
            "an exchange that is not answered says nothing about revisions"
        );
    }

    #[test]
    fn a_server_that_refuses_the_revision_it_named_is_given_up() {
        let step =
            after_discover(VersionPolicy::Auto, TransportKind::Pipe, true, error(-32022, &["2026-07-28"]));
        assert!(matches!(step, NextStep::GiveUp(OpenError::NoCommonRevision { .. })), "{step:?}");
    }

    #[test]
    fn the_version_policy_limits_the_attempts() {
        assert_eq!(
            first(VersionPolicy::Exactly(Revision::V2025_03_26)),
            Attempt::Initialize(Revision::V2025_03_26)
        );
        assert_eq!(first(VersionPolicy::Legacy), Attempt::Initialize(SESSION));
        assert_eq!(first(VersionPolicy::Modern), Attempt::Discover(MODERN));
        let step = after_discover(VersionPolicy::Modern, TransportKind::Pipe, false, error(-32601, &[]));
        assert!(matches!(step, NextStep::GiveUp(OpenError::Refused(_))), "{step:?}");
        let step = after_initialize(
            VersionPolicy::Exactly(Revision::V2025_03_26),
            Revision::V2025_03_26,
            false,
            message_received(&["2024-11-05"]),
        );
        let NextStep::GiveUp(error) = step else { panic!("{step:?}") };
        assert_eq!(error.to_string(), "no common revision: we speak 2025-03-26, the server 2024-11-05");
    }

    #[test]
    fn initialize_takes_the_revision_that_the_server_prefers() {
        assert_eq!(
            after_initialize(VersionPolicy::Auto, SESSION, false, message_received(&["2024-11-05"])),
            NextStep::Speak(Revision::V2024_11_05)
        );
        let other = error(-32602, &["2025-03-26"]);
        assert_eq!(
            after_initialize(VersionPolicy::Auto, SESSION, false, other.clone()),
            NextStep::Try(Attempt::Initialize(Revision::V2025_03_26))
        );
        assert!(matches!(after_initialize(VersionPolicy::Auto, SESSION, true, other), NextStep::GiveUp(_)));
        let newest = after_initialize(VersionPolicy::Auto, SESSION, false, message_received(&["2026-07-28"]));
        assert!(matches!(newest, NextStep::GiveUp(_)), "no handshake opens that one");
    }

    #[test]
    fn discover_is_sent_again_after_initialize_is_refused() {
        let needs_none = error(-32022, &["2026-07-28"]);
        let ask = NextStep::Try(Attempt::Discover(MODERN));
        assert_eq!(after_initialize(VersionPolicy::Auto, SESSION, false, needs_none.clone()), ask);
        assert!(matches!(
            after_initialize(VersionPolicy::Legacy, SESSION, false, needs_none),
            NextStep::GiveUp(_)
        ));
        let silence = AttemptOutcome::TimedOut { after_millis: 1 };
        let step = after_discover(VersionPolicy::Auto, TransportKind::Pipe, true, silence);
        assert_eq!(step, NextStep::GiveUp(OpenError::TimedOut { after_millis: 1 }));
    }
}
