//! Calls, from their sending to their one end, and what else the server says.

use super::*;

#[test]
fn progress_extends_a_call_up_to_its_total() {
    let mut rig = Rig::session();
    let options = CallOptions {
        idle: Duration::from_secs(1),
        total: Duration::from_secs(3),
        progress: true,
        ..CallOptions::default()
    };
    let call = rig.call("tools/call", "{}", options);
    assert_eq!(sent(&rig.seen())["params"]["_meta"]["progressToken"], call);
    for step in 1..=3 {
        assert_eq!(rig.pass(900), [], "{step}");
        let params = json!({ "progressToken": call, "progress": step });
        let seen = rig.hear(json!({ "method": "notifications/progress", "params": params }));
        assert_eq!(seen, [Seen::Heard(Some(call), "notifications/progress".into())]);
    }
    let params = json!({ "progressToken": call, "progress": 3 });
    assert_eq!(
        rig.hear(json!({ "method": "notifications/progress", "params": params })),
        [Seen::Noted("PROG-02")]
    );
    let seen = rig.pass(300);
    assert_eq!(sent(&seen)["method"], "notifications/cancelled");
    assert_eq!(sent(&seen)["params"]["requestId"], call);
    assert_eq!(seen[1..], [Seen::Abandoned(call), Seen::Done(call, Err("no answer within 3 s".to_owned()))]);
    assert_eq!(rig.hear(json!({ "id": call, "result": {} })), [], "a late response is ignored");
}

#[test]
fn cancelling_a_call_notifies_the_server_by_its_revision() {
    for (mut rig, by_message) in [
        (Rig::session(), true),
        (Rig::stateless(TransportKind::Pipe), true),
        (Rig::stateless(TransportKind::Http), false),
    ] {
        let call = rig.call("tools/call", "{}", CallOptions::default());
        rig.seen();
        rig.engine.cancel(rig.now, CallId(call), "enough");
        let seen = rig.seen();
        let message =
            seen.iter().any(|seen| matches!(seen, Seen::Sent(it) if it["params"]["reason"] == "enough"));
        assert_eq!(message, by_message);
        assert!(seen.ends_with(&[Seen::Abandoned(call), Seen::Done(call, Err("cancelled".to_owned()))]));
    }
}

#[test]
fn what_came_for_one_exchange_ends_its_call_only() {
    let mut rig = Rig::session();
    let (one, two) = (
        rig.call("tools/call", "{}", CallOptions::default()),
        rig.call("ping", "{}", CallOptions::default()),
    );
    rig.seen();
    rig.engine.receive(rig.now, Some(ExchangeId(one)), b"<html>");
    let seen = rig.seen();
    assert!(matches!(&seen[..], [Seen::Noted(_), Seen::Done(it, Err(_))] if *it == one), "{seen:?}");
    for never in [json!(99), json!("1"), json!(-1)] {
        rig.hear(json!({ "id": never, "result": {} }));
    }
    rig.engine.closed(TransportError::Broken("gone".into()));
    let seen = rig.seen();
    assert!(matches!(&seen[..], [Seen::Done(it, Err(_)), Seen::Closed(_)] if *it == two), "{seen:?}");
    assert_eq!(rig.hear(json!({ "id": two, "result": {} })), []);
    let broken: Vec<_> = rig.engine.findings().iter().map(|found| (found.rule.id, found.count)).collect();
    assert_eq!(broken, [("RPC-01", 1), ("RPC-05", 3)]);
}

#[test]
fn structured_content_without_content_is_a_finding() {
    for mut rig in [Rig::session(), Rig::stateless(TransportKind::Http)] {
        let call = |rig: &mut Rig, method: &str, result: Value| {
            let id = rig.call(method, "{}", CallOptions::default());
            rig.seen();
            let seen = rig.hear(json!({ "id": id, "result": result.clone() }));
            assert_eq!(seen.last(), Some(&Seen::Done(id, Ok(result))));
            seen.len()
        };
        let data = json!({ "structuredContent": { "content": [] }, "isError": false });
        for right in [json!({ "content": [] }), json!({ "structuredContent": 1, "content": [] }), json!({})] {
            assert_eq!(call(&mut rig, "tools/call", right), 1);
        }
        assert_eq!(call(&mut rig, "prompts/get", data.clone()), 1, "this is no tool");
        assert_eq!(call(&mut rig, "tools/call", data.clone()), 2);
        assert_eq!(call(&mut rig, "tools/call", data), 1, "it is noted once");
        let noted: Vec<_> = rig.engine.findings().iter().map(|found| (found.rule.id, found.count)).collect();
        assert_eq!(noted, [("TOOL-07", 2)]);
    }
}

