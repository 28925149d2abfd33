//! Conversations over several exchanges, and states of several people.

use std::sync::Arc;

use refmcp_proto::engine::{Change, EngineConfig, ExchangeId, MessageKind, MessageTarget, OutgoingMessage};
use refmcp_proto::jsonrpc::RpcError;
use refmcp_testkit::engine::{Event, TestEngine, full_config};
use refmcp_testkit::messages::{INITIALIZED, initialize_params};
use serde_json::{Value, json};

fn stateless(id: i64, method: &str, mut params: Value) -> Vec<u8> {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string().into_bytes()
}

fn in_session(id: i64, method: &str, params: &Value) -> Vec<u8> {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string().into_bytes()
}

fn with_session() -> TestEngine {
    let mut rig = TestEngine::new(full_config());
    let params = initialize_params("c", "2025-06-18", json!({ "roots": {} }));
    rig.send(&in_session(0, "initialize", &params));
    rig.send(INITIALIZED.as_bytes());
    rig.take_sent();
    rig
}

fn never(tag: &str) -> Value {
    json!({ "name": "never", "arguments": { "tag": tag } })
}

fn only(sent: Vec<OutgoingMessage>) -> (MessageTarget, MessageKind, Value) {
    let [OutgoingMessage { to, kind, json }] = <[_; 1]>::try_from(sent).unwrap();
    (to, kind, serde_json::from_slice(&json).unwrap())
}

#[test]
fn messages_of_a_request_go_to_its_exchange() {
    let mut rig = with_session();
    let call = json!({ "name": "progress", "_meta": { "progressToken": 1 } });
    rig.send_by(ExchangeId(7), &in_session(1, "tools/call", &call));
    let sent = rig.take_sent();
    assert_eq!(sent.len(), 3);
    assert!(sent.iter().all(|sending| sending.to == MessageTarget::Exchange(ExchangeId(7))));
    assert_eq!(sent[2].kind, MessageKind::Response { error: None });

    rig.send_by(ExchangeId(8), &in_session(2, "tools/call", &json!({ "name": "ask_roots" })));
    let (to, kind, question) = only(rig.take_sent());
    assert_eq!((to, kind), (MessageTarget::Exchange(ExchangeId(8)), MessageKind::Request));
    // The answer comes by another exchange; the result goes to the first.
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "roots": [] } });
    rig.send_by(ExchangeId(9), answer.to_string().as_bytes());
    let (to, _, result) = only(rig.take_sent());
    assert_eq!((to, &result["id"]), (MessageTarget::Exchange(ExchangeId(8)), &json!(2)));

    rig.send_by(ExchangeId(10), &in_session(3, "no/such", &json!({})));
    let (to, kind, _) = only(rig.take_sent());
    assert_eq!(
        (to, kind),
        (MessageTarget::Exchange(ExchangeId(10)), MessageKind::Response { error: Some(-32601) })
    );
}

#[test]
fn closing_an_exchange_cancels_only_stateless_requests() {
    let mut rig = with_session();
    rig.send_by(ExchangeId(1), &stateless(1, "tools/call", never("stateless")));
    rig.send_by(ExchangeId(1), &in_session(2, "tools/call", &never("session")));
    rig.send_by(ExchangeId(2), &stateless(3, "tools/call", never("elsewhere")));
    rig.engine.close_exchange(ExchangeId(1));
    rig.settle();
    assert_eq!(rig.take_events(), [Event::Stopped("stateless".into())]);
    assert!(rig.finish_tagged("session"));
    assert_eq!(only(rig.take_sent()).2["id"], json!(2));
    assert!(rig.finish_tagged("elsewhere"));
    assert_eq!(only(rig.take_sent()).2["id"], json!(3));
}

#[test]
fn a_closed_exchange_ends_its_subscription() {
    let mut rig = TestEngine::new(full_config());
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    rig.send_by(ExchangeId(1), &stateless(1, "subscriptions/listen", listen.clone()));
    rig.send_by(ExchangeId(2), &stateless(2, "subscriptions/listen", listen));
    assert_eq!(rig.engine.listening(), 2);
    rig.take_sent();
    rig.engine.close_exchange(ExchangeId(1));
    rig.changed(&refmcp_proto::engine::Change::Tools);
    assert_eq!(only(rig.take_sent()).0, MessageTarget::Exchange(ExchangeId(2)));
    rig.engine.wind_down();
    rig.settle();
    assert!(rig.take_sent().iter().all(|sending| sending.to == MessageTarget::Exchange(ExchangeId(2))));
    assert_eq!(rig.engine.listening(), 0);
}

/// The state that a question leaves with the client.
fn state_of(rig: &mut TestEngine) -> String {
    rig.send(&stateless(1, "tools/call", json!({ "name": "ask" })));
    only(rig.take_sent()).2["result"]["requestState"].as_str().unwrap().to_owned()
}

fn come_back(rig: &mut TestEngine, state: &str) -> Value {
    let responses = json!({ "name": { "action": "accept" } });
    let params = json!({ "name": "ask", "requestState": state, "inputResponses": responses });
    rig.send(&stateless(2, "tools/call", params));
    only(rig.take_sent()).2
}

