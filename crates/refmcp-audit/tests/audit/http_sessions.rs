//! Rules about sessions over streamable HTTP.

use refmcp_audit::recording::EventKind;
use refmcp_audit::verdict::Role;
use refmcp_proto::rule;
use serde_json::{Value, json};

use crate::script::{Example, Script};
use crate::streamable::{
    ACCEPT, JSON, SESSION, SSE, initialize, opening, ping, result, session, stateless_request,
};

const C: &str = "2025-06-18";

fn deleted() -> Script {
    session(C).http(3, "DELETE", "/mcp", &[SESSION, ("mcp-protocol-version", C)]).status(204, &[]).ended()
}

fn lost() -> Script {
    session(C).post(3, C, ping(3)).status(404, &[]).ended()
}

pub(crate) fn examples() -> Vec<Example> {
    let client = |rule, kept, broken| Example { rule, role: Role::Client, kept, broken };
    let server = |rule, kept, broken| Example { rule, role: Role::Server, kept, broken };
    let version = ("mcp-protocol-version", C);
    let initialize_again =
        |headers: &[(&str, &str)]| lost().http(4, "POST", "/mcp", headers).client(initialize(C).clone());
    vec![
        server(
            &rule::HTTP_18,
            session(C),
            vec![opening(C).status(200, &[JSON[0], ("mcp-session-id", "a session")]).opened(C)],
        ),
        client(
            &rule::HTTP_19,
            session(C).pinged(3, C),
            vec![
                session(C).http(3, "POST", "/mcp", &[ACCEPT, version]).client(ping(3)),
                session(C).http(0, "GET", "/mcp", &[("accept", "text/event-stream"), version]),
            ],
        ),
        server(
            &rule::HTTP_21,
            deleted().post(4, C, ping(4)).status(404, &[]),
            vec![deleted().post(4, C, ping(4)).status(200, JSON).server(result(4))],
        ),
        client(
            &rule::HTTP_22,
            initialize_again(&[ACCEPT]),
            vec![initialize_again(&[ACCEPT, SESSION]), lost().after(5000).post(4, C, ping(4))],
        ),
        client(
            &rule::HTTP_23,
            deleted(),
            vec![session(C).then(EventKind::Closed { why: "the session was not used".to_owned() })],
        ),
    ]
}

#[test]
fn what_was_on_its_way_when_the_session_was_lost_is_not_judged() {
    let judgement = lost().post(4, C, ping(4)).judge();
    assert!(judgement.verdicts.get(&rule::HTTP_22, Role::Client).is_none());
}

/// A request of a session that a server sees by itself, since it does not name the session.
fn alone(message: Value, headers: &[(&str, &str)], status: u16) -> Script {
    let headers = [&[ACCEPT], headers].concat();
    Script::new("http").http(7, "POST", "/mcp", &headers).client(message).status(status, &[]).ended()
}

#[test]
fn a_request_that_a_server_refuses_for_want_of_a_session_is_found() {
    let version = ("mcp-protocol-version", C);
    let verdict = |script: Script| script.judge().verdicts.get(&rule::HTTP_19, Role::Client).cloned();
    let found = verdict(alone(ping(7), &[version], 400)).unwrap();
    assert_eq!((found.broken, found.kept), (1, 0));
    assert!(found.violations[0].evidence.text.contains("ping"), "{found:#?}");
    let get = Script::new("http").http(8, "GET", "/mcp", &[version]).status(400, &[]).ended();
    assert_eq!(verdict(get).unwrap().broken, 1);
    for innocent in [
        alone(initialize(C), &[version], 400),
        alone(ping(7), &[version], 200),
        alone(ping(7), &[], 400),
        alone(ping(7), &[version, SESSION], 400),
        alone(stateless_request(7, "tools/list", json!({})), &[version], 400),
    ] {
        assert!(verdict(innocent).is_none());
    }
}

/// A server decides to cancel its request, takes the late response, and then writes the cancellation.
#[test]
fn a_cancellation_on_a_stream_may_be_written_later() {
    let roots = json!({"jsonrpc": "2.0", "id": 7, "method": "roots/list"});
    let listed = json!({"jsonrpc": "2.0", "id": 7, "result": {"roots": []}});
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    let asked = || {
        let script = session(C).get(3, C, &[]).status(200, SSE).on_stream(3).server(roots.clone());
        script.post(4, C, listed.clone()).status(202, &[]).ended().on_stream(3)
    };
    asked().server(cancelled.clone()).keeps(&rule::HTTP_19, Role::Client);
    asked().after(5_000).server(cancelled).broken(&rule::CANC_01, Role::Server).unwrap();
}
