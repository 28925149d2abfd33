//! An engine whose calls are forwarded to another server (`EngineConfig::forwards`).

use std::collections::BTreeMap;
use std::sync::Arc;

use refmcp_proto::engine::{
    CallId, Dispatch, ExchangeId, HandlerOutcome, KeyedInputRequest, LogMessage, Output, ServerEngine,
};
use refmcp_proto::model::{InputRequest, LogLevel, ServerNotification, SubscriptionFilter};
use refmcp_proto::revision::Method;
use refmcp_proto::time::Timestamp;
use refmcp_testkit::engine::full_config;
use refmcp_testkit::messages::initialize_params;
use serde_json::value::RawValue;
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp::from_millis(1000);

struct Harness {
    engine: ServerEngine,
    sent: Vec<String>,
    running: Vec<Dispatch>,
    ended: Vec<CallId>,
    listening: Vec<SubscriptionFilter>,
}

impl Harness {
    fn new() -> Self {
        let mut config = full_config();
        config.forwards = true;
        let engine = ServerEngine::new(Arc::new(config), None);
        Self { engine, sent: vec![], running: vec![], ended: vec![], listening: vec![] }
    }

    fn in_session(capabilities: Value) -> Self {
        let mut harness = Self::new();
        let params = initialize_params("c", "2025-11-25", capabilities);
        harness.receive(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
        harness.receive(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        harness.sent.clear();
        harness
    }

    fn receive(&mut self, message: &Value) {
        self.engine.receive(NOW, ExchangeId(1), message.to_string().as_bytes());
        self.poll();
    }

    fn request(&mut self, id: u64, method: &str, params: &Value) {
        self.receive(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }

    fn stateless(&mut self, id: u64, method: &str, mut params: Value) {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        self.request(id, method, &params);
    }

    fn poll(&mut self) {
        while let Some(output) = self.engine.poll() {
            match output {
                Output::Send(message) => self.sent.push(String::from_utf8(message.json).unwrap()),
                Output::Run(call) => self.running.push(call),
                Output::Cancel(call) => self.ended.push(call),
                Output::Listening(filter) => self.listening.push(*filter),
                _ => {}
            }
        }
    }

    fn finish(&mut self, outcome: HandlerOutcome) -> CallId {
        let call = self.running.remove(0).call;
        self.engine.finish(NOW, call, outcome);
        self.poll();
        call
    }

    fn ask_for_roots(&mut self) -> CallId {
        let requests = vec![KeyedInputRequest { key: "1".to_owned(), request: InputRequest::Roots }];
        self.finish(HandlerOutcome::InputRequired { requests, used: None, once: BTreeMap::new() })
    }
}

fn raw(text: &str) -> HandlerOutcome {
    HandlerOutcome::Raw(RawValue::from_string(text.to_owned()).unwrap())
}

#[test]
fn every_method_is_a_call() {
    let mut harness = Harness::in_session(json!({}));
    harness.request(1, "any/thing", &json!({}));
    harness.request(2, "logging/setLevel", &json!({ "level": "error" }));
    let methods: Vec<_> = harness.running.iter().map(|call| call.method.clone()).collect();
    assert_eq!(methods, [Method::Custom("any/thing".into()), Method::SetLevel]);
    assert_eq!(harness.engine.log_level(), LogLevel::Error);
    harness.request(3, "logging/setLevel", &json!({ "level": "loud" }));
    harness.request(4, "notifications/initialized", &json!({}));
    assert_eq!((harness.running.len(), harness.sent.len()), (2, 2), "refused here: {:?}", harness.sent);
}

#[test]
fn a_raw_result_is_sent_as_it_is_on_one_line() {
    let mut harness = Harness::in_session(json!({}));
    harness.request(1, "tools/call", &json!({ "name": "x" }));
    harness.finish(raw("{\n \"z\": 1.0e2,\r\n \"a\": \"\\n\"\n}"));
    let expected = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{  \"z\": 1.0e2,   \"a\": \"\\n\" }}";
    assert_eq!(harness.sent, [expected]);
}

#[test]
fn a_raw_result_of_subscribe_subscribes() {
    let mut harness = Harness::in_session(json!({}));
    harness.request(1, "resources/subscribe", &json!({ "uri": "a:b" }));
    harness.finish(raw("{}"));
    assert_eq!(harness.engine.subscriptions().collect::<Vec<_>>(), ["a:b"]);
}

#[test]
fn any_call_of_a_session_can_ask() {
    let mut harness = Harness::in_session(json!({ "roots": {} }));
    harness.request(1, "tools/list", &json!({}));
    harness.ask_for_roots();
    assert!(harness.sent[0].contains("roots/list"), "{:?}", harness.sent);
}

#[test]
fn a_call_that_no_longer_needs_input_runs_again() {
    let mut harness = Harness::in_session(json!({ "roots": {} }));
    harness.request(1, "tools/call", &json!({ "name": "x" }));
    let call = harness.ask_for_roots();
    harness.engine.withdraw_input(call);
    harness.poll();
    assert!(harness.sent[1].contains("notifications/cancelled"), "{:?}", harness.sent);
    assert_eq!(harness.running.len(), 1);
    // One that runs is left alone.
    harness.engine.withdraw_input(call);
    harness.poll();
    assert_eq!((harness.running.len(), harness.sent.len()), (1, 2));
}

#[test]
fn the_end_of_a_call_that_waits_for_input_is_told() {
    let mut harness = Harness::in_session(json!({ "roots": {} }));
    harness.request(1, "tools/call", &json!({ "name": "x" }));
    let cancelled = harness.ask_for_roots();
    harness.receive(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }),
    );
    assert_eq!(harness.ended, [cancelled]);
    harness.request(2, "tools/call", &json!({ "name": "x" }));
    let left = harness.ask_for_roots();
    harness.engine.close_input();
    harness.poll();
    assert_eq!(harness.ended, [cancelled, left]);

    let mut unable = Harness::in_session(json!({}));
    unable.request(1, "tools/call", &json!({ "name": "x" }));
    let refused = unable.ask_for_roots();
    assert_eq!(unable.ended, [refused]);
}

#[test]
fn what_is_listened_for_is_reported() {
    let mut harness = Harness::new();
    harness.stateless(1, "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    let notifications = json!({ "resourceSubscriptions": ["b:", "a:", "b:"] });
    harness.stateless(2, "subscriptions/listen", json!({ "notifications": notifications }));
    let both = harness.listening.last().unwrap();
    assert_eq!(both.tools_list_changed, Some(true));
    assert_eq!(both.resource_subscriptions.as_deref().unwrap(), ["a:", "b:"]);
    harness.engine.close_exchange(ExchangeId(1));
    harness.poll();
    assert_eq!(harness.listening.len(), 3);
    assert_eq!(harness.listening[2], SubscriptionFilter::default());
}

#[test]
fn other_notifications_are_sent_as_they_are() {
    let mut harness = Harness::in_session(json!({}));
    let custom = ServerNotification::read("x/y", Some("{\"a\":[1]}")).unwrap();
    harness.engine.notify(None, &custom);
    harness.engine.notify(Some(CallId(99)), &custom);
    harness.engine.log(None, LogMessage { level: LogLevel::Debug, logger: None, data: json!(1) });
    harness.poll();
    let sent: Vec<Value> = harness.sent.iter().map(|sent| serde_json::from_str(sent).unwrap()).collect();
    assert_eq!(sent, [json!({ "jsonrpc": "2.0", "method": "x/y", "params": { "a": [1] } })]);
}
