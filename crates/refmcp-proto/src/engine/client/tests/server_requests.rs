//! Server requests and results that require input.

use super::*;

#[test]
fn server_requests_go_to_the_host() {
    let mut rig = Rig::session();
    assert_eq!(sent(&rig.hear(json!({ "id": "p", "method": "ping" })))["result"], json!({}));
    assert_eq!(
        rig.hear(json!({ "id": "r", "method": "roots/list" })),
        [Seen::Asked(1, "roots/list".to_owned())]
    );
    let seen = rig.hear(json!({ "id": "r", "method": "roots/list" }));
    assert_eq!(sent(&seen)["error"]["code"], -32600, "the same id twice");
    rig.engine.respond(rig.now, ServerRequestId(1), Ok(json!({ "roots": [] })));
    assert_eq!(sent(&rig.seen())["result"], json!({ "roots": [] }));
    for (method, params, code) in [
        (
            "elicitation/create",
            json!({ "mode": "url", "message": "m", "url": "https://a", "elicitationId": "1" }),
            -32601,
        ),
        ("elicitation/create", json!({ "message": 1 }), -32602),
        ("tasks/list", json!({}), -32601),
    ] {
        let seen = rig.hear(json!({ "id": 9, "method": method, "params": params }));
        assert_eq!(sent(&seen)["error"]["code"], code, "{method}");
    }
}

#[test]
fn a_cancelled_server_request_gets_no_response() {
    let mut rig = Rig::session();
    rig.hear(json!({ "id": 5, "method": "roots/list" }));
    let seen = rig.hear(json!({ "method": "notifications/cancelled", "params": { "requestId": 5 } }));
    assert_eq!(seen, [Seen::Withdrawn(1)]);
    rig.engine.respond(rig.now, ServerRequestId(1), Ok(json!({})));
    assert_eq!(rig.seen(), []);
}

#[test]
fn an_open_server_request_stops_the_idle_timeout_but_not_the_total() {
    let mut rig = Rig::session();
    let options = CallOptions {
        idle: Duration::from_secs(1),
        total: Duration::from_secs(60),
        ..CallOptions::default()
    };
    let call = rig.call("tools/call", "{}", options);
    rig.seen();
    rig.hear(json!({ "id": 5, "method": "roots/list" }));
    for _ in 0..59 {
        assert_eq!(rig.pass(1_000), []);
    }
    let seen = rig.pass(1_000);
    assert!(seen.contains(&Seen::Done(call, Err("no answer within 60 s".to_owned()))), "{seen:?}");
}

