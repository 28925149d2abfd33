//! Rules about HTTP+SSE.

use refmcp_audit::verdict::{Role, RuleOutcome, Verdict};
use refmcp_proto::rule;
use serde_json::json;

use crate::script::{Example, Script, notification, stateless_request, stateless_result};
use crate::streamable::{JSON, SSE, initialize, ping, result};

const A: &str = "2024-11-05";

/// The stream is open.
fn stream() -> Script {
    Script::new("http+sse").http(0, "GET", "/sse", &[("accept", "text/event-stream")]).status(200, SSE)
}

fn endpoint(uri: &str) -> Script {
    stream().sse(Some("endpoint"), None, None, uri)
}

fn posted(script: Script, target: &str) -> Script {
    script.http(1, "POST", target, &[]).client(initialize(A))
}

/// `initialize` is accepted; its result is due on the stream.
fn accepted() -> Script {
    posted(endpoint("/messages?sessionId=***"), "/messages?sessionId=***").status(202, &[]).ended()
}

pub(crate) fn examples() -> Vec<Example> {
    let client = |rule, kept, broken| Example { rule, role: Role::Client, kept, broken };
    let server = |rule, kept, broken| Example { rule, role: Role::Server, kept, broken };
    let pinged = || accepted().http(2, "POST", "/messages", &[]).client(ping(2));
    vec![
        server(&rule::SSE_01, accepted(), vec![posted(endpoint("/messages"), "/messages").status(405, &[])]),
        server(
            &rule::SSE_02,
            accepted(),
            vec![stream().server(ping(9)), stream().sse(Some("hello"), None, None, "/messages")],
        ),
        client(
            &rule::SSE_03,
            posted(endpoint("http://127.0.0.1/v1/messages"), "/v1/messages"),
            vec![posted(endpoint("/messages"), "/sse")],
        ),
        server(
            &rule::SSE_04,
            pinged().status(202, &[]).on_stream(0).server(result(2)),
            vec![
                pinged().status(200, JSON).server(result(2)),
                pinged().on_stream(0).sse(Some("answer"), None, None, &result(2).to_string()),
            ],
        ),
    ]
}

#[test]
fn a_text_in_the_response_to_a_post_is_no_message() {
    let accepted = accepted().http(2, "POST", "/messages", &[]).client(ping(2));
    let accepted = accepted.status(202, &[("content-type", "text/plain")]).server_invalid("Accepted").ended();
    accepted.on_stream(0).server(result(2)).keeps(&rule::RPC_01, Role::Server);
}

#[test]
fn without_sessions_the_one_stream_has_what_belongs_to_every_request() {
    let capabilities = json!({"tools": {}});
    let call = |id: u64| {
        let params = json!({"name": "t", "arguments": {}, "_meta": {"progressToken": id}});
        stateless_request(id, "tools/call", params)
    };
    let requires = stateless_result(1, json!({"resultType": "input_required", "requestState": "s"}));
    let judgement = Script::without_session("http+sse", capabilities)
        .on_stream(1)
        .client(call(1))
        .on_stream(0)
        .server(notification("notifications/progress", json!({"progressToken": 1, "progress": 1})))
        .server(requires)
        .on_stream(2)
        .client(call(2))
        .on_stream(0)
        .server(notification("notifications/progress", json!({"progressToken": 2, "progress": 1})))
        .server(stateless_result(2, json!({"content": []})))
        .judge();
    let broken: Vec<_> = judgement.broken().collect();
    assert!(broken.is_empty(), "{broken:?}");
    let outcome = |rule: &str| judgement.verdicts.iter().find(|it| it.rule.id == rule).map(Verdict::outcome);
    assert_eq!([outcome("PROG-01"), outcome("MRTR-12")], [Some(RuleOutcome::Kept); 2]);
}
