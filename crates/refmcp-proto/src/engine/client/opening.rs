//! How a conversation is opened: which revision is tried, and what an answer to the attempt means.

use super::config::{TransportKind, VersionPolicy};
use super::io::{OpenError, TransportError};
use crate::jsonrpc::{RpcError, code};
use crate::model::UnsupportedVersionData;
use crate::revision::{Lifecycle, Revision};

/// The first message of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    /// Asks what the server speaks, in a revision that needs no session.
    Discover(Revision),
    /// Opens a session.
    Initialize(Revision),
}

/// What an attempt came to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Evidence {
    /// The server named the revisions that it speaks.
    Speaks(Vec<String>),
    /// It answered something that is no answer to the question.
    Nonsense(String),
    /// It answered with an error.
    Error(RpcError),
    /// The way failed, or refused.
    Wire(TransportError),
    /// Nothing came in time.
    Silence {
        /// How long it was waited for.
        after_millis: u64,
    },
}

/// What follows from it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Verdict {
    /// It speaks this one.
    Speak(Revision),
    /// Try this next.
    Try(Attempt),
    /// There is no way.
    GiveUp(OpenError),
}

/// What is tried first.
pub(super) fn first(version_policy: VersionPolicy) -> Attempt {
    if let Some(revision) = version_policy.with(Lifecycle::PerRequest).next() {
        return Attempt::Discover(revision);
    }
    Attempt::Initialize(version_policy.with(Lifecycle::Handshake).next().unwrap_or(Revision::LATEST_SESSION))
}

/// What follows from the answer to a question which revisions the server speaks. `again`: whether it was asked before
/// in this very revision.
pub(super) fn after_discover(
    version_policy: VersionPolicy,
    way: TransportKind,
    again: bool,
    evidence: Evidence,
) -> Verdict {
    let older = version_policy.with(Lifecycle::Handshake).next().map(Attempt::Initialize);
    match evidence {
        Evidence::Speaks(theirs) => choose(version_policy, &theirs, Some(Verdict::Speak)),
        Evidence::Error(error) => match error.code {
            code::UNSUPPORTED_VERSION => {
                let ask_in = |revision| Verdict::Try(Attempt::Discover(revision));
                choose(version_policy, &supported(&error), (!again).then_some(ask_in))
            }
            // Only servers of that version_policy know these: an older revision would not help.
            code::HEADER_MISMATCH | code::MISSING_CAPABILITY => Verdict::GiveUp(OpenError::Refused(error)),
            _ => older.map_or_else(|| Verdict::GiveUp(OpenError::Refused(error)), Verdict::Try),
        },
        Evidence::Nonsense(what) => {
            older.map_or_else(|| Verdict::GiveUp(OpenError::Protocol(what)), Verdict::Try)
        }
        Evidence::Wire(TransportError::Refused { status, error, body })
            if matches!(status, 400 | 404 | 405 | 406 | 415) =>
        {
            match (error, older) {
                (Some(error), _) => after_discover(version_policy, way, again, Evidence::Error(error)),
                (None, Some(older)) => Verdict::Try(older),
                (None, None) => Verdict::GiveUp(TransportError::Refused { status, error: None, body }.into()),
            }
        }
        Evidence::Wire(fault) => Verdict::GiveUp(fault.into()),
        Evidence::Silence { after_millis } => match (way, older) {
            (TransportKind::Pipe, Some(older)) if !again => Verdict::Try(older),
            _ => Verdict::GiveUp(OpenError::TimedOut { after_millis }),
        },
    }
}

/// Whether there is something to try after a question which revisions the server speaks that was ignored.
pub(super) fn goes_on_after_silence(version_policy: VersionPolicy, again: bool) -> bool {
    !again && version_policy.with(Lifecycle::Handshake).next().is_some()
}

