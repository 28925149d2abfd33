//! The server: when it asks for a task, how it follows one, and what a client can make it do. Each of its messages is checked
//! against the official schema.

use std::collections::BTreeMap;
use std::time::Duration;

use refmcp_proto::engine::{
    Dispatch, EngineConfig, ExchangeId, HandlerOutcome, InputOutcome, KeyedInputRequest, OutgoingMessage,
    SharedOutput,
};
use refmcp_proto::model::{CallToolResult, ElicitFormParams, FormSchema, InputRequest, TaskMetadata};
use refmcp_proto::revision::{Lifecycle, Revision};
use refmcp_testkit::engine::{Event, TestEngine, full_config};
use refmcp_testkit::messages::initialize_params;
use refmcp_testkit::schema::{Direction, Schema};
use refmcp_testkit::script::Step;
use serde_json::{Value, json};

/// A server whose one tool asks the user by a task, and a client that is the test.
struct Rig {
    server: TestEngine,
    schema: Schema,
}

/// Asks once by a task, and tells the outcome.
pub(crate) fn steps(call: &Dispatch) -> Vec<Step> {
    let outcome = match call.replay.responses.get("name") {
        Some(InputOutcome::Response(value)) => value.to_string(),
        Some(InputOutcome::Error(error)) => error.to_string(),
        Some(InputOutcome::TimedOut) => "timed out".to_owned(),
        None => {
            let requests = vec![KeyedInputRequest { key: "name".to_owned(), request: question() }];
            let outcome = HandlerOutcome::InputRequired { requests, used: None, once: BTreeMap::new() };
            return vec![Step::End(outcome)];
        }
    };
    vec![Step::End(HandlerOutcome::Done(Box::new(CallToolResult::text(outcome).into())))]
}

fn question() -> InputRequest {
    let mut request = InputRequest::from(ElicitFormParams::new("Who?", FormSchema::new()));
    request.set_task(&TaskMetadata::default().ttl(60_000_u64));
    request
}

fn declared() -> Value {
    json!({ "elicitation": {}, "tasks": { "cancel": {}, "requests": { "elicitation": { "create": {} } } } })
}

impl Rig {
    fn new() -> Self {
        Self::with(full_config(), Revision::V2025_11_25, declared())
    }

    fn with(config: EngineConfig, revision: Revision, capabilities: Value) -> Self {
        let mut rig =
            Self { server: TestEngine::with_handler(config, steps), schema: Schema::load(revision) };
        let opening = initialize_params("test", revision.as_str(), capabilities);
        rig.server.send(
            json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening })
                .to_string()
                .as_bytes(),
        );
        rig.server.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        rig.server.take_sent();
        rig.server.take_events();
        rig
    }

    fn sent(&mut self) -> Vec<Value> {
        let read = |message: OutgoingMessage| serde_json::from_slice::<Value>(&message.json).unwrap();
        let sent: Vec<Value> = self.server.take_sent().into_iter().map(read).collect();
        for message in &sent {
            self.schema.check(Direction::FromServer, message, Some("tools/call")).unwrap();
        }
        sent
    }

    /// The one message that the server has sent.
    #[track_caller]
    fn one(&mut self) -> Value {
        let sent = self.sent();
        assert_eq!(sent.len(), 1, "{sent:?}");
        sent.into_iter().next().unwrap()
    }

    /// Calls the tool; gives the request of the server that follows.
    fn call(&mut self, id: i64) -> Value {
        self.send(json!({ "id": id, "method": "tools/call", "params": { "name": "t" } }));
        self.one()
    }

    fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        self.server.send(message.to_string().as_bytes());
    }

    fn answer(&mut self, request: &Value, result: Value) {
        let mut message = json!({ "id": request["id"] });
        message["result"] = result;
        self.send(message);
    }

    fn refuse(&mut self, request: &Value, code: i64, message: &str) {
        self.send(json!({ "id": request["id"], "error": { "code": code, "message": message } }));
    }

    /// Calls the tool, and makes its question a task of this id; gives the first request for its status.
    fn task(&mut self, id: &str) -> Value {
        let request = self.call(1);
        self.answer(&request, json!({ "task": task(id, "working") }));
        assert_eq!(self.sent(), [] as [Value; 0], "the status was just told");
        self.pass(1000);
        let poll = self.one();
        assert_eq!(poll["method"], "tasks/get");
        assert_eq!(poll["params"], json!({ "taskId": id }));
        poll
    }

    fn pass(&mut self, millis: u64) {
        self.server.advance(Duration::from_millis(millis));
    }

    fn findings(&mut self) -> Vec<&'static str> {
        let events = self.server.take_events().into_iter();
        let rules = events.filter_map(|event| match event {
            Event::Finding(rule) => Some(rule),
            _ => None,
        });
        rules.collect()
    }

    /// The text that the call has ended with.
    #[track_caller]
    fn outcome(&mut self) -> String {
        let sent = self.sent();
        let text = sent.iter().find_map(|message| message.pointer("/result/content/0/text")?.as_str());
        text.unwrap_or_else(|| panic!("the call goes on: {sent:?}")).to_owned()
    }
}

