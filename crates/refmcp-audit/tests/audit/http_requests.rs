//! Rules about requests over streamable HTTP, in sessions.

use refmcp_audit::verdict::Role;
use refmcp_proto::rule;
use serde_json::json;

use crate::script::Example;
use crate::streamable::{ACCEPT, JSON, SESSION, SSE, changed, opening, ping, result, session};

const C: &str = "2025-06-18";

pub(crate) fn examples() -> Vec<Example> {
    let client = |rule, kept, broken| Example { rule, role: Role::Client, kept, broken };
    let server = |rule, kept, broken| Example { rule, role: Role::Server, kept, broken };
    let version = ("mcp-protocol-version", C);
    let page = [("content-type", "text/html")];
    let note = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    vec![
        client(
            &rule::LIFE_09,
            session(C).pinged(3, C),
            vec![
                session(C).http(3, "POST", "/mcp", &[ACCEPT, SESSION]).client(ping(3)),
                session(C).http(3, "DELETE", "/mcp", &[SESSION]),
            ],
        ),
        client(&rule::LIFE_15, session(C).pinged(3, C), vec![session(C).post(3, "2025-03-26", ping(3))]),
        server(
            &rule::HTTP_01,
            session(C).get(0, C, &[]).status(405, &[]),
            vec![session(C).get(0, C, &[]).status(200, &page)],
        ),
        client(
            &rule::HTTP_03,
            session(C),
            vec![
                session(C).http(3, "POST", "/mcp", &[SESSION, version]).client(ping(3)),
                session(C)
                    .http(3, "POST", "/mcp", &[("accept", "application/json;q=1"), SESSION, version])
                    .client(ping(3)),
            ],
        ),
        server(
            &rule::HTTP_05,
            session(C).post(3, C, note.clone()).status(400, &[]),
            vec![
                session(C).post(3, C, note.clone()).status(200, &[]).ended(),
                session(C).post(3, C, note.clone()).status(204, &[]).ended(),
                session(C).post(3, C, note).status(202, JSON).server(changed()).ended(),
            ],
        ),
        server(
            &rule::HTTP_06,
            session(C).pinged(3, C),
            vec![
                session(C).post(3, C, ping(3)).status(200, &page),
                session(C).post(3, C, ping(3)).status(202, &[]),
                opening(C).status(200, &page),
            ],
        ),
        server(
            &rule::HTTP_07,
            session(C).post(3, C, ping(3)).status(200, SSE).server(result(3)).ended(),
            vec![session(C).post(3, C, ping(3)).status(200, SSE).server(result(3)).server(changed())],
        ),
        client(
            &rule::HTTP_13,
            session(C).get(0, C, &[]),
            vec![session(C).http(0, "GET", "/mcp", &[SESSION, version])],
        ),
        server(
            &rule::HTTP_14,
            session(C).get(0, C, &[]).status(200, SSE).server(changed()),
            vec![session(C).post(3, C, ping(3)).get(0, C, &[]).status(200, SSE).server(result(3))],
        ),
    ]
}

#[test]
fn a_resumed_stream_may_have_the_response() {
    let resumed = session(C).post(3, C, ping(3)).status(200, SSE).server_event("a", changed());
    let resumed = resumed.get(4, C, &[("last-event-id", "a")]).status(200, SSE).server_event("b", result(3));
    resumed.keeps(&rule::HTTP_01, Role::Server);
}

#[test]
fn posts_of_relayed_http_sse_are_answered_with_202() {
    // Its stream is another connection, so that the handshake is not seen.
    opening(C).status(202, &[]).ended().keeps(&rule::HTTP_03, Role::Client);
}
