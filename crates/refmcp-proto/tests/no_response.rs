//! `Output::NoResponse`: when the requests of an exchange were cancelled, and only when no other response is due there.

use std::sync::Arc;
use std::time::Duration;

use refmcp_proto::engine::{CallId, EarlyRequests, ExchangeId, HandlerOutcome, Output, ServerEngine};
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::time::Timestamp;
use refmcp_testkit::engine::full_config;
use refmcp_testkit::messages::initialize_params;
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp::from_millis(1000);

/// An engine, and the calls that it runs.
struct Harness {
    engine: ServerEngine,
    running: Vec<CallId>,
}

/// Outputs that these tests look at.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Sent,
    NoResponse(u64),
}

impl Harness {
    fn new(early: Option<EarlyRequests>) -> Self {
        let mut config = full_config();
        if let Some(early) = early {
            config.policy.early_requests = early;
        }
        let engine = ServerEngine::new(Arc::new(config), None);
        Self { engine, running: Vec::new() }
    }

    fn in_session(revision: &str) -> Self {
        let mut harness = Self::new(None);
        harness.initialize(revision);
        harness.receive(0, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        harness
    }

    fn initialize(&mut self, revision: &str) {
        let params = initialize_params("c", revision, json!({}));
        let initialize = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        assert_eq!(self.receive(0, &initialize), [Seen::Sent]);
    }

    /// Receives a message on an exchange; calls begin and do not end.
    fn receive(&mut self, exchange: u64, message: &Value) -> Vec<Seen> {
        self.engine.receive(NOW, ExchangeId(exchange), message.to_string().as_bytes());
        self.outputs()
    }

    fn outputs(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        while let Some(output) = self.engine.poll() {
            match output {
                Output::Run(call) => self.running.push(call.call),
                Output::Cancel(call) => self.running.retain(|running| *running != call),
                Output::Send(_) => seen.push(Seen::Sent),
                Output::NoResponse(ExchangeId(number)) => seen.push(Seen::NoResponse(number)),
                _ => {}
            }
        }
        seen
    }

    /// The oldest call ends.
    fn finish(&mut self) -> Vec<Seen> {
        let call = self.running.remove(0);
        self.engine.finish(NOW, call, HandlerOutcome::Failed(RpcError::internal("over").into()));
        self.outputs()
    }
}

fn call(id: i64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "never", "arguments": {} } })
}

fn cancel(id: i64) -> Value {
    let params = json!({ "requestId": id });
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })
}

#[test]
fn a_cancelled_request_ends_its_exchange_without_a_response() {
    let mut harness = Harness::in_session("2025-06-18");
    assert_eq!(harness.receive(1, &call(1)), []);
    assert_eq!(harness.receive(2, &call(2)), []);
    assert_eq!(harness.receive(0, &cancel(1)), [Seen::NoResponse(1)]);
    assert_eq!(harness.running.len(), 1);
    assert_eq!(harness.receive(0, &cancel(1)), [], "once");
    assert_eq!(harness.receive(0, &cancel(99)), [], "no request has this id");
    assert_eq!(harness.finish(), [Seen::Sent], "a response ends the exchange");
    assert_eq!(harness.receive(0, &cancel(2)), [], "too late");
}

#[test]
fn an_exchange_with_other_open_requests_does_not_end() {
    let mut harness = Harness::in_session("2025-03-26");
    assert_eq!(harness.receive(1, &json!([call(1), call(2), call(3)])), []);
    assert_eq!(harness.receive(0, &cancel(1)), []);
    assert_eq!(harness.receive(0, &cancel(2)), []);
    assert_eq!(harness.finish(), [Seen::Sent], "what is left of the batch");
    assert_eq!(harness.receive(1, &json!([call(4), call(5)])), []);
    assert_eq!(harness.receive(0, &cancel(4)), []);
    assert_eq!(harness.receive(0, &cancel(5)), [Seen::NoResponse(1)], "the last of them");
}

#[test]
fn a_cancelled_held_request_ends_its_exchange_without_a_response() {
    let mut harness = Harness::new(Some(EarlyRequests::Hold(Duration::from_secs(1))));
    harness.initialize("2025-06-18");
    assert_eq!(harness.receive(1, &call(1)), [], "it waits for initialized");
    assert_eq!(harness.running.len(), 0);
    assert_eq!(harness.receive(0, &cancel(1)), [Seen::NoResponse(1)]);
    harness.receive(0, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    assert_eq!(harness.running.len(), 0, "it is forgotten");
}

#[test]
fn cancel_all_ends_every_exchange_without_a_response() {
    let mut harness = Harness::in_session("2025-06-18");
    for exchange in 1..4 {
        harness.receive(exchange, &call(i64::try_from(exchange).unwrap()));
    }
    harness.engine.cancel_all();
    let mut silent = harness.outputs();
    silent.sort_by_key(|seen| format!("{seen:?}"));
    assert_eq!(silent, [Seen::NoResponse(1), Seen::NoResponse(2), Seen::NoResponse(3)]);
}

#[test]
fn cancel_all_ends_the_exchange_of_a_held_request() {
    let mut harness = Harness::new(Some(EarlyRequests::Hold(Duration::from_secs(1))));
    harness.initialize("2025-06-18");
    assert_eq!(harness.receive(1, &call(1)), [], "it waits for initialized");
    harness.engine.cancel_all();
    assert_eq!(harness.outputs(), [Seen::NoResponse(1)]);
}