fn task(id: &str, status: &str) -> Value {
    let time = "2026-03-01T08:30:00.000Z";
    json!({ "taskId": id, "status": status, "createdAt": time, "lastUpdatedAt": time, "ttl": 60_000 })
}

fn accepted(id: &str) -> Value {
    json!({ "action": "accept", "_meta": { "io.modelcontextprotocol/related-task": { "taskId": id } } })
}

fn told(id: &str, status: &str) -> Value {
    json!({ "method": "notifications/tasks/status", "params": task(id, status) })
}

#[test]
fn a_task_is_asked_for_followed_and_its_outcome_fetched() {
    let mut rig = Rig::new();
    let request = rig.call(1);
    assert_eq!(request["method"], "elicitation/create");
    assert_eq!(request["params"]["task"], json!({ "ttl": 60_000 }));
    let mut created = task("t1", "working");
    created["pollInterval"] = json!(3000);
    rig.answer(&request, json!({ "task": created }));
    rig.pass(2999);
    assert_eq!(rig.sent(), [] as [Value; 0], "the interval is the client's");
    rig.pass(1);
    let poll = rig.one();
    rig.answer(&poll, created);
    rig.pass(3000);
    let poll = rig.one();
    rig.answer(&poll, task("t1", "completed"));
    let fetch = rig.one();
    assert_eq!((&fetch["method"], &fetch["params"]), (&json!("tasks/result"), &json!({ "taskId": "t1" })));
    rig.answer(&fetch, accepted("t1"));
    assert_eq!(rig.outcome(), r#"{"_meta":{},"action":"accept"}"#);
    assert_eq!(rig.findings(), [] as [&str; 0]);
    rig.pass(3_600_000);
    assert_eq!(rig.sent(), [] as [Value; 0], "nothing is asked any more");
}

#[test]
fn a_task_goes_only_to_a_client_that_declares_it() {
    let sampling = json!({ "elicitation": {}, "sampling": {}, "tasks": { "requests": { "sampling": { "createMessage": {} } } } });
    for capabilities in [json!({ "elicitation": {} }), sampling, json!({ "elicitation": {}, "tasks": {} })] {
        let mut rig = Rig::with(full_config(), Revision::V2025_11_25, capabilities.clone());
        let request = rig.call(1);
        assert_eq!(request["params"].get("task"), None, "{capabilities}");
        rig.answer(&request, json!({ "action": "decline" }));
        assert!(rig.outcome().contains("decline"));
    }
    for revision in Revision::with(Lifecycle::Handshake).filter(|it| *it != Revision::V2025_11_25) {
        let mut rig = Rig::with(full_config(), revision, declared());
        let first = rig.call(1);
        assert_eq!(first.pointer("/params/task"), None, "{revision}: {first}");
    }
}

#[test]
fn a_notification_saves_waiting_but_is_not_needed() {
    let mut rig = Rig::new();
    let request = rig.call(1);
    let mut created = task("t1", "working");
    created["pollInterval"] = json!(1e12);
    rig.answer(&request, json!({ "task": created }));
    rig.send(told("another", "completed"));
    rig.send(told("t1", "working"));
    rig.send(json!({ "method": "notifications/tasks/status", "params": { "taskId": "t1" } }));
    assert_eq!(rig.sent(), [] as [Value; 0]);
    rig.send(told("t1", "completed"));
    let fetch = rig.one();
    assert_eq!(fetch["method"], "tasks/result");
    rig.send(told("t1", "completed"));
    assert_eq!(rig.sent(), [] as [Value; 0], "it is fetched once");
    rig.answer(&fetch, accepted("t1"));
    assert!(rig.outcome().contains("accept"));
}

#[test]
fn notifications_do_not_put_off_polling() {
    let mut rig = Rig::new();
    let request = rig.call(1);
    rig.answer(&request, json!({ "task": task("t1", "working") }));
    for _ in 0..9 {
        rig.pass(100);
        rig.send(told("t1", "working"));
    }
    rig.pass(100);
    assert_eq!(rig.one()["method"], "tasks/get");
}

#[test]
fn the_error_of_a_task_is_the_error_of_the_request() {
    let mut rig = Rig::new();
    let poll = rig.task("t1");
    rig.answer(&poll, task("t1", "failed"));
    let fetch = rig.one();
    rig.refuse(&fetch, -1, "the user refuses");
    assert!(rig.outcome().contains("the user refuses"));
}

#[test]
fn a_task_that_the_client_cancels_has_no_outcome() {
    let mut rig = Rig::new();
    let poll = rig.task("t1");
    let mut cancelled = task("t1", "cancelled");
    cancelled["statusMessage"] = json!("the user has left");
    rig.answer(&poll, cancelled);
    let outcome = rig.outcome();
    assert!(outcome.contains("cancelled its task: the user has left"), "{outcome}");
}

#[test]
fn a_task_that_requires_input_is_asked_for_its_result_and_polled_on() {
    let mut rig = Rig::new();
    let poll = rig.task("t1");
    rig.answer(&poll, task("t1", "input_required"));
    let fetch = rig.one();
    assert_eq!(fetch["method"], "tasks/result");
    rig.pass(1000);
    let poll = rig.one();
    assert_eq!(poll["method"], "tasks/get");
    rig.answer(&fetch, accepted("t1"));
    assert!(rig.outcome().contains("accept"));
}

#[test]
fn a_cancelled_call_cancels_its_task() {
    let mut rig = Rig::new();
    rig.task("t1");
    rig.send(json!({ "method": "notifications/cancelled", "params": { "requestId": 1 } }));
    let cancel = rig.one();
    assert_eq!((&cancel["method"], &cancel["params"]), (&json!("tasks/cancel"), &json!({ "taskId": "t1" })));
    rig.answer(&cancel, task("t1", "cancelled"));
    assert_eq!(rig.findings(), [] as [&str; 0]);

    // Where its outcome is being fetched, nothing is left to be cancelled but that.
    let mut rig = Rig::new();
    let poll = rig.task("t1");
    rig.answer(&poll, task("t1", "completed"));
    let fetch = rig.one();
    rig.send(json!({ "method": "notifications/cancelled", "params": { "requestId": 1 } }));
    let cancelled = rig.one();
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], fetch["id"]);
}

