//! Tasks as data: what each kind of client is told of them, and what becomes of their calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use refmcp_proto::engine::{
    DetachedCall, Dispatch, EngineConfig, HandlerOutcome, InputOutcome, KeyedInputRequest, TaskState,
    TaskTimes,
};
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::model::{CallToolResult, InputRequest, ServerResult, TASKS_EXTENSION};
use refmcp_proto::revision::{Lifecycle, Revision, downgrade};
use refmcp_proto::time::Timestamp;
use refmcp_testkit::engine::{TestEngine, full_config};
use refmcp_testkit::messages::{initialize_params, request_meta};
use serde_json::{Value, json};

const START: Timestamp = Timestamp::from_millis(1_772_353_800_000);

/// A call of a tool by a client of this revision.
fn dispatch(revision: Revision) -> Dispatch {
    let mut engine = TestEngine::new(full_config());
    let mut send = |message: Value| engine.send(message.to_string().as_bytes());
    let mut params = json!({ "name": "never", "arguments": { "tag": "t" } });
    if revision.rules().lifecycle == Lifecycle::PerRequest {
        let capabilities = json!({ "roots": {}, "extensions": { TASKS_EXTENSION: {} } });
        params["_meta"] = request_meta("test", revision.as_str(), capabilities);
    } else {
        let opening = initialize_params("test", revision.as_str(), json!({ "roots": {} }));
        send(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening }));
        send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }
    send(json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }));
    engine.running()[0].clone()
}

struct TestTask {
    config: EngineConfig,
    revision: Revision,
    call: DetachedCall,
    state: TaskState,
    now: Timestamp,
}

impl TestTask {
    fn new(revision: Revision) -> Self {
        let call = DetachedCall::new(&dispatch(revision), BTreeMap::new());
        let times =
            TaskTimes { ttl: Some(Duration::from_secs(60)), poll_interval: Duration::from_millis(500) };
        let state = TaskState::new(START, "id".into(), Some(Arc::from("ann")), &call, times);
        Self { config: full_config(), revision, call, state, now: START }
    }

    /// Ends a run of the handler, a second later; then another process goes on with what it reads.
    fn finish(&mut self, outcome: HandlerOutcome) {
        self.now = self.now + Duration::from_secs(1);
        let outcome = self.call.finish(&self.config, outcome);
        self.state.finish(self.now, outcome);
        self.call = reread(&self.call);
        self.state = reread(&self.state);
    }

    fn done(&mut self, result: CallToolResult) {
        self.finish(HandlerOutcome::Done(Box::new(result.into())));
    }

    fn ask(&mut self, keys: &[&str]) {
        let request = |key: &&str| KeyedInputRequest { key: (*key).to_owned(), request: InputRequest::Roots };
        let requests = keys.iter().map(request).collect();
        self.finish(HandlerOutcome::InputRequired { requests, used: None, once: BTreeMap::new() });
    }

    fn respond(&mut self, key: &str) -> Option<bool> {
        let response = InputOutcome::Response(json!({ "roots": [] }));
        self.state.respond(self.now, &mut self.call, [(key.to_owned(), response)])
    }

    /// The result of `tasks/get` in the revision of the client.
    fn told(&self) -> Value {
        let mut result = ServerResult::GetTask(Box::new(self.state.task()));
        downgrade::result(self.revision.rules(), &self.config, &mut result);
        serde_json::to_value(result).unwrap()
    }

    fn open_keys(&self) -> Vec<&str> {
        self.state.open_requests().map(|(key, _)| key).collect()
    }
}

fn reread<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

#[test]
fn each_kind_of_client_is_told_of_a_task_in_its_shape() {
    let task = TestTask::new(Revision::V2025_11_25);
    let created = "2026-03-01T08:30:00.000Z";
    let shape = json!({
        "taskId": "id", "status": "working", "createdAt": created, "lastUpdatedAt": created,
        "ttl": 60_000, "pollInterval": 500
    });
    assert_eq!(task.told(), shape);
    let mut created = ServerResult::CreateTask(Box::new(task.state.task()));
    downgrade::result(Revision::V2025_11_25.rules(), &task.config, &mut created);
    assert_eq!(serde_json::to_value(created).unwrap(), json!({ "task": shape }));

    let mut task = TestTask::new(Revision::LATEST);
    let mut created = ServerResult::CreateTask(Box::new(task.state.task()));
    downgrade::result(Revision::LATEST.rules(), &task.config, &mut created);
    let created = serde_json::to_value(created).unwrap();
    assert_eq!(
        (&created["resultType"], &created["ttlMs"], created.get("task")),
        (&json!("task"), &json!(60_000), None)
    );
    task.done(CallToolResult::text("done"));
    let told = task.told();
    assert_eq!((&told["resultType"], &told["status"]), (&json!("complete"), &json!("completed")));
    assert_eq!(told["result"]["content"][0]["text"], "done");
    assert_eq!(told["lastUpdatedAt"], "2026-03-01T08:30:01.000Z");
    assert!(told.get("inputRequests").is_none() && told.get("error").is_none(), "{told}");
}