#[test]
fn an_input_required_call_is_repeated_with_the_responses() {
    let mut rig = Rig::stateless(TransportKind::Http);
    let call = rig.call("tools/call", r#"{"name":"t"}"#, CallOptions::default());
    rig.seen();
    let asked = json!({
        "resultType": "input_required", "requestState": "état\n",
        "inputRequests": { "a": { "method": "roots/list" }, "b": { "method": "roots/list", "params": {} } },
    });
    let seen = rig.hear(json!({ "id": call, "result": asked }));
    assert_eq!(seen, [Seen::Asked(1, "roots/list".to_owned()), Seen::Asked(2, "roots/list".to_owned())]);
    rig.engine.respond(rig.now, ServerRequestId(2), Ok(json!({ "roots": [2] })));
    assert_eq!(rig.seen(), [], "nothing goes before all is there");
    rig.engine.respond(rig.now, ServerRequestId(1), Ok(json!({ "roots": [1] })));
    let seen = rig.seen();
    let repeated = sent(&seen);
    assert_ne!(repeated["id"], call);
    assert_eq!(repeated["params"]["name"], "t");
    assert_eq!(repeated["params"]["requestState"], "état\n");
    assert_eq!(repeated["params"]["inputResponses"], json!({ "a": { "roots": [1] }, "b": { "roots": [2] } }));
    let second = repeated["id"].clone();
    let again = json!({ "resultType": "input_required", "requestState": "two" });
    let seen = rig.hear(json!({ "id": second, "result": again }));
    assert_eq!(sent(&seen)["params"].get("inputResponses"), None, "only what was asked for last");
    let third = sent(&seen)["id"].clone();
    assert_eq!(
        rig.hear(json!({ "id": third, "result": { "content": [] } })),
        [Seen::Done(call, Ok(json!({ "content": [] })))]
    );
    assert!(rig.engine.later_rounds.is_empty());
}

#[test]
fn a_later_round_has_its_own_input_alone() {
    let mut rig = Rig::stateless(TransportKind::Http);
    let own = r#"{"name":"t","requestState":"mine","n":1.50,"inputResponses":{"mine":{}}}"#;
    let call = rig.call("tools/call", own, CallOptions::default());
    let first = rig.seen();
    assert_eq!(sent(&first)["params"]["requestState"], "mine");
    let asked = json!({ "resultType": "input_required", "requestState": "two" });
    rig.engine.receive(
        rig.now,
        None,
        json!({ "jsonrpc": "2.0", "id": call, "result": asked }).to_string().as_bytes(),
    );
    let Some(ClientOutput::Send(repeated)) = rig.engine.poll() else { panic!("it is repeated") };
    let text = String::from_utf8(repeated.json).unwrap();
    assert_eq!(text.matches("requestState").count(), 1, "{text}");
    assert!(text.contains(r#""requestState":"two""#) && !text.contains("inputResponses"), "{text}");
    assert!(text.contains(r#""n":1.50"#) && text.contains(r#""name":"t""#), "as it was written: {text}");
}

#[test]
fn input_rounds_are_limited() {
    let mut rig = Rig::stateless(TransportKind::Pipe);
    let call = rig.call("tools/call", "{}", CallOptions::default());
    let mut id = json!(call);
    rig.seen();
    for _ in 0..16 {
        let asked = json!({ "resultType": "input_required", "requestState": "s" });
        id = sent(&rig.hear(json!({ "id": id, "result": asked })))["id"].clone();
    }
    let asked = json!({ "resultType": "input_required", "requestState": "s" });
    let seen = rig.hear(json!({ "id": id, "result": asked }));
    assert!(matches!(&seen[..], [Seen::Done(_, Err(why))] if why.contains("16 times")), "{seen:?}");
}

#[test]
fn malformed_input_requests_end_the_call() {
    for (asked, why, rule) in [
        (json!({}), "does not say which", "MRTR-02"),
        (json!({ "inputRequests": { "a": { "method": "tools/call" } } }), "tools/call", "MRTR-03"),
        (
            json!({ "inputRequests": { "a": { "method": "elicitation/create", "params": { "mode": "url", "message": "m", "url": "https://a" } } } }),
            "which we did not offer",
            "MRTR-04",
        ),
    ] {
        let mut rig = Rig::stateless(TransportKind::Pipe);
        let call = rig.call("tools/call", "{}", CallOptions::default());
        rig.seen();
        let mut result = asked;
        result["resultType"] = json!("input_required");
        let seen = rig.hear(json!({ "id": call, "result": result }));
        let Some((Seen::Done(_, Err(it)), noted)) = seen.split_last() else { panic!("{seen:?}") };
        let noted: Vec<bool> =
            noted.iter().map(|seen| matches!(seen, Seen::Noted(id) if *id == rule)).collect();
        assert!(it.contains(why) && noted == [true], "{seen:?}");
    }
}

#[test]
fn manual_input_handling_returns_the_input_required_result() {
    let mut rig = Rig::stateless(TransportKind::Pipe);
    let call =
        rig.call("tools/call", "{}", CallOptions { input: InputHandling::Manual, ..CallOptions::default() });
    rig.seen();
    let asked = json!({ "resultType": "input_required", "requestState": "s" });
    assert_eq!(rig.hear(json!({ "id": call, "result": asked })), [Seen::Done(call, Ok(asked))]);
}

#[test]
fn server_requests_are_refused_in_the_newest_revision() {
    let mut rig = Rig::stateless(TransportKind::Pipe);
    let seen = rig.hear(json!({ "id": 1, "method": "roots/list" }));
    assert_eq!(sent(&seen)["error"]["code"], -32600);
    assert_eq!(seen[0], Seen::Noted("RPC-15"));
}

#[test]
fn nothing_is_asked_once_the_connection_has_ended() {
    let mut rig = Rig::session();
    rig.engine.closed(TransportError::Closed);
    rig.seen();
    for method in ["roots/list", "ping", "no/such"] {
        assert_eq!(rig.hear(json!({ "id": 1, "method": method })), [], "{method}");
    }
    assert_eq!(rig.hear(json!({ "method": "notifications/tools/list_changed" })), []);
}

#[test]
fn requests_before_a_connection_without_a_session_are_refused_when_it_opens() {
    let mut rig = Rig::new(|_| {});
    rig.seen();
    assert_eq!(
        rig.hear(json!({ "id": "r", "method": "roots/list" })),
        [Seen::Asked(1, "roots/list".to_owned())]
    );
    let seen =
        rig.hear(json!({ "id": 1, "result": { "supportedVersions": ["2026-07-28"], "capabilities": {} } }));
    assert_eq!(seen[..2], [Seen::Opened(Revision::V2026_07_28), Seen::Withdrawn(1)]);
    assert_eq!(sent(&seen)["error"]["code"], -32600);
    rig.engine.respond(rig.now, ServerRequestId(1), Ok(json!({ "roots": [] })));
    assert_eq!(rig.seen(), []);
}
