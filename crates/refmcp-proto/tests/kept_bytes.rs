//! What a client can make a server keep has a limit in bytes: beyond it requests are refused, and what was kept before stays.

use std::time::Duration;

use refmcp_proto::engine::{EarlyRequests, EngineConfig, HandlerOutcome};
use refmcp_proto::finding::{Finding, Findings};
use refmcp_proto::model::EmptyResult;
use refmcp_proto::rule;
use refmcp_testkit::engine::{TestEngine, full_config};
use refmcp_testkit::messages::{INITIALIZED, initialize_params, request_meta};
use refmcp_testkit::script::Step;
use serde_json::{Value, json};

const SESSION: &str = "2025-11-25";
const STATELESS: &str = "2026-07-28";

fn request(id: impl Into<Value>, method: &str, params: &Value) -> Vec<u8> {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params }).to_string().into_bytes()
}

/// Sends a request, and gives the last message that came back.
#[track_caller]
fn answer(engine: &mut TestEngine, id: impl Into<Value>, method: &str, params: &Value) -> Value {
    engine.send(&request(id, method, params));
    let sent = engine.take_sent();
    serde_json::from_slice(&sent.last().expect("nothing came back").json).unwrap()
}

/// An engine with the scripted handlers and an open session.
fn opened(config: EngineConfig) -> TestEngine {
    open(TestEngine::new(config))
}

/// Opens a session.
fn open(mut engine: TestEngine) -> TestEngine {
    answer(&mut engine, "open", "initialize", &initialize_params("c", SESSION, json!({ "elicitation": {} })));
    engine.send(INITIALIZED.as_bytes());
    engine
}

fn done() -> HandlerOutcome {
    HandlerOutcome::Done(Box::new(EmptyResult::default().into()))
}

/// Checks that a response is this error, names all of this, and repeats little of what was sent.
#[track_caller]
fn refused(response: &Value, code: i64, named: &[&str]) {
    assert_eq!(response["error"]["code"], json!(code), "{:.300}", response.to_string());
    let message = response["error"]["message"].as_str().unwrap();
    assert!(named.iter().all(|name| message.contains(name)), "{named:?} in {message:.300}");
    assert!(response.to_string().len() < 600, "the response repeats the request");
}

#[test]
fn what_a_client_says_of_itself_is_limited() {
    let long = "x".repeat(100_000);
    let values: Value = vec![0; 5000].into();
    for (member, place, value) in [
        ("clientInfo", "/clientInfo/name", json!(long)),
        ("clientInfo", "/clientInfo/version", json!(long)),
        ("clientInfo", "/clientInfo/description", json!(long)),
        ("clientInfo", "/clientInfo/icons", json!([{ "src": long }])),
        ("clientInfo", "/clientInfo/unknown", json!({ "a": long })),
        ("clientInfo", "/clientInfo/unknown", values.clone()),
        ("capabilities", "/capabilities/experimental", json!({ "a": long })),
        ("capabilities", "/capabilities/unknown", json!({ "a": long })),
        ("capabilities", "/capabilities/experimental", json!({ "a": values })),
    ] {
        let mut params = initialize_params("c", SESSION, json!({}));
        set(&mut params, place, value);
        let mut engine = TestEngine::new(full_config());
        let response = answer(&mut engine, 1, "initialize", &params);
        let limit = if params.to_string().len() > 65_536 { "65536" } else { "1024" };
        refused(&response, -32602, &[&format!("params.{member}"), limit]);
        assert!(engine.engine.peer().is_none(), "{place}: there is no session");
        let response = answer(&mut engine, 2, "initialize", &initialize_params("c", SESSION, json!({})));
        assert_eq!(response["result"]["protocolVersion"], SESSION, "{place}");
    }
}

/// Sets the member at this place.
fn set(object: &mut Value, place: &str, value: Value) {
    let (parent, name) = place.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[name] = value;
}

