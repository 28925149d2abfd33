//! When it is said that an exchange has nothing to wait for any more: after its requests were cancelled, and only when
//! nothing else is awaited there.

use std::sync::Arc;
use std::time::Duration;

use refmcp_proto::engine::{CallId, EarlyRequests, ExchangeId, HandlerOutcome, Output, ServerEngine};
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::time::Timestamp;
use refmcp_testkit::engine::full_config;
use refmcp_testkit::messages::initialize_params;
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp::from_millis(1000);

/// An engine, and what it has said since it was last asked.
struct Talk {
    engine: ServerEngine,
    running: Vec<CallId>,
}

/// What is looked at here.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Sent,
    Silent(u64),
}

impl Talk {
    fn new(early: Option<EarlyRequests>) -> Self {
        let mut config = full_config();
        if let Some(early) = early {
            config.policy.early_requests = early;
        }
        let engine = ServerEngine::new(Arc::new(config), None);
        Self { engine, running: Vec::new() }
    }

    fn in_session(revision: &str) -> Self {
        let mut talk = Self::new(None);
        talk.initialize(revision);
        talk.hear(0, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        talk
    }

    fn initialize(&mut self, revision: &str) {
        let params = initialize_params("c", revision, json!({}));
        let initialize = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        assert_eq!(self.hear(0, &initialize), [Said::Sent]);
    }

    /// Takes in a message on a exchange; calls begin and do not end.
    fn hear(&mut self, exchange: u64, message: &Value) -> Vec<Said> {
        self.engine.receive(NOW, ExchangeId(exchange), message.to_string().as_bytes());
        self.outputs()
    }

    fn outputs(&mut self) -> Vec<Said> {
        let mut said = Vec::new();
        while let Some(output) = self.engine.poll() {
            match output {
                Output::Run(call) => self.running.push(call.call),
                Output::Cancel(call) => self.running.retain(|running| *running != call),
                Output::Send(_) => said.push(Said::Sent),
                Output::NoResponse(ExchangeId(number)) => said.push(Said::Silent(number)),
                Output::RootsChanged | Output::Finding(_) | Output::Answered { .. } | Output::Close(_) => {}
            }
        }
        said
    }

    /// The oldest call ends.
    fn finish(&mut self) -> Vec<Said> {
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
fn a_cancelled_request_leaves_its_channel_silent() {
    let mut talk = Talk::in_session("2025-06-18");
    assert_eq!(talk.hear(1, &call(1)), []);
    assert_eq!(talk.hear(2, &call(2)), []);
    assert_eq!(talk.hear(0, &cancel(1)), [Said::Silent(1)]);
    assert_eq!(talk.running.len(), 1);
    assert_eq!(talk.hear(0, &cancel(1)), [], "once");
    assert_eq!(talk.hear(0, &cancel(99)), [], "nobody waits for that");
    assert_eq!(talk.finish(), [Said::Sent], "an answer says it all");
    assert_eq!(talk.hear(0, &cancel(2)), [], "too late");
}

#[test]
fn a_channel_on_which_more_is_awaited_is_not_silent() {
    let mut talk = Talk::in_session("2025-03-26");
    assert_eq!(talk.hear(1, &json!([call(1), call(2), call(3)])), []);
    assert_eq!(talk.hear(0, &cancel(1)), []);
    assert_eq!(talk.hear(0, &cancel(2)), []);
    assert_eq!(talk.finish(), [Said::Sent], "what is left of the batch");
    assert_eq!(talk.hear(1, &json!([call(4), call(5)])), []);
    assert_eq!(talk.hear(0, &cancel(4)), []);
    assert_eq!(talk.hear(0, &cancel(5)), [Said::Silent(1)], "the last of them");
}

#[test]
fn a_request_that_was_held_back_leaves_its_channel_silent_too() {
    let mut talk = Talk::new(Some(EarlyRequests::Hold(Duration::from_secs(1))));
    talk.initialize("2025-06-18");
    assert_eq!(talk.hear(1, &call(1)), [], "it waits for initialized");
    assert_eq!(talk.running.len(), 0);
    assert_eq!(talk.hear(0, &cancel(1)), [Said::Silent(1)]);
    talk.hear(0, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    assert_eq!(talk.running.len(), 0, "it is forgotten");
}

#[test]
fn the_end_of_everything_leaves_every_channel_silent() {
    let mut talk = Talk::in_session("2025-06-18");
    for exchange in 1..4 {
        talk.hear(exchange, &call(i64::try_from(exchange).unwrap()));
    }
    talk.engine.cancel_all();
    let mut silent = talk.outputs();
    silent.sort_by_key(|said| format!("{said:?}"));
    assert_eq!(silent, [Said::Silent(1), Said::Silent(2), Said::Silent(3)]);
}
