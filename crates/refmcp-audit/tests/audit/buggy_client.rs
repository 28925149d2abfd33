//! Clients that do many things wrong in one conversation: each of them is found, by itself.

use std::collections::BTreeSet;

use refmcp_audit::auditor::Judgement;
use refmcp_audit::recording::Side;
use refmcp_audit::verdict::Role;
use serde_json::{Value, json};

use crate::script::{
    Script, error, initialize, initialized, notification, request, result, stateless_request,
    stateless_result,
};

/// What the client did wrong: the rule and the violation, in the order of rules.
fn violations(judgement: &Judgement) -> Vec<String> {
    let broken = judgement.broken().filter(|verdict| verdict.role == Role::Client);
    let violations =
        broken.flat_map(|verdict| verdict.violations.iter().map(|violation| (verdict.rule.id, violation)));
    violations.map(|(id, violation)| format!("{id}: {}", violation.what)).collect()
}

/// Asserts that the client was found to have done exactly this, and that the server has done nothing wrong.
fn assert_found(script: Script, mut expected: Vec<&str>) {
    let judgement = script.judge();
    expected.sort_unstable();
    let mut found = violations(&judgement);
    found.sort_unstable();
    assert_eq!(found, expected);
    let different: BTreeSet<_> = found.iter().collect();
    assert!(different.len() >= 30, "{} findings", different.len());
    for verdict in judgement.broken() {
        assert_eq!(verdict.role, Role::Client, "{verdict:#?}");
        for violation in &verdict.violations {
            assert!(violation.expected.len() > 10 && violation.evidence.at > 0, "{violation:?}");
        }
    }
}