#[test]
fn what_stands_in_the_wrong_place_or_has_the_wrong_name_is_noted() {
    let mut rig = Rig::session();
    let call = rig.call("ping", "{}", CallOptions::default());
    rig.seen();
    let seen = rig.hear(json!({ "id": call, "result": {}, "_meta": {} }));
    assert_eq!(seen, [Seen::Noted("RPC-01"), Seen::Done(call, Ok(json!({})))]);
    let seen = rig.hear(json!({ "method": "message", "params": { "level": "info", "data": "x" } }));
    assert_eq!(seen, [Seen::Noted("LOG-01"), Seen::Heard(None, "message".to_owned())]);
    let seen = rig.hear(json!({ "method": "unknown/notification" }));
    assert_eq!(seen, [Seen::Heard(None, "unknown/notification".to_owned())]);
}

#[test]
fn requests_that_a_revision_does_not_have_are_not_sent() {
    let mut rig = Rig::stateless(TransportKind::Pipe);
    let call = rig.call("ping", "{}", CallOptions::default());
    assert_eq!(rig.seen(), [Seen::Done(call, Err("ping does not exist in revision 2026-07-28".to_owned()))]);
    rig.call("ping", "{}", CallOptions { unchecked: true, ..CallOptions::default() });
    assert_eq!(sent(&rig.seen())["method"], "ping");
}

#[test]
fn subscriptions_listen_has_no_deadline_and_ends_with_its_result() {
    let mut rig = Rig::stateless(TransportKind::Pipe);
    let call = rig.call(
        "subscriptions/listen",
        r#"{"notifications":{"toolsListChanged":true}}"#,
        CallOptions::default(),
    );
    rig.seen();
    assert_eq!(rig.pass(86_400_000), []);
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": call });
    let changed = json!({ "method": "notifications/tools/list_changed", "params": { "_meta": meta } });
    assert_eq!(rig.hear(changed), [Seen::Heard(Some(call), "notifications/tools/list_changed".into())]);
    let over = json!({ "method": "notifications/cancelled", "params": { "requestId": call } });
    assert_eq!(rig.hear(over), [Seen::Done(call, Ok(json!({})))]);
}

#[test]
fn ignored_lines_are_findings_and_end_no_call() {
    let mut rig = Rig::session();
    let call = rig.call("ping", "{}", CallOptions::default());
    rig.seen();
    let mut seen = Vec::new();
    for noise in
        ["Server ready", "", "[]", "{\"jsonrpc\":\"2.0\"}", "{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{}}"]
    {
        rig.engine.receive(rig.now, None, noise.as_bytes());
        seen.extend(rig.seen());
    }
    let (told, noted): (Vec<_>, Vec<_>) = seen.iter().partition(|seen| matches!(seen, Seen::Ignored(_)));
    assert_eq!(told.len(), 4, "each but the empty one is told of");
    let expected = ["STDIO-02", "RPC-01", "STDIO-02", "RPC-01", "RPC-01"].map(Seen::Noted);
    assert_eq!(noted, expected.iter().collect::<Vec<_>>());
    assert_eq!(rig.hear(json!({ "id": call, "result": {} })), [Seen::Done(call, Ok(json!({})))]);
}

#[test]
fn roots_list_changed_is_sent_only_in_sessions() {
    let mut rig = Rig::session();
    rig.engine.notify("notifications/roots/list_changed", None::<&JsonObject>);
    assert_eq!(sent(&rig.seen())["method"], "notifications/roots/list_changed");
    let mut rig = Rig::stateless(TransportKind::Http);
    rig.engine.notify("notifications/roots/list_changed", None::<&JsonObject>);
    assert_eq!(rig.seen(), []);
}

#[test]
fn unknown_result_types_fail_the_call() {
    let mut rig = Rig::stateless(TransportKind::Pipe);
    for (result, good) in [
        (json!({ "resultType": "complete", "content": [] }), true),
        (json!({ "content": [{ "type": "text", "text": "input_required" }] }), true),
        (json!({ "content": [], "structuredContent": { "resultType": "other" } }), true),
        (json!({ "resultType": "later" }), false),
        (json!({ "resultType": "later", "structuredContent": { "resultType": "complete" } }), false),
    ] {
        let call = rig.call("tools/call", "{}", CallOptions::default());
        rig.seen();
        let seen = rig.hear(json!({ "id": call, "result": result }));
        let done = seen.last().unwrap();
        assert!(matches!(done, Seen::Done(_, outcome) if outcome.is_ok() == good), "{seen:?}");
    }
    let broken: Vec<_> = rig.engine.findings().iter().map(|found| (found.rule.id, found.count)).collect();
    assert_eq!(broken, [("RPC-13", 2)]);
}