#[test]
fn a_task_is_cancelled_as_soon_as_its_id_is_known() {
    let mut rig = Rig::new();
    let request = rig.call(1);
    rig.send(json!({ "method": "notifications/cancelled", "params": { "requestId": 1 } }));
    assert_eq!(rig.sent(), [] as [Value; 0], "notifications/cancelled cancels no task");
    rig.answer(&request, json!({ "task": task("t1", "working") }));
    let cancel = rig.one();
    assert_eq!((&cancel["method"], &cancel["params"]), (&json!("tasks/cancel"), &json!({ "taskId": "t1" })));
}

#[test]
fn a_client_that_does_not_cancel_tasks_is_not_asked_to() {
    let capabilities =
        json!({ "elicitation": {}, "tasks": { "requests": { "elicitation": { "create": {} } } } });
    let mut rig = Rig::with(full_config(), Revision::V2025_11_25, capabilities);
    rig.task("t1");
    rig.send(json!({ "method": "notifications/cancelled", "params": { "requestId": 1 } }));
    assert_eq!(rig.sent(), [] as [Value; 0]);
}

#[test]
fn the_timeout_is_that_of_a_plain_request() {
    let mut config = full_config();
    config.timeouts.client_response = Duration::from_secs(10);
    let mut rig = Rig::with(config.clone(), Revision::V2025_11_25, declared());
    let mut poll = rig.task("t1");
    for _ in 0..8 {
        rig.answer(&poll, task("t1", "working"));
        rig.pass(1000);
        poll = rig.one();
    }
    rig.answer(&poll, task("t1", "working"));
    rig.pass(1000);
    let sent = rig.sent();
    let methods: Vec<&Value> = sent.iter().map(|message| &message["method"]).collect();
    assert_eq!(methods, [&json!("tasks/cancel"), &json!(null)], "endless work ends in time: {sent:?}");
    assert_eq!(sent[1]["result"]["content"][0]["text"], "timed out");

    // The same for an outcome that never comes, and for an answer.
    let mut rig = Rig::with(config.clone(), Revision::V2025_11_25, declared());
    let poll = rig.task("t1");
    rig.answer(&poll, task("t1", "completed"));
    rig.one();
    rig.pass(9000);
    assert_eq!(rig.outcome(), "timed out");
    let mut rig = Rig::with(config, Revision::V2025_11_25, declared());
    rig.call(1);
    rig.pass(10_000);
    assert_eq!(rig.outcome(), "timed out");
}