#[test]
fn what_is_not_kept_of_a_client_may_be_longer() {
    let mut params = initialize_params("c", SESSION, json!({}));
    params["protocolVersion"] = json!("x".repeat(100_000));
    params["_meta"] = json!({ "example.com/long": "x".repeat(100_000) });
    params["clientInfo"]["icons"] =
        json!([{ "src": format!("data:image/png;base64,{}", "A".repeat(60_000)) }]);
    let mut engine = TestEngine::new(full_config());
    let response = answer(&mut engine, 1, "initialize", &params);
    assert_eq!(response["result"]["protocolVersion"], SESSION);
    let facts = serde_json::to_string(&engine.engine.facts()).unwrap();
    assert!(facts.len() < 61_000, "{}", facts.len());
}

#[test]
fn what_a_stateless_request_says_of_its_client_is_limited() {
    let long = "x".repeat(100_000);
    let mut engine = TestEngine::new(full_config());
    for (key, member, value) in [
        ("io.modelcontextprotocol/clientInfo", "name", json!(long)),
        ("io.modelcontextprotocol/clientCapabilities", "experimental", json!({ "a": long })),
        ("io.modelcontextprotocol/clientCapabilities", "experimental", json!({ "a": vec![0; 5000] })),
    ] {
        let mut meta = request_meta("c", STATELESS, json!({}));
        meta[key][member] = value;
        let response = answer(&mut engine, 1, "tools/list", &json!({ "_meta": meta }));
        let limit = if meta.to_string().len() > 65_536 { "65536" } else { "1024" };
        refused(&response, -32602, &[&format!("params._meta[\"{key}\"]"), limit]);
    }
    let meta = request_meta("c", STATELESS, json!({}));
    assert!(answer(&mut engine, 3, "tools/list", &json!({ "_meta": meta }))["result"].is_object());
}

#[test]
fn uris_of_subscriptions_are_limited() {
    let mut engine = open(TestEngine::with_handler(full_config(), |_| vec![Step::End(done())]));
    let uri = |number: usize| format!("note:///{number}/{}", "x".repeat(60_000));
    let most = (0..10)
        .take_while(|number| {
            let response =
                answer(&mut engine, *number, "resources/subscribe", &json!({ "uri": uri(*number) }));
            response.get("error").is_none()
        })
        .count();
    assert_eq!(most, 4, "four of 60 kB fit into 256 KiB");
    let response = answer(&mut engine, 20, "resources/subscribe", &json!({ "uri": uri(20) }));
    refused(&response, -32602, &["params.uri", "262144"]);
    assert_eq!(engine.engine.subscriptions().count(), 4);
    // One that is kept already needs no room, and one that ends makes room.
    for (id, method, number) in [(21, "resources/subscribe", 0), (22, "resources/unsubscribe", 0)] {
        let response = answer(&mut engine, id, method, &json!({ "uri": uri(number) }));
        assert_eq!(response["result"], json!({}), "{method}");
    }
    assert_eq!(
        answer(&mut engine, 23, "resources/subscribe", &json!({ "uri": uri(5) }))["result"],
        json!({})
    );
}

#[test]
fn subscriptions_that_are_accepted_at_the_same_time_are_limited() {
    let mut config = full_config();
    config.max_subscriptions = 2;
    let mut engine = open(TestEngine::with_handler(config, |_| Vec::new()));
    for id in 1..=3 {
        engine.send(&request(id, "resources/subscribe", &json!({ "uri": format!("note:///{id}") })));
    }
    let calls: Vec<_> = engine.running().iter().map(|call| call.call).collect();
    assert_eq!(calls.len(), 3);
    for call in calls {
        engine.finish(call, done());
    }
    assert_eq!(engine.engine.subscriptions().count(), 2);
    let last: Value = serde_json::from_slice(&engine.take_sent().last().unwrap().json).unwrap();
    refused(&last, -32600, &["at most 2 subscriptions"]);
}

#[test]
fn uris_of_listeners_are_limited() {
    let mut engine = TestEngine::new(full_config());
    let listen = |number: usize| {
        let uris = [format!("note:///{number}/{}", "x".repeat(60_000))];
        json!({
            "_meta": request_meta("c", STATELESS, json!({})),
            "notifications": { "resourceSubscriptions": uris },
        })
    };
    for id in 0..4 {
        assert!(answer(&mut engine, id, "subscriptions/listen", &listen(id)).get("error").is_none(), "{id}");
    }
    let response = answer(&mut engine, 4, "subscriptions/listen", &listen(4));
    refused(&response, -32602, &["params.notifications.resourceSubscriptions", "262144"]);
    assert_eq!(engine.engine.listening(), 4);
}