/// What follows from the answer to an attempt to open a session in `asked`. `again`: whether another one was tried
/// before.
pub(super) fn after_initialize(
    version_policy: VersionPolicy,
    asked: Revision,
    again: bool,
    evidence: Evidence,
) -> Verdict {
    match evidence {
        Evidence::Speaks(theirs) => {
            let agreed = version_policy
                .with(Lifecycle::Handshake)
                .find(|revision| theirs.iter().any(|name| name == revision.as_str()));
            agreed.map_or_else(|| no_common(version_policy, theirs), Verdict::Speak)
        }
        Evidence::Error(error) => {
            let theirs = supported(&error);
            if theirs.is_empty() {
                return Verdict::GiveUp(OpenError::Refused(error));
            }
            let other = version_policy
                .with(Lifecycle::Handshake)
                .find(|revision| *revision != asked && theirs.iter().any(|name| name == revision.as_str()));
            if let (Some(other), false) = (other, again) {
                return Verdict::Try(Attempt::Initialize(other));
            }
            // A server that was too slow to say so when it was asked: it has understood the question by now.
            let stateless = version_policy
                .with(Lifecycle::PerRequest)
                .find(|revision| theirs.iter().any(|name| name == revision.as_str()));
            stateless
                .map_or_else(|| no_common(version_policy, theirs), |it| Verdict::Try(Attempt::Discover(it)))
        }
        Evidence::Nonsense(what) => Verdict::GiveUp(OpenError::Protocol(what)),
        Evidence::Wire(TransportError::Refused { error: Some(error), .. })
            if !supported(&error).is_empty() =>
        {
            after_initialize(version_policy, asked, again, Evidence::Error(error))
        }
        Evidence::Wire(fault) => Verdict::GiveUp(fault.into()),
        Evidence::Silence { after_millis } => Verdict::GiveUp(OpenError::TimedOut { after_millis }),
    }
}

/// Goes on with the newest revision that both sides speak: with one that needs no session in the way that is given, if
/// any is.
fn choose(
    version_policy: VersionPolicy,
    theirs: &[String],
    stateless: Option<impl Fn(Revision) -> Verdict>,
) -> Verdict {
    let common = |lifecycle| {
        version_policy.with(lifecycle).find(|revision| theirs.iter().any(|name| name == revision.as_str()))
    };
    if let (Some(revision), Some(go_on)) = (common(Lifecycle::PerRequest), stateless) {
        return go_on(revision);
    }
    common(Lifecycle::Handshake).map_or_else(
        || no_common(version_policy, theirs.to_vec()),
        |it| Verdict::Try(Attempt::Initialize(it)),
    )
}

fn no_common(version_policy: VersionPolicy, theirs: Vec<String>) -> Verdict {
    let ours = version_policy.revisions().into_iter().map(Revision::as_str).collect();
    Verdict::GiveUp(OpenError::NoCommonRevision { ours, theirs })
}