#[test]
fn a_status_that_is_not_told_is_asked_for_again_a_few_times() {
    let mut rig = Rig::new();
    rig.task("t1");
    for failed in 1..=5 {
        rig.pass(30_000);
        let sent = rig.sent();
        let of = |method: &str| sent.iter().any(|message| message["method"] == method);
        assert!(of("notifications/cancelled"), "the request is given up: {sent:?}");
        if failed == 5 {
            assert!(of("tasks/cancel"), "{sent:?}");
            let text = sent.last().unwrap()["result"]["content"][0]["text"].as_str().unwrap();
            assert!(text.contains("does not tell the status"), "{text}");
            return;
        }
        rig.pass(1000);
        assert_eq!(rig.one()["method"], "tasks/get");
    }
}

#[test]
fn a_task_that_the_client_forgets_is_over() {
    let mut rig = Rig::new();
    let poll = rig.task("t1");
    rig.refuse(&poll, -32602, "unknown task t1");
    let outcome = rig.outcome();
    assert!(outcome.contains("knows no task t1") && outcome.contains("unknown task"), "{outcome}");
}

#[test]
fn a_weak_moment_of_the_client_is_none_of_its_task() {
    let mut rig = Rig::new();
    let mut poll = rig.task("t1");
    for _ in 0..4 {
        rig.refuse(&poll, -32603, "not now");
        rig.pass(1000);
        poll = rig.one();
    }
    rig.answer(&poll, task("t1", "completed"));
    let fetch = rig.one();
    rig.answer(&fetch, accepted("t1"));
    assert!(rig.outcome().contains("accept"));
}

#[test]
fn intervals_are_bounded() {
    for (interval, least, most, rule) in [
        (json!(0), 100, 100, Some("RPC-01")),
        (json!(-1), 100, 100, Some("RPC-01")),
        (json!(-1e300), 100, 100, Some("RPC-01")),
        (json!(1), 100, 100, None),
        (json!(1e300), 60_000, 60_000, None),
        (json!(u64::MAX), 60_000, 60_000, None),
        (json!(null), 1000, 1000, None),
    ] {
        let mut rig = Rig::new();
        let request = rig.call(1);
        let mut created = task("t1", "working");
        created["pollInterval"] = interval.clone();
        rig.answer(&request, json!({ "task": created }));
        assert_eq!(rig.findings(), rule.into_iter().collect::<Vec<_>>(), "{interval}");
        rig.pass(least - 1);
        assert_eq!(rig.sent(), [] as [Value; 0], "{interval}");
        rig.pass(most - least + 1);
        assert_eq!(rig.one()["method"], "tasks/get", "{interval}");
    }
}

#[test]
fn malformed_tasks_are_told_and_end_the_request() {
    let mut huge = task("", "working");
    huge["taskId"] = json!("x".repeat(2000));
    let mut no_status = task("t1", "working");
    no_status.as_object_mut().unwrap().remove("status");
    for (created, rule, why) in [
        (huge, "TSK-10", "2000 bytes"),
        (task("", "working"), "TSK-10", "0 bytes"),
        (no_status, "TSK-13", "status"),
        (json!({ "taskId": 5, "status": "working" }), "TSK-13", "invalid type"),
        (task("t1", "paused"), "TSK-12", "paused"),
    ] {
        let mut rig = Rig::new();
        let request = rig.call(1);
        rig.answer(&request, json!({ "task": created }));
        assert!(rig.findings().contains(&rule), "{rule}");
        let outcome = rig.outcome();
        assert!(outcome.contains(why), "{outcome}");
    }
}

#[test]
fn incomplete_tasks_are_followed_and_told() {
    let mut rig = Rig::new();
    let request = rig.call(1);
    rig.answer(&request, json!({ "task": { "taskId": "t1", "status": "completed" } }));
    assert_eq!(rig.findings(), ["TSK-13", "TSK-11"]);
    let fetch = rig.one();
    rig.answer(&fetch, json!({ "action": "accept" }));
    assert_eq!(rig.findings(), ["TSK-19"], "the result names no task");
    assert!(rig.outcome().contains("accept"));
}

#[test]
fn an_id_names_one_task() {
    let mut rig = Rig::new();
    rig.task("t1");
    let request = rig.call(2);
    rig.answer(&request, json!({ "task": task("t1", "working") }));
    assert_eq!(rig.findings(), ["TSK-10"]);
    assert!(rig.outcome().contains("id of another"));
    rig.send(told("t1", "completed"));
    assert_eq!(rig.one()["method"], "tasks/result", "the first goes on");
}