#[test]
fn a_request_state_is_bound_to_its_principal_not_to_an_engine() {
    let config: EngineConfig = full_config();
    let other = EngineConfig { sealer: Arc::clone(&config.sealer), ..full_config() };
    let state = state_of(&mut TestEngine::for_principal(config.clone(), "ann"));
    assert!(come_back(&mut TestEngine::for_principal(other, "ann"), &state)["result"].is_object());
    for stranger in [
        TestEngine::for_principal(config.clone(), "bea"),
        TestEngine::for_principal(config.clone(), ""),
        TestEngine::new(config),
    ] {
        let mut stranger = stranger;
        assert_eq!(come_back(&mut stranger, &state)["error"]["code"], json!(-32602));
    }
}

#[test]
fn a_request_state_with_any_character_changed_is_refused() {
    let mut rig = TestEngine::new(full_config());
    let state = state_of(&mut rig);
    for at in 0..state.len() {
        let other = if state.as_bytes()[at] == b'0' { "1" } else { "0" };
        let mut changed = state.clone();
        changed.replace_range(at..=at, other);
        for text in [&changed[..], &state[..at]] {
            assert_eq!(come_back(&mut rig, text)["error"]["code"], json!(-32602), "{at}");
        }
    }
    assert!(come_back(&mut rig, &state)["result"].is_object());
}

#[test]
fn a_request_state_that_came_back_is_in_the_dispatch() {
    let mut rig = TestEngine::with_handler(full_config(), |_| Vec::new());
    let state = state_of(&mut TestEngine::new(full_config()));
    let params = json!({ "name": "ask", "requestState": state });
    rig.send(&stateless(1, "tools/call", params));
    let call = &rig.running()[0];
    assert_eq!(call.state.as_ref().map(|used| &*used.sealed), Some(&*state));
    assert_eq!((call.round, call.state.as_ref().unwrap().expires > rig.clock.now()), (1, true));
}

#[test]
fn session_changes_are_not_sent_to_listeners() {
    let mut rig = with_session();
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    rig.send_by(ExchangeId(5), &stateless(1, "subscriptions/listen", filter));
    rig.take_sent();
    rig.engine.session_changed(&Change::Tools);
    rig.settle();
    let (to, _, told) = only(rig.take_sent());
    assert_eq!((to, &told["method"]), (MessageTarget::Session, &json!("notifications/tools/list_changed")));
    rig.changed(&Change::Tools);
    assert_eq!(rig.take_sent().len(), 2, "a change for all is sent to both");
}

#[test]
fn closing_the_input_fails_calls_that_wait_for_it() {
    let mut rig = with_session();
    rig.send(&in_session(1, "tools/call", &json!({ "name": "ask_roots" })));
    rig.take_sent();
    rig.engine.close_input();
    rig.settle();
    let answers: Vec<Value> =
        rig.take_sent().iter().map(|sent| serde_json::from_slice(&sent.json).unwrap()).collect();
    assert_eq!(answers.last().unwrap()["error"]["code"], -32603);
    // One that is asked later ends at once.
    rig.send(&in_session(2, "tools/call", &json!({ "name": "ask_roots" })));
    let (_, kind, _) = only(rig.take_sent());
    assert_eq!(kind, MessageKind::Response { error: Some(-32603) });
}

/// A session of the revision with batches, whose engine keeps at most so many bytes of their responses.
fn with_batches(max_batch_bytes: usize) -> TestEngine {
    let mut rig = TestEngine::new(EngineConfig { max_batch_bytes, ..full_config() });
    rig.send(&in_session(0, "initialize", &initialize_params("c", "2025-03-26", json!({}))));
    rig.send(INITIALIZED.as_bytes());
    rig.take_sent();
    rig
}

fn batch_of_three() -> Vec<u8> {
    let calls = ["a", "b", "c"].iter().zip(1..).map(|(tag, id)| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": never(&tag.repeat(100)) })
    });
    Value::Array(calls.collect()).to_string().into_bytes()
}

#[test]
fn responses_to_a_batch_beyond_the_limit_are_errors() {
    let mut rig = with_batches(500);
    rig.send(&batch_of_three());
    for tag in ["a", "b", "c"] {
        assert!(rig.engine.batch_bytes() <= 500 + 250, "{}", rig.engine.batch_bytes());
        assert!(rig.finish_tagged(&tag.repeat(100)));
    }
    let (_, _, responses) = only(rig.take_sent());
    let ids: Vec<_> = responses.as_array().unwrap().iter().map(|response| &response["id"]).collect();
    assert_eq!(ids, [1, 2, 3]);
    assert!(responses[0]["result"].is_object() && responses[1]["result"].is_object(), "{responses}");
    assert_eq!(responses[2]["error"]["code"], -32603);
    assert!(responses[2]["error"]["message"].as_str().unwrap().contains("500 bytes"), "{responses}");
    assert_eq!(rig.engine.batch_bytes(), 0);
}

#[test]
fn collected_responses_can_be_replaced_by_errors() {
    let mut rig = with_batches(1 << 20);
    rig.send(&batch_of_three());
    assert!(rig.finish_tagged(&"b".repeat(100)));
    rig.engine.refuse_batch_responses(&RpcError::internal("no memory"));
    assert!(rig.finish_tagged(&"a".repeat(100)) && rig.finish_tagged(&"c".repeat(100)));
    let (_, _, responses) = only(rig.take_sent());
    assert_eq!(
        responses[0],
        json!({ "jsonrpc": "2.0", "id": 2, "error": { "code": -32603, "message": "no memory" } })
    );
    assert!(responses[1]["result"].is_object() && responses[2]["result"].is_object(), "{responses}");
    assert_eq!(rig.engine.batch_bytes(), 0);
}
