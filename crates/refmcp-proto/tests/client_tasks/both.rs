//! Both engines with each other, over a pipe that is a loop.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use refmcp_proto::engine::client::{
    CallOptions, CallResult, ClientConfig, ClientEngine, ClientOutput, ClientTaskConfig, ServerRequestId,
    TaskIds, VersionPolicy,
};
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::model::{Implementation, InputRequest};
use refmcp_proto::revision::Revision;
use refmcp_testkit::engine::{Event, TestEngine, full_config};
use serde_json::{Value, json};

use super::server::steps;

struct Pair {
    server: TestEngine,
    client: ClientEngine,
    asked: VecDeque<(ServerRequestId, InputRequest)>,
    withdrawn: Vec<ServerRequestId>,
    done: Vec<Result<Value, String>>,
    /// What passed, by method.
    passed: Vec<String>,
    findings: Vec<&'static str>,
}

impl Pair {
    fn new() -> Self {
        let mut config = ClientConfig::new(Implementation::new("c", "1"));
        config.capabilities = serde_json::from_value(json!({ "elicitation": { "form": {} } })).unwrap();
        config.capabilities.declare_tasks();
        config.version_policy = VersionPolicy::Exactly(Revision::V2025_11_25);
        let count = AtomicU64::new(0);
        let ids = TaskIds::new(move || Some(format!("t{}", count.fetch_add(1, Ordering::Relaxed)).into()));
        config.tasks = Some(ClientTaskConfig::new(ids));
        let server = TestEngine::with_handler(full_config(), steps);
        let client = ClientEngine::new(Arc::new(config));
        let (asked, withdrawn, done, passed, findings) = Default::default();
        let mut pair = Self { server, client, asked, withdrawn, done, passed, findings };
        let now = pair.server.clock.now();
        pair.client.open(now);
        pair.settle();
        pair.call();
        pair
    }

    fn call(&mut self) -> refmcp_proto::engine::CallId {
        let now = self.server.clock.now();
        let params = r#"{"name":"t"}"#;
        let options = CallOptions { idle: Duration::from_secs(300), ..CallOptions::default() };
        let call = self.client.call(now, "tools/call".into(), None, params.into(), options);
        self.settle();
        call
    }

    fn settle(&mut self) {
        loop {
            let mut idle = true;
            while let Some(output) = self.client.poll() {
                idle = false;
                match output {
                    ClientOutput::Send(message) => {
                        self.note(&message.json);
                        self.server.send(&message.json);
                    }
                    ClientOutput::Request(request) => self.asked.push_back((request.id, request.request)),
                    ClientOutput::RequestCancelled(request) => self.withdrawn.push(request),
                    ClientOutput::Done(_, Ok(CallResult::Complete(text))) => {
                        self.done.push(Ok(serde_json::from_str(&text).unwrap()));
                    }
                    ClientOutput::Done(_, other) => self.done.push(Err(format!("{other:?}"))),
                    ClientOutput::Finding(finding) => self.findings.push(finding.rule.id),
                    _ => {}
                }
            }
            for event in self.server.take_events() {
                if let Event::Finding(rule) = event {
                    self.findings.push(rule);
                }
            }
            for message in self.server.take_sent() {
                idle = false;
                self.note(&message.json);
                self.client.receive(self.server.clock.now(), None, &message.json);
            }
            if idle {
                return;
            }
        }
    }

    fn note(&mut self, json: &[u8]) {
        let message: Value = serde_json::from_slice(json).unwrap();
        self.passed.extend(message["method"].as_str().map(str::to_owned));
    }

    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds * 10 {
            self.server.advance(Duration::from_millis(100));
            let now = self.server.clock.now();
            if self.client.deadline().is_some_and(|deadline| deadline <= now) {
                self.client.tick(now);
            }
            self.settle();
        }
    }

    fn respond(&mut self, response: Result<Value, RpcError>) {
        let (id, _) = self.asked.pop_front().unwrap();
        self.client.respond(self.server.clock.now(), id, response);
        self.settle();
    }
}

#[test]
fn a_question_is_asked_by_a_task_and_its_answer_arrives_at_once() {
    let mut pair = Pair::new();
    pair.pass(5);
    assert_eq!(pair.done, []);
    let polls = pair.passed.iter().filter(|method| *method == "tasks/get").count();
    assert_eq!(polls, 5, "as often as the client says");
    pair.respond(Ok(json!({ "action": "accept", "content": {} })));
    let Some(Ok(result)) = pair.done.first() else { panic!("{:?}", pair.done) };
    assert!(result.to_string().contains("accept"), "{result}");
    let tail: Vec<&str> = pair.passed.iter().rev().take(2).map(String::as_str).collect();
    assert_eq!(tail, ["tasks/result", "notifications/tasks/status"]);
    assert_eq!(pair.findings, [] as [&str; 0]);
}

#[test]
fn an_error_of_the_host_reaches_the_handler() {
    let mut pair = Pair::new();
    pair.respond(Err(RpcError::new(-1, "no person is here")));
    assert!(pair.done[0].as_ref().unwrap().to_string().contains("no person is here"));
    assert_eq!(pair.findings, [] as [&str; 0]);
}

#[test]
fn cancelling_the_call_takes_the_question_away() {
    let mut pair = Pair::new();
    pair.respond(Ok(json!({ "action": "decline" })));
    let call = pair.call();
    let now = pair.server.clock.now();
    pair.client.cancel(now, call, "enough");
    pair.settle();
    assert_eq!(pair.withdrawn.len(), 1);
    assert!(pair.passed.iter().any(|method| method == "tasks/cancel"), "{:?}", pair.passed);
    assert_eq!(pair.findings, [] as [&str; 0]);
}

#[test]
fn a_timeout_takes_the_question_away() {
    let mut pair = Pair::new();
    // The lifetime that the server has asked for is over before its own patience is.
    pair.pass(61);
    assert_eq!(pair.withdrawn.len(), 1);
    assert!(pair.done[0].as_ref().unwrap().to_string().contains("knows no task"), "{:?}", pair.done);
    assert_eq!(pair.findings, [] as [&str; 0]);
}