/// The revisions that an error says the server speaks.
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

    fn error(code: i64, supported: &[&str]) -> Evidence {
        let error = RpcError::new(code, "no");
        Evidence::Error(if supported.is_empty() {
            error
        } else {
            error.with_data(json!({ "supported": supported }))
        })
    }

    fn refused(status: u16, error: Option<i64>) -> Evidence {
        let error = error.map(|code| RpcError::new(code, "no"));
        Evidence::Wire(TransportError::Refused { status, error, body: String::new() })
    }

    fn speaks(names: &[&str]) -> Evidence {
        Evidence::Speaks(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn what_an_answer_to_the_probe_means() {
        let open = |revision| Verdict::Try(Attempt::Initialize(revision));
        let cases = [
            (speaks(&["2026-07-28"]), Verdict::Speak(MODERN)),
            (speaks(&["2025-06-18", "2024-11-05"]), open(Revision::V2025_06_18)),
            (error(-32022, &["2026-07-28"]), Verdict::Try(Attempt::Discover(MODERN))),
            (error(-32022, &["2025-03-26"]), open(Revision::V2025_03_26)),
            (error(-32601, &[]), open(SESSION)),
            (error(-32602, &[]), open(SESSION)),
            (error(-32000, &[]), open(SESSION)),
            (refused(400, None), open(SESSION)),
            (refused(404, Some(-32601)), open(SESSION)),
            (refused(405, None), open(SESSION)),
            (refused(400, Some(-32000)), open(SESSION)),
            (Evidence::Nonsense("?".into()), open(SESSION)),
            (Evidence::Silence { after_millis: 1 }, open(SESSION)),
        ];
        for (evidence, verdict) in cases {
            assert_eq!(
                after_discover(VersionPolicy::Auto, TransportKind::Pipe, false, evidence.clone()),
                verdict,
                "{evidence:?}"
            );
        }
        for hopeless in [
            error(-32020, &[]),
            error(-32021, &[]),
            error(-32022, &["2099-01-01"]),
            refused(500, None),
            refused(400, Some(-32020)),
            Evidence::Wire(TransportError::Unauthorized { status: 401, challenge: None }),
            Evidence::Wire(TransportError::Unreachable("gone".into())),
        ] {
            let verdict = after_discover(VersionPolicy::Auto, TransportKind::Http, false, hopeless.clone());
            assert!(matches!(verdict, Verdict::GiveUp(_)), "{hopeless:?}: {verdict:?}");
        }
        let silence = Evidence::Silence { after_millis: 1 };
        assert_eq!(
            after_discover(VersionPolicy::Auto, TransportKind::Http, false, silence),
            Verdict::GiveUp(OpenError::TimedOut { after_millis: 1 }),
            "an exchange that is not answered says nothing about revisions"
        );
    }

    #[test]
    fn a_server_that_takes_back_what_it_names_is_left() {
        let verdict =
            after_discover(VersionPolicy::Auto, TransportKind::Pipe, true, error(-32022, &["2026-07-28"]));
        assert!(matches!(verdict, Verdict::GiveUp(OpenError::NoCommonRevision { .. })), "{verdict:?}");
    }

    #[test]
    fn only_what_is_allowed_is_tried() {
        assert_eq!(
            first(VersionPolicy::Exactly(Revision::V2025_03_26)),
            Attempt::Initialize(Revision::V2025_03_26)
        );
        assert_eq!(first(VersionPolicy::Legacy), Attempt::Initialize(SESSION));
        assert_eq!(first(VersionPolicy::Modern), Attempt::Discover(MODERN));
        let verdict = after_discover(VersionPolicy::Modern, TransportKind::Pipe, false, error(-32601, &[]));
        assert!(matches!(verdict, Verdict::GiveUp(OpenError::Refused(_))), "{verdict:?}");
        let verdict = after_initialize(
            VersionPolicy::Exactly(Revision::V2025_03_26),
            Revision::V2025_03_26,
            false,
            speaks(&["2024-11-05"]),
        );
        let Verdict::GiveUp(fault) = verdict else { panic!("{verdict:?}") };
        assert_eq!(fault.to_string(), "no common revision: we speak 2025-03-26, the server 2024-11-05");
    }

    #[test]
    fn a_session_is_opened_in_what_the_server_prefers() {
        assert_eq!(
            after_initialize(VersionPolicy::Auto, SESSION, false, speaks(&["2024-11-05"])),
            Verdict::Speak(Revision::V2024_11_05)
        );
        let other = error(-32602, &["2025-03-26"]);
        assert_eq!(
            after_initialize(VersionPolicy::Auto, SESSION, false, other.clone()),
            Verdict::Try(Attempt::Initialize(Revision::V2025_03_26))
        );
        assert!(matches!(after_initialize(VersionPolicy::Auto, SESSION, true, other), Verdict::GiveUp(_)));
        let newest = after_initialize(VersionPolicy::Auto, SESSION, false, speaks(&["2026-07-28"]));
        assert!(matches!(newest, Verdict::GiveUp(_)), "no handshake opens that one");
    }

    #[test]
    fn a_server_that_was_too_slow_to_be_understood_is_asked_once_more() {
        let needs_none = error(-32022, &["2026-07-28"]);
        let ask = Verdict::Try(Attempt::Discover(MODERN));
        assert_eq!(after_initialize(VersionPolicy::Auto, SESSION, false, needs_none.clone()), ask);
        assert!(matches!(
            after_initialize(VersionPolicy::Legacy, SESSION, false, needs_none),
            Verdict::GiveUp(_)
        ));
        let silence = Evidence::Silence { after_millis: 1 };
        let verdict = after_discover(VersionPolicy::Auto, TransportKind::Pipe, true, silence);
        assert_eq!(verdict, Verdict::GiveUp(OpenError::TimedOut { after_millis: 1 }));
    }
}