#[test]
fn progress_tokens_are_limited() {
    let mut engine = opened(full_config());
    let call = json!({ "name": "never", "arguments": {}, "_meta": { "progressToken": "x".repeat(100_000) } });
    refused(&answer(&mut engine, 1, "tools/call", &call), -32602, &["progressToken", "256"]);
    assert_eq!(engine.engine.in_flight(), 0);
}

#[test]
fn a_cancellation_with_a_long_id_or_reason_leaves_nothing() {
    let mut config = full_config();
    config.max_facts_bytes = Some(60 << 10);
    let mut engine = opened(config);
    while engine.next_shared().is_some() {}
    let long = "x".repeat(100_000);
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": long } });
    engine.send(cancel.to_string().as_bytes());
    assert_eq!(engine.next_shared(), None, "no process can have such a request");
    let params = json!({ "requestId": 1, "reason": long });
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
    engine.send(cancel.to_string().as_bytes());
    let shared = format!("{:?}", engine.next_shared());
    assert!(shared.contains("Cancel") && shared.len() < 200, "{shared}");
}

#[test]
fn parameters_of_requests_in_flight_are_limited() {
    let mut config = full_config();
    config.max_in_flight_bytes = 250_000;
    let mut engine = open(TestEngine::with_handler(config, |_| Vec::new()));
    let call = json!({ "name": "never", "arguments": { "text": "x".repeat(100_000) } });
    for id in 1..=2 {
        engine.send(&request(id, "tools/call", &call));
    }
    assert_eq!(engine.running().len(), 2);
    let response = answer(&mut engine, 3, "tools/call", &call);
    refused(&response, -32603, &["in flight", "250000"]);
    engine.finish(engine.running()[0].call, done());
    engine.send(&request(4, "tools/call", &call));
    assert_eq!(engine.running().len(), 2, "one that ends makes room");
}

#[test]
fn early_requests_that_are_held_count_as_in_flight() {
    let mut config = full_config();
    config.policy.early_requests = EarlyRequests::Hold(Duration::from_secs(1));
    config.max_in_flight_bytes = 250_000;
    let mut engine = TestEngine::new(config);
    answer(&mut engine, 0, "initialize", &initialize_params("c", SESSION, json!({})));
    let call = json!({ "name": "echo", "arguments": { "text": "x".repeat(100_000) } });
    for id in 1..=2 {
        engine.send(&request(id, "tools/call", &call));
        assert!(engine.take_sent().is_empty());
    }
    refused(&answer(&mut engine, 3, "tools/call", &call), -32603, &["in flight", "250000"]);
    engine.advance(Duration::from_secs(1));
    assert_eq!(engine.take_sent().len(), 2, "both are refused as too early");
    engine.send(&request(4, "tools/call", &call));
    assert!(engine.take_sent().is_empty(), "there is room again");
}

#[test]
fn responses_of_the_client_count_as_in_flight() {
    let mut config = full_config();
    config.max_in_flight_bytes = 250_000;
    let mut engine = opened(config);
    engine.send(&request(1, "tools/call", &json!({ "name": "ask", "arguments": {} })));
    let asked: Value = serde_json::from_slice(&engine.take_sent().last().unwrap().json).unwrap();
    let id = asked["id"].clone();
    assert!(asked["method"] == "elicitation/create", "{asked}");
    // Few bytes on the wire, and many in memory.
    let content = json!({ "name": vec![0; 50_000] });
    let response =
        json!({ "jsonrpc": "2.0", "id": id, "result": { "action": "accept", "content": content } });
    engine.send(response.to_string().as_bytes());
    let text = String::from_utf8(engine.take_sent().last().unwrap().json.clone()).unwrap();
    assert!(text.contains("in flight") && text.contains("250000"), "{text:.300}");
}

#[test]
fn texts_of_findings_are_short() {
    let mut findings = Findings::default();
    let finding = Finding::new(&rule::RPC_05, "x".repeat(100_000), "none");
    assert!(finding.what.len() < 2000, "{}", finding.what.len());
    assert!(findings.record(&finding));
    let kept: usize = findings.iter().flat_map(|known| &known.texts).map(String::len).sum();
    assert!(kept < 2000, "{kept}");
}