/// What the client does in a session once it is open, the same on every transport, and what is found.
fn misbehaves(script: Script) -> (Script, Vec<&'static str>) {
    let no = |id: i64| error(id, -32601, json!(null));
    let script = script
        .client_invalid(r#"{"id":20,"method":"ping"}"#)
        .client_invalid(r#"{"jsonrpc":"1.0","id":20,"method":"ping"}"#)
        .client_invalid(r#"{"jsonrpc":"2.0","id":21,"method":"ping","params":[1]}"#)
        .client_invalid(r#"{"jsonrpc":"2.0","id":22,"Method":"ping"}"#)
        .client_invalid(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#)
        // Ids, envelopes and `_meta`.
        .client(request(4, "ping", json!({})))
        .server(result(4, json!({})))
        .client(request(4, "ping", json!({})))
        .server(result(4, json!({})))
        .client(json!({"jsonrpc": "2.0", "id": 5, "method": "ping", "_meta": {"progressToken": 1}}))
        .server(result(5, json!({})))
        .client(request(6, "ping", json!({"_meta": {"not a name": 1}})))
        .server(result(6, json!({})))
        .client(request(7, "ping", json!({"_meta": "none"})))
        .server(error(7, -32602, json!(null)))
        .client(json!([request(8, "ping", json!({}))]))
        .server(result(8, json!({})))
        .client(request(9, "notifications/cancelled", json!({"requestId": 4})))
        .server(no(9))
        // What the server does not have, or the revision, or this side.
        .client(request(10, "resources/list", json!({})))
        .server(no(10))
        .client(request(11, "prompts/list", json!({})))
        .server(no(11))
        .client(request(12, "logging/setLevel", json!({"level": "info"})))
        .server(no(12))
        .client(request(13, "server/discover", json!({})))
        .server(no(13))
        .client(request(14, "roots/list", json!({})))
        .server(no(14))
        .client(notification("notifications/message", json!({"level": "info", "data": "x"})))
        .client(notification("roots/list_changed", json!({})))
        // Responses.
        .server(request("ask", "roots/list", json!({})))
        .client(result("ask", json!({"roots": []})))
        .client(result("ask", json!({"roots": []})))
        .client(result(99, json!({})))
        .server(request(77, "roots/list", json!({})))
        .client(result("77", json!({"roots": []})))
        .client_invalid(r#"{"jsonrpc":"2.0","id":77,"result":{},"error":{"code":1,"message":"m"}}"#)
        .client_invalid(r#"{"jsonrpc":"2.0","id":77,"error":{"message":"m"}}"#)
        .client(error(77, -32603, json!(null)))
        .server(request("p", "ping", json!({})))
        .client(result("p", json!({"pong": true})))
        // Progress.
        .client(request(
            15,
            "tools/call",
            json!({"name": "t", "arguments": {}, "_meta": {"progressToken": 1.5}}),
        ))
        .server(error(15, -32602, json!(null)))
        .client(request(
            16,
            "tools/call",
            json!({"name": "t", "arguments": {}, "_meta": {"progressToken": "t"}}),
        ))
        .client(request(
            17,
            "tools/call",
            json!({"name": "t", "arguments": {}, "_meta": {"progressToken": "t"}}),
        ))
        .client(notification("notifications/progress", json!({"progressToken": "none", "progress": 1})))
        .client(notification("notifications/progress", json!({"progress": 1})))
        .client(notification("$/progress", json!({})))
        // Cancelling.
        .client(notification("notifications/cancelled", json!({})))
        .client(notification("notifications/cancelled", json!({"requestId": 500})))
        .server(request("mine", "roots/list", json!({})))
        .client(notification("notifications/cancelled", json!({"requestId": "mine"})))
        .client(result("mine", json!({"roots": []})))
        .client(notification("$/cancelRequest", json!({"id": 16})))
        .client(notification("notifications/cancelled", json!({"requestId": 0})))
        .server(result(16, json!({"content": []})))
        .server(result(17, json!({"content": []})));
    let found = vec![
        "RPC-01: member \"jsonrpc\" is missing",
        "RPC-01: member \"jsonrpc\" is not \"2.0\"",
        "RPC-01: member \"params\" is not an object",
        "RPC-01: key \"Method\" differs from a known one only in case",
        "RPC-01: _meta stands beside params",
        "RPC-01: _meta is no object",
        "RPC-02: member \"id\" is neither a string nor an integer",
        "RPC-03: the id 4 is used a second time in the session",
        "RPC-16: the key not a name of _meta is no name",
        "RPC-10: a batch where the revision has none",
        "RPC-07: notifications/cancelled has an id",
        "LIFE-08: resources/list without the capability resources of the receiver",
        "LIFE-08: prompts/list without the capability prompts of the receiver",
        "LIFE-08: logging/setLevel without the capability logging of the receiver",
        "LIFE-08: server/discover, which the revision does not have",
        "LIFE-08: roots/list, which only the other side sends",
        "LIFE-08: notifications/message, which only the other side sends",
        "LIFE-08: roots/list_changed, which is no notification of the protocol",
        "RPC-05: a second response to request \"ask\"",
        "RPC-05: a response to no request",
        "RPC-05: a response to request 77 has the id \"77\", of another type",
        "RPC-06: an answer has both result and error",
        "RPC-06: member \"error\": missing field `code`",
        "PING-01: the result of ping is not empty",
        "PROG-01: progressToken is neither a string nor an integer",
        "PROG-01: progressToken is that of another request that is running",
        "PROG-01: progress for a token that no request has",
        "PROG-01: a progress notification without a progressToken",
        "PROG-01: $/progress, which is no notification of the protocol",
        "CANC-01: notifications/cancelled without requestId",
        "CANC-01: request 500 was cancelled, which was never sent",
        "CANC-01: request \"mine\" of the other side was cancelled",
        "CANC-01: $/cancelRequest, which is no notification of the protocol",
        "LIFE-11: initialize was cancelled",
    ];
    (script, found)
}

#[test]
fn a_client_that_breaks_many_rules_over_a_pipe_is_told_each() {
    let opened = initialized("2025-06-18", json!({"tools": {}}));
    let opening = Script::new("stdio")
        .client(request(1, "tools/list", json!({})))
        .server(error(1, -32600, json!(null)))
        .client(request(0, "initialize", initialize("2025-06-18", json!({"roots": {}}))))
        .client(request(2, "tools/list", json!({})))
        .server(result(0, opened))
        .server(error(2, -32600, json!(null)))
        .client(request(3, "tools/list", json!({})))
        .server(result(3, json!({"tools": []})))
        .client(json!({"jsonrpc": "2.0", "method": "initialized"}))
        .client(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        .client(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        .client(request(18, "initialize", initialize("2025-06-18", json!({"roots": {}}))))
        .server(error(18, -32600, json!(null)));
    let (script, mut found) = misbehaves(opening);
    // A ping and a request of the server are never answered.
    let script =
        script.server(request("quiet", "ping", json!({}))).server(request("still", "roots/list", json!({})));
    found.extend([
        "LIFE-01: tools/list before initialize",
        "LIFE-01: initialize a second time in a session",
        "LIFE-02: tools/list before notifications/initialized",
        "LIFE-02: initialized, which is no notification of the protocol",
        "LIFE-02: notifications/initialized a second time",
        "LIFE-03: tools/list before initialize was answered",
        "PING-01: ping has no response",
        "RPC-22: roots/list has no response",
    ]);
    assert_found(script.after(60_000), found);
}

#[test]
fn a_client_that_breaks_many_rules_over_http_is_told_each() {
    let opened = initialized("2025-06-18", json!({"tools": {}}));
    let opening = Script::recorded_by(Side::Server, "http")
        .on_stream(1)
        .client(request(0, "initialize", initialize("2025-06-18", json!({"roots": {}}))))
        .server(result(0, opened))
        .on_stream(2)
        .client(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        .on_stream(3);
    let (script, found) = misbehaves(opening);
    assert_found(script, found);
}

/// A request without a session, with members of `_meta` in place of the right ones.
fn call(id: impl Into<Value>, meta: Value) -> Value {
    request(id, "tools/call", json!({"name": "t", "arguments": {}, "_meta": meta}))
}

#[test]
fn a_client_that_breaks_many_rules_without_a_session_is_told_each() {
    let version = "io.modelcontextprotocol/protocolVersion";
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    let right = || json!({version: "2026-07-28", capabilities: {"elicitation": {}, "roots": {}}});
    let with = |key: &str, value: Value| {
        let mut meta = right();
        meta[key] = value;
        meta
    };
    let repeated = |id: i64, members: Value| {
        let mut params = json!({"name": "t", "arguments": {}, "_meta": right()});
        params.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        request(id, "tools/call", params)
    };
    let form = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let ask = json!({"method": "elicitation/create", "params": {"mode": "form", "message": "?", "requestedSchema": form}});
    let asks = |id: i64| {
        let requests = json!({"a": ask, "b": {"method": "roots/list"}});
        stateless_result(
            id,
            json!({"resultType": "input_required", "inputRequests": requests, "requestState": "s"}),
        )
    };
    let answers = json!({"a": {"action": "cancel"}, "b": {"roots": []}});
    let called = |id: i64| stateless_result(id, json!({"content": []}));
    let bad = |id: i64| error(id, -32602, json!(null));
    let no = |id: i64| error(id, -32601, json!(null));
    let listen = |id: i64, filter: Value| {
        stateless_request(id, "subscriptions/listen", json!({"notifications": filter}))
    };
    let script = Script::without_session("stdio", json!({"tools": {"listChanged": true}}))
        .client_invalid(r#"{"id":1,"method":"tools/list"}"#)
        .client_invalid(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}"#)
        .client_invalid(r#"{"jsonrpc":"2.0","id":{},"method":"tools/list"}"#)
        .client_invalid(r#"{"jsonrpc":"2.0","id":1,"error":{}}"#)
        // `_meta`.
        .client(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}))
        .server(bad(1))
        .client(call(2, json!({version: "2026-07-28"})))
        .server(bad(2))
        .client(call(3, with("io.modelcontextprotocol/clientInfo", json!("me"))))
        .server(bad(3))
        .client(call(5, with("a/b/c", json!(1))))
        .server(called(5))
        .client(call(6, with("traceparent", json!("1"))))
        .server(called(6))
        .client(call(7, with("tracestate", json!("x"))))
        .server(called(7))
        .client(call(8, with("progressToken", json!([]))))
        .server(bad(8))
        .client(call(9, with(version, json!("2025-06-18"))))
        .server(error(9, -32022, json!({"supported": ["2026-07-28"], "requested": "2025-06-18"})))
        .client(json!({"jsonrpc": "2.0", "id": 10, "method": "tools/list", "params": {}, "_meta": right()}))
        .server(bad(10))
        // Ids and envelopes.
        .client(call(11, right()))
        .client(call(11, right()))
        .server(called(11))
        .client(json!([call(12, right())]))
        .server(error(Value::Null, -32600, json!(null)))
        .client(result(50, json!({})))
        .client(stateless_request(13, "notifications/cancelled", json!({"requestId": 1})))
        .server(no(13))
        // What the revision does not have, or this side.
        .client(stateless_request(14, "ping", json!({})))
        .server(no(14))
        .client(stateless_request(15, "logging/setLevel", json!({"level": "info"})))
        .server(no(15))
        .client(stateless_request(16, "roots/list", json!({})))
        .server(no(16))
        .client(notification("notifications/initialized", json!({})))
        .client(notification("notifications/message", json!({"level": "info", "data": "x"})))
        // Input.
        .client(call(20, right()))
        .server(asks(20))
        .client(repeated(21, json!({"inputResponses": answers})))
        .server(called(21))
        .client(repeated(20, json!({"inputResponses": answers, "requestState": "s"})))
        .server(called(20))
        .client(repeated(22, json!({"inputResponses": answers, "requestState": "S"})))
        .server(bad(22))
        .client(repeated(23, json!({"inputResponses": {"b": {"roots": []}}, "requestState": "s"})))
        .server(asks(23))
        .client(repeated(24, json!({"inputResponses": answers, "requestState": "s", "arguments": {"x": 1}})))
        .server(bad(24))
        .client(repeated(25, json!({"inputResponses": answers, "requestState": "s", "name": "other"})))
        .server(bad(25))
        // Subscriptions.
        .client(listen(30, json!(null)))
        .server(bad(30))
        .client(listen(31, json!({"toolsListChanged": 1})))
        .server(bad(31))
        .client(listen(32, json!({"resourceSubscriptions": "a:b"})))
        .server(bad(32))
        // Cancelling.
        .client(notification("notifications/cancelled", json!({})))
        .client(notification("notifications/cancelled", json!({"requestId": 900})))
        .client(notification("cancelled", json!({"requestId": 11})));
    let expected = vec![
        "RPC-01: member \"jsonrpc\" is missing",
        "RPC-01: member \"params\" is not an object",
        "RPC-01: _meta stands beside params",
        "RPC-02: member \"id\" is neither a string nor an integer",
        "RPC-04: the id 11 is that of a request that has no response yet",
        "RPC-05: a response to no request",
        "RPC-06: member \"error\": missing field `code`",
        "RPC-07: notifications/cancelled has an id",
        "RPC-10: a batch where the revision has none",
        "RPC-16: the key a/b/c of _meta is no name",
        "RPC-17: traceparent of _meta has not the format of the W3C",
        "RPC-17: tracestate of _meta has not the format of the W3C",
        "STATE-04: params._meta names no protocolVersion",
        "STATE-04: params._meta has no clientCapabilities",
        "STATE-04: clientInfo of params._meta has no name or no version",
        "STATE-17: ping, which the revision does not have",
        "STATE-17: logging/setLevel, which the revision does not have",
        "STATE-17: roots/list, which only the other side sends",
        "STATE-17: notifications/initialized, which the revision does not have",
        "STATE-17: notifications/message, which only the other side sends",
        "T-11: params._meta names a revision with sessions",
        "PROG-01: progressToken is neither a string nor an integer",
        "MRTR-05: tools/call was repeated before all input was there",
        "MRTR-06: tools/call was repeated without the requestState of the result",
        "MRTR-06: tools/call was repeated with other params",
        "MRTR-06: tools/call was repeated with the id of the first request",
        "MRTR-07: tools/call has a requestState that no result had",
        "MRTR-07: tools/call has the requestState of another request",
        "SUB-01: subscriptions/listen has no filter in notifications",
        "SUB-01: the filter of subscriptions/listen has a list that is no boolean",
        "SUB-01: the filter of subscriptions/listen has names that are no array of strings",
        "CANC-04: notifications/cancelled without requestId",
        "CANC-04: request 900 was cancelled, which was never sent",
        "CANC-04: cancelled, which is no notification of the protocol",
    ];
    assert_found(script, expected);
}