#[test]
fn a_status_of_another_task_does_not_count() {
    let mut rig = Rig::new();
    let mut poll = rig.task("t1");
    for _ in 0..4 {
        rig.answer(&poll, task("t2", "completed"));
        rig.pass(1000);
        poll = rig.one();
    }
    rig.answer(&poll, task("t2", "completed"));
    let sent = rig.sent();
    assert_eq!(sent[0]["method"], "tasks/cancel");
    assert!(sent[1].to_string().contains("tells of another task"), "{sent:?}");
    assert!(rig.findings().contains(&"TSK-10"));
}

#[test]
fn a_result_in_place_of_a_task_is_taken_and_told() {
    let mut rig = Rig::new();
    let request = rig.call(1);
    rig.answer(&request, json!({ "action": "accept" }));
    assert_eq!(rig.findings(), ["TSK-09"]);
    assert!(rig.outcome().contains("accept"));
}

#[test]
fn a_task_in_place_of_a_result_is_told() {
    let mut rig = Rig::with(full_config(), Revision::V2025_11_25, json!({ "elicitation": {} }));
    let request = rig.call(1);
    rig.answer(&request, json!({ "task": task("t1", "working") }));
    assert_eq!(rig.findings(), ["TSK-01"]);
    assert!(rig.outcome().contains("t1"), "what it means is the handler's");
    rig.pass(100_000);
    assert_eq!(rig.sent(), [] as [Value; 0], "nothing is followed");
}

#[test]
fn late_and_repeated_answers_change_nothing() {
    let mut rig = Rig::new();
    let request = rig.call(1);
    rig.answer(&request, json!({ "task": task("t1", "working") }));
    rig.answer(&request, json!({ "task": task("t2", "completed") }));
    rig.answer(&request, json!({ "action": "decline" }));
    assert_eq!(rig.sent(), [] as [Value; 0]);
    rig.pass(1000);
    let poll = rig.one();
    rig.answer(&poll, task("t1", "completed"));
    let fetch = rig.one();
    rig.answer(&poll, task("t1", "working"));
    rig.answer(&fetch, accepted("t1"));
    assert!(rig.outcome().contains("accept"));
    rig.answer(&fetch, accepted("t1"));
    rig.send(told("t1", "failed"));
    assert_eq!(rig.sent(), [] as [Value; 0]);
}

#[test]
fn ids_of_given_up_requests_are_kept_within_bounds() {
    let mut rig = Rig::new();
    let requests: Vec<Value> = (1..=200)
        .map(|id| {
            let request = rig.call(id);
            rig.send(json!({ "method": "notifications/cancelled", "params": { "requestId": id } }));
            request
        })
        .collect();
    rig.sent();
    for (index, request) in requests.iter().enumerate() {
        rig.answer(request, json!({ "task": task(&format!("t{index}"), "working") }));
    }
    assert_eq!(rig.sent().len(), 64);
}

#[test]
fn a_call_with_a_task_stays_in_its_process() {
    let mut config = full_config();
    config.max_facts_bytes = Some(64 << 10);
    let mut rig = Rig::with(config, Revision::V2025_11_25, declared());
    while rig.server.next_shared().is_some() {}
    let request = rig.call(1);
    let Some(SharedOutput::Expect { call: Some(call), .. }) = rig.server.next_shared() else {
        panic!("its answer may come to any process")
    };
    assert_eq!(call.parked, None, "another process knows nothing of the task");
    let id = |message: &Value| refmcp_proto::jsonrpc::RequestId::Integer(message["id"].as_i64().unwrap());
    rig.server.deliver(&id(&request), InputOutcome::Response(json!({ "task": task("t1", "working") })));
    rig.pass(1000);
    let poll = rig.one();
    let expected = rig.server.next_shared();
    assert!(
        matches!(&expected, Some(SharedOutput::Expect { ids, call: None, .. }) if *ids == [id(&poll)]),
        "{expected:?}"
    );
    rig.server.deliver(&id(&poll), InputOutcome::Response(task("t1", "completed")));
    let fetch = rig.one();
    rig.server.deliver(&id(&fetch), InputOutcome::Response(accepted("t1")));
    assert!(rig.outcome().contains("accept"), "no process has to claim it");
    let left = rig.server.engine.leave_parked(|_| true);
    assert_eq!(left, [] as [ExchangeId; 0]);
}