#[test]
fn a_tool_error_fails_a_task_of_2025_11_25_and_completes_one_of_2026_07_28() {
    for (revision, status) in [(Revision::V2025_11_25, "failed"), (Revision::LATEST, "completed")] {
        let mut task = TestTask::new(revision);
        task.done(CallToolResult::error("no disk"));
        let told = task.told();
        assert_eq!(
            (told["status"].as_str(), told["statusMessage"].as_str()),
            (Some(status), Some("no disk"))
        );
        let outcome = task.state.outcome().unwrap().unwrap();
        assert_eq!(outcome["isError"], true, "the result is the same");
        assert!(told.get("error").is_none());
    }
}

#[test]
fn a_json_rpc_error_fails_a_task() {
    let mut task = TestTask::new(Revision::LATEST);
    task.finish(HandlerOutcome::Failed(RpcError::invalid_params("no such thing").into()));
    let told = task.told();
    assert_eq!((&told["status"], &told["error"]["code"]), (&json!("failed"), &json!(-32602)));
    assert_eq!(told["statusMessage"], "no such thing");
    assert!(told.get("result").is_none());
    assert_eq!(task.state.outcome().unwrap().unwrap_err().code, -32602);
}

#[test]
fn a_task_waits_for_all_responses_and_runs_again() {
    let mut task = TestTask::new(Revision::LATEST);
    task.ask(&["a", "b"]);
    assert_eq!(task.open_keys(), ["a", "b"]);
    assert!(task.call.dispatch(&task.config, None).is_none(), "it waits");
    assert_eq!(task.told()["inputRequests"]["a"]["method"], "roots/list");
    assert_eq!(task.respond("nothing"), None, "an unknown key is ignored");
    assert_eq!(task.respond("a"), Some(false));
    assert_eq!(task.respond("a"), None, "the first response counts");
    assert_eq!((task.open_keys(), task.told()["status"].as_str()), (vec!["b"], Some("input_required")));
    assert_eq!(task.respond("b"), Some(true));
    let again = task.call.dispatch(&task.config, None).unwrap();
    assert_eq!((again.round, again.replay.responses.len()), (1, 2));
    // What is asked again has another key: the old one means the request that was answered.
    task.ask(&["a"]);
    assert_eq!(task.open_keys(), ["a-2"]);
    assert_eq!(task.respond("a"), None);
    assert_eq!(task.respond("a-2"), Some(true));
    assert!(task.call.dispatch(&task.config, None).unwrap().replay.responses.contains_key("a"));
    task.done(CallToolResult::text("done"));
    assert_eq!(task.respond("a-2"), None, "it is over");
}

#[test]
fn nothing_follows_the_end_of_a_task() {
    let mut task = TestTask::new(Revision::LATEST);
    task.ask(&["a"]);
    assert!(task.state.cancel(task.now, "the client cancelled it"));
    assert!(!task.state.cancel(task.now, "again"));
    assert!(task.open_keys().is_empty());
    assert_eq!(task.respond("a"), None);
    task.done(CallToolResult::text("too late"));
    task.state.fail(task.now, RpcError::internal("too late"));
    assert!(!task.state.set_message(task.now, "too late"));
    let told = task.told();
    assert_eq!(
        (&told["status"], &told["statusMessage"]),
        (&json!("cancelled"), &json!("the client cancelled it"))
    );
    assert!(task.state.outcome().unwrap().unwrap_err().message.contains("cancelled"));
}

#[test]
fn a_task_says_what_it_does_and_when_it_expires() {
    let mut task = TestTask::new(Revision::LATEST);
    assert!(task.state.set_message(task.now, "reading"));
    assert!(!task.state.set_message(task.now, "reading"), "that is known");
    assert!(task.state.set_message(task.now, &"ä".repeat(1000)));
    assert_eq!(task.told()["statusMessage"].as_str().map(str::len), Some(1024));
    assert_eq!(task.state.expires(), Some(START + Duration::from_secs(60)));
    assert_eq!(task.state.remaining(START + Duration::from_secs(50)), Some(Duration::from_secs(10)));
    assert_eq!(task.state.remaining(START + Duration::from_secs(70)), Some(Duration::ZERO));
}

#[test]
fn a_handler_that_asks_too_often_fails_its_task() {
    let mut task = TestTask::new(Revision::LATEST);
    task.config.max_rounds = 1;
    task.ask(&["a"]);
    task.respond("a");
    task.ask(&["a"]);
    let error = task.state.outcome().unwrap().unwrap_err();
    assert!(error.message.contains("more than 1 times"), "{error}");
}
