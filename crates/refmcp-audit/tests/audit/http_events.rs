//! Rules about the SSE streams of sessions.

use refmcp_audit::recording::{Direction, EventKind};
use refmcp_audit::verdict::Role;
use refmcp_proto::rule;
use serde_json::{Value, json};

use crate::script::{Example, Script};
use crate::streamable::{SSE, changed, ping, result, session};

const C: &str = "2025-06-18";
const D: &str = "2025-11-25";

/// A call on stream 3 whose response is a stream of events.
fn streaming(revision: &str) -> Script {
    session(revision).post(3, revision, ping(3)).status(200, SSE)
}

/// The same, with an event to resume from.
fn primed() -> Script {
    streaming(D).sse(None, None, Some(500), "").sse(None, Some("3.0"), None, "")
}

/// The server has ended the stream before the response.
fn polled() -> Script {
    primed().server_event("3.1", changed()).ended()
}

fn resume(script: Script, stream: u64, after: &str) -> Script {
    script.get(stream, D, &[("last-event-id", after)]).status(200, SSE)
}

fn asked(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "ping"})
}

pub(crate) fn examples() -> Vec<Example> {
    let client = |rule, kept, broken| Example { rule, role: Role::Client, kept, broken };
    let server = |rule, kept, broken| Example { rule, role: Role::Server, kept, broken };
    let other_call = || polled().post(4, D, ping(4)).status(200, SSE).sse(None, Some("4.0"), None, "");
    vec![
        server(
            &rule::HTTP_08,
            streaming(C).server(result(3)).ended(),
            vec![streaming(C).server(changed()).ended().pinged(4, C)],
        ),
        server(
            &rule::HTTP_09,
            primed(),
            vec![streaming(D).server(changed()), streaming(D).server_event("3.1", result(3)).ended()],
        ),
        server(
            &rule::HTTP_10,
            polled().pinged(4, D),
            vec![streaming(D).sse(None, None, Some(500), "").ended().pinged(4, D)],
        ),
        client(
            &rule::HTTP_11,
            resume(polled().after(600), 5, "3.1"),
            vec![resume(polled().after(100), 5, "3.1")],
        ),
        server(
            &rule::HTTP_15,
            streaming(C).server(asked(900)),
            vec![streaming(C).server(asked(900)).get(0, C, &[]).status(200, SSE).server(asked(900))],
        ),
        server(
            &rule::HTTP_16,
            other_call().server_event("4.1", result(4)).ended(),
            vec![
                other_call().server_event("3.1", result(4)).ended(),
                polled().get(0, D, &[]).status(200, SSE).server_event("3.1", ping(1)),
                resume(polled().after(600), 5, "3.0").server_event("3.1", result(3)).ended(),
            ],
        ),
        server(
            &rule::HTTP_17,
            resume(polled().after(600), 5, "3.0").server_event("3.1", changed()),
            vec![
                resume(other_call().server_event("4.1", ping(1)).after(600), 5, "3.1")
                    .server_event("4.1", ping(1)),
            ],
        ),
    ]
}

#[test]
fn a_stream_that_ends_with_its_session_or_its_request_is_not_judged() {
    let judged = |script: Script| script.judge().verdicts.get(&rule::HTTP_08, Role::Server).is_some();
    // Nothing follows: the server may have been stopped.
    assert!(!judged(streaming(C).ended()));
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}});
    let cancelled = streaming(C).post(4, C, cancelled).status(202, &[]).ended().on_stream(3).ended();
    assert!(!judged(cancelled.post(5, C, ping(5))));
}

#[test]
fn a_client_that_has_left_a_stream_may_come_back_at_once() {
    let left = primed().then(EventKind::Ended { direction: Direction::Received });
    let judgement = resume(left, 5, "3.0").judge();
    assert!(judgement.verdicts.get(&rule::HTTP_11, Role::Client).is_none());
    assert_eq!(judgement.broken().count(), 0);
}

#[test]
fn a_get_stream_may_send_again_what_was_not_read() {
    let unread = |script: Script| script.get(0, D, &[]).status(200, SSE).server_event("0.1", changed());
    unread(unread(session(D))).keeps(&rule::HTTP_16, Role::Server);
}

#[test]
fn sessions_that_are_opened_at_once_are_conversations_of_their_own() {
    // Both connections are open before either has said what it is for. Both have events of the same ids.
    let judgements = primed().interleaved(&primed()).judgements();
    let broken: Vec<_> = judgements.iter().flat_map(refmcp_audit::auditor::Judgement::broken).collect();
    assert!(broken.is_empty(), "{broken:?}");
    let kept = judgements.iter().filter_map(|it| it.verdicts.get(&rule::HTTP_16, Role::Server));
    assert_eq!(kept.map(|it| it.kept).sum::<u64>(), 2);
}
