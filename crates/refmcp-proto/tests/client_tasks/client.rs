//! The client: what it declares, runs, keeps, tells and forgets. Each of its messages is checked against the official schema.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use refmcp_proto::engine::client::{
    CallOptions, ClientConfig, ClientEngine, ClientOutput, ClientTaskConfig, ExchangeId, ServerRequestId,
    TaskIds, TransportError, TransportKind, VersionPolicy,
};
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::model::{ClientCapabilities, Implementation};
use refmcp_proto::revision::Revision;
use refmcp_proto::time::Timestamp;
use refmcp_testkit::schema::{Direction, Schema};
use serde_json::{Value, json};

const RELATED: &str = "io.modelcontextprotocol/related-task";

/// A client, and a server that is the test.
struct Rig {
    engine: ClientEngine,
    now: Timestamp,
    schema: Schema,
    next: i64,
    /// Methods of the server's requests, by their ids.
    asked: HashMap<String, String>,
}

/// What the client does that a test looks at.
#[derive(Debug, Clone, PartialEq)]
enum Seen {
    Sent(Value),
    Asked(u64, Value),
    Withdrawn(u64),
    Finding(&'static str),
}

fn capabilities(json: Value) -> ClientCapabilities {
    let mut capabilities: ClientCapabilities = serde_json::from_value(json).unwrap();
    capabilities.declare_tasks();
    capabilities
}

fn config(policy: VersionPolicy) -> ClientConfig {
    let mut config = ClientConfig::new(Implementation::new("c", "1"));
    config.capabilities = capabilities(json!({ "roots": {}, "sampling": {}, "elicitation": { "form": {} } }));
    config.version_policy = policy;
    let count = AtomicU64::new(0);
    let ids =
        TaskIds::new(move || Some(format!("task-{}", count.fetch_add(1, Ordering::Relaxed) + 1).into()));
    config.tasks = Some(ClientTaskConfig::new(ids));
    config
}

fn engine(config: ClientConfig, revision: Revision, now: Timestamp) -> (ClientEngine, Value) {
    let mut engine = ClientEngine::new(Arc::new(config));
    engine.open(now);
    let mut first = None;
    while let Some(output) = engine.poll() {
        if let ClientOutput::Send(message) = output {
            first = Some(serde_json::from_slice::<Value>(&message.json).unwrap());
        }
    }
    let opened = json!({ "jsonrpc": "2.0", "id": 1, "result": {
        "protocolVersion": revision.as_str(), "capabilities": {}, "serverInfo": { "name": "s", "version": "1" }
    } });
    engine.receive(now, None, opened.to_string().as_bytes());
    while engine.poll().is_some() {}
    (engine, first.unwrap())
}

impl Rig {
    fn new(change: impl FnOnce(&mut ClientConfig)) -> Self {
        Self::speaking(Revision::V2025_11_25, change)
    }

    fn speaking(revision: Revision, change: impl FnOnce(&mut ClientConfig)) -> Self {
        let mut config = config(VersionPolicy::Legacy);
        change(&mut config);
        let now = Timestamp::from_millis(1_772_353_800_000);
        let (engine, _) = engine(config, revision, now);
        Self { engine, now, schema: Schema::load(revision), next: 100, asked: HashMap::new() }
    }

    fn with_limits(change: impl FnOnce(&mut ClientTaskConfig)) -> Self {
        Self::new(|config| change(config.tasks.as_mut().unwrap()))
    }

    fn seen(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        while let Some(output) = self.engine.poll() {
            seen.push(match output {
                ClientOutput::Send(message) => {
                    let message: Value = serde_json::from_slice(&message.json).unwrap();
                    let answers = message.get("id").and_then(|id| self.asked.get(&id.to_string()));
                    self.schema.check(Direction::FromClient, &message, answers.map(String::as_str)).unwrap();
                    Seen::Sent(message)
                }
                ClientOutput::Request(request) => {
                    Seen::Asked(request.id.0, serde_json::to_value(request.request).unwrap())
                }
                ClientOutput::RequestCancelled(request) => Seen::Withdrawn(request.0),
                ClientOutput::Finding(finding) => Seen::Finding(finding.rule.id),
                _ => continue,
            });
        }
        seen
    }

    fn hear(&mut self, mut message: Value) -> Vec<Seen> {
        message["jsonrpc"] = json!("2.0");
        if let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) {
            self.asked.insert(id.to_string(), method.to_owned());
        }
        self.engine.receive(self.now, None, message.to_string().as_bytes());
        self.seen()
    }

    /// A request of the server; gives its id, too.
    fn request(&mut self, method: &str, params: Value) -> (i64, Vec<Seen>) {
        self.next += 1;
        let id = self.next;
        let mut message = json!({ "id": id, "method": method });
        message["params"] = params;
        (id, self.hear(message))
    }

    /// The response to a request that is answered at once.
    fn answer(&mut self, method: &str, params: Value) -> Value {
        let (id, seen) = self.request(method, params);
        let answer = seen.iter().find_map(|seen| match seen {
            Seen::Sent(message) if message["id"] == id => Some(message.clone()),
            _ => None,
        });
        answer.unwrap_or_else(|| panic!("{method} has no answer: {seen:?}"))
    }

    fn error(&mut self, method: &str, params: Value) -> (i64, String) {
        let answer = self.answer(method, params);
        let code = answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}"));
        (code, answer["error"]["message"].as_str().unwrap().to_owned())
    }

    /// A task for an elicitation; gives its id.
    fn task(&mut self, task: Value) -> String {
        let answer = self.answer("elicitation/create", elicitation(task));
        assert_eq!(answer["result"]["task"]["status"], "working");
        answer["result"]["task"]["taskId"].as_str().unwrap().to_owned()
    }

    fn respond(&mut self, request: u64, response: Result<Value, RpcError>) -> Vec<Seen> {
        self.engine.respond(self.now, ServerRequestId(request), response);
        self.seen()
    }

    fn pass(&mut self, seconds: u64) -> Vec<Seen> {
        self.now = self.now + Duration::from_secs(seconds);
        if self.engine.deadline().is_some_and(|deadline| deadline <= self.now) {
            self.engine.tick(self.now);
        }
        self.seen()
    }

    fn status(&mut self, id: &str) -> Value {
        self.answer("tasks/get", json!({ "taskId": id }))["result"]["status"].clone()
    }
}

fn elicitation(task: Value) -> Value {
    let mut params = json!({ "message": "m", "requestedSchema": { "type": "object", "properties": {} } });
    params["task"] = task;
    params
}

fn accepted() -> Value {
    json!({ "action": "accept", "content": {} })
}

#[test]
fn tasks_are_declared_in_the_one_revision_that_has_them() {
    let declared = json!({
        "list": {}, "cancel": {},
        "requests": { "sampling": { "createMessage": {} }, "elicitation": { "create": {} } }
    });
    for revision in Revision::ALL {
        let (_, first) =
            engine(config(VersionPolicy::Exactly(revision)), revision, Timestamp::from_millis(1));
        let text = first.to_string();
        if revision == Revision::V2025_11_25 {
            assert_eq!(first["params"]["capabilities"]["tasks"], declared);
        } else {
            assert!(!text.contains("\"tasks\""), "{text}");
        }
    }
    let without = ClientConfig { tasks: None, ..config(VersionPolicy::Legacy) };
    let (_, first) = engine(without, Revision::V2025_11_25, Timestamp::from_millis(1));
    assert!(!first.to_string().contains("\"tasks\""), "nothing makes ids: {first}");
}

#[test]
fn a_task_is_answered_at_once_and_its_outcome_when_it_is_there() {
    let mut rig = Rig::new(|_| {});
    let (id, seen) = rig.request("elicitation/create", elicitation(json!({ "ttl": 60_000 })));
    let [Seen::Asked(1, asked), Seen::Sent(created)] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!(asked["params"].get("task"), None, "the host needs not know");
    let time = "2026-03-01T08:30:00.000Z";
    let task = json!({
        "taskId": "task-1", "status": "working", "createdAt": time, "lastUpdatedAt": time,
        "ttl": 60_000, "pollInterval": 1000
    });
    assert_eq!(*created, json!({ "jsonrpc": "2.0", "id": id, "result": { "task": task } }));
    assert_eq!(rig.answer("tasks/get", json!({ "taskId": "task-1" }))["result"], task);

    let (waits, seen) = rig.request("tasks/result", json!({ "taskId": "task-1" }));
    assert_eq!(seen, [], "the outcome is waited for");
    rig.pass(1);
    let seen = rig.respond(1, Ok(accepted()));
    let [Seen::Sent(told), Seen::Sent(answer)] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!(told["method"], "notifications/tasks/status");
    assert_eq!(told["params"]["status"], "completed");
    assert_eq!(told["params"]["lastUpdatedAt"], "2026-03-01T08:30:01.000Z");
    assert_eq!(told["params"].get("_meta"), None, "its parameters name the task");
    let related = json!({ RELATED: { "taskId": "task-1" } });
    let outcome = json!({ "action": "accept", "content": {}, "_meta": related });
    assert_eq!(*answer, json!({ "jsonrpc": "2.0", "id": waits, "result": outcome }));
    assert_eq!(
        rig.answer("tasks/result", json!({ "taskId": "task-1" }))["result"],
        outcome,
        "as often as asked"
    );
    assert_eq!(rig.status("task-1"), "completed");
}

#[test]
fn an_error_fails_the_task_and_is_its_outcome() {
    let mut rig = Rig::new(|_| {});
    let id = rig.task(json!({}));
    let seen = rig.respond(1, Err(RpcError::new(-1, "the user refuses")));
    let [Seen::Sent(told)] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!(told["params"]["status"], "failed");
    assert_eq!(told["params"]["statusMessage"], "the user refuses");
    assert_eq!(rig.error("tasks/result", json!({ "taskId": id })), (-1, "the user refuses".to_owned()));
    rig.task(json!({}));
    let seen = rig.respond(2, Ok(json!("text")));
    assert!(matches!(&seen[..], [Seen::Sent(told)] if told["params"]["status"] == "failed"), "{seen:?}");
}

#[test]
fn sampling_becomes_a_task_too_and_roots_do_not() {
    let mut rig = Rig::new(|_| {});
    let params = json!({ "messages": [], "maxTokens": 1, "task": {} });
    let created = rig.answer("sampling/createMessage", params);
    assert_eq!(
        created["result"]["task"]["ttl"],
        15 * 60 * 1000,
        "what is granted where nothing is asked for"
    );
    let (_, seen) = rig.request("roots/list", json!({ "task": {} }));
    assert!(matches!(&seen[..], [Seen::Asked(2, _)]), "{seen:?}");
    let seen = rig.respond(2, Ok(json!({ "roots": [] })));
    assert!(matches!(&seen[..], [Seen::Sent(answer)] if answer["result"]["roots"] == json!([])), "{seen:?}");
}

#[test]
fn a_cancelled_task_takes_the_question_away() {
    let mut rig = Rig::new(|_| {});
    let id = rig.task(json!({}));
    let (waits, _) = rig.request("tasks/result", json!({ "taskId": id }));
    let (cancels, seen) = rig.request("tasks/cancel", json!({ "taskId": id }));
    let [Seen::Withdrawn(1), Seen::Sent(outcome), Seen::Sent(answer)] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((&outcome["id"], &outcome["error"]["code"]), (&json!(waits), &json!(-32603)));
    assert_eq!((&answer["id"], &answer["result"]["status"]), (&json!(cancels), &json!("cancelled")));
    assert_eq!(answer["result"]["taskId"], json!(id));
    assert_eq!(rig.respond(1, Ok(accepted())), [], "the handler is late");
    assert_eq!(rig.status(&id), "cancelled", "and changes nothing");
    let (code, message) = rig.error("tasks/cancel", json!({ "taskId": id }));
    assert_eq!(code, -32602);
    assert!(message.contains("task-1") && message.contains("cancelled already"), "{message}");
    let (code, _) = rig.error("tasks/result", json!({ "taskId": id }));
    assert_eq!(code, -32603);
}

#[test]
fn what_is_over_cannot_be_cancelled() {
    let mut rig = Rig::new(|_| {});
    let id = rig.task(json!({}));
    rig.respond(1, Ok(accepted()));
    let (code, message) = rig.error("tasks/cancel", json!({ "taskId": id }));
    assert!(code == -32602 && message.contains("completed"), "{message}");
    assert_eq!(rig.status(&id), "completed");
}

#[test]
fn unknown_ids_are_named() {
    let mut rig = Rig::new(|_| {});
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let (code, message) = rig.error(method, json!({ "taskId": "no-such" }));
        assert!(code == -32602 && message.contains("no-such"), "{method}: {message}");
        let (code, message) = rig.error(method, json!({}));
        assert!(code == -32602 && message.contains("taskId"), "{method}: {message}");
        let (code, message) = rig.error(method, json!({ "taskId": 5 }));
        assert!(code == -32602 && message.contains("params.taskId"), "{method}: {message}");
    }
    let (_, message) = rig.error("tasks/get", json!({ "taskId": "x".repeat(100_000) }));
    assert!(message.len() < 500, "no echo of what is long");
}

#[test]
fn the_parameter_decides_and_not_the_metadata() {
    let mut rig = Rig::new(|_| {});
    let id = rig.task(json!({}));
    let meta = json!({ RELATED: { "taskId": "another" } });
    let answer = rig.answer("tasks/get", json!({ "taskId": id, "_meta": meta }));
    assert_eq!(answer["result"]["taskId"], json!(id));
}

#[test]
fn tasks_expire_with_their_handlers() {
    let mut rig = Rig::new(|_| {});
    let id = rig.task(json!({ "ttl": 10_000 }));
    let (waits, _) = rig.request("tasks/result", json!({ "taskId": id }));
    assert_eq!(rig.pass(9), []);
    let seen = rig.pass(1);
    let [Seen::Withdrawn(1), Seen::Sent(answer)] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(waits), &json!(-32602)));
    let (code, message) = rig.error("tasks/get", json!({ "taskId": id }));
    assert!(code == -32602 && message.contains("expired"), "{message}");
    assert_eq!(rig.respond(1, Ok(accepted())), []);
}

#[test]
fn lifetimes_are_granted_within_bounds() {
    let mut rig = Rig::with_limits(|limits| limits.max_ttl = Duration::from_secs(100));
    for (wanted, granted) in
        [(json!({ "ttl": 0 }), 1000), (json!({ "ttl": u64::MAX }), 100_000), (json!({}), 100_000)]
    {
        let answer = rig.answer("elicitation/create", elicitation(wanted));
        assert_eq!(answer["result"]["task"]["ttl"], granted);
    }
}

#[test]
fn malformed_wishes_are_refused() {
    let mut rig = Rig::new(|_| {});
    for task in [json!(true), json!({ "ttl": -1 }), json!({ "ttl": "1" }), json!({ "ttl": 1.5 }), json!([])] {
        let (code, message) = rig.error("elicitation/create", elicitation(task.clone()));
        assert!(code == -32602 && message.contains("params.task"), "{task}: {message}");
    }
    assert_eq!(rig.answer("tasks/list", json!({}))["result"]["tasks"], json!([]));
}

#[test]
fn what_is_not_declared_is_no_task() {
    let mut rig = Rig::new(|config| {
        let tasks = config.capabilities.tasks.as_mut().unwrap();
        tasks.requests.as_mut().unwrap().elicitation = None;
        (tasks.list, tasks.cancel) = (None, None);
    });
    let (_, seen) = rig.request("elicitation/create", elicitation(json!({})));
    let [Seen::Finding("TSK-02"), Seen::Asked(1, asked)] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!(asked["params"].get("task"), None);
    let seen = rig.respond(1, Ok(accepted()));
    assert!(matches!(&seen[..], [Seen::Sent(answer)] if answer["result"] == accepted()), "{seen:?}");
    for method in ["tasks/list", "tasks/cancel"] {
        assert_eq!(rig.error(method, json!({ "taskId": "t" })).0, -32601, "{method}");
    }
    assert_eq!(rig.error("tasks/get", json!({ "taskId": "t" })).0, -32602);

    let mut older = Rig::speaking(Revision::V2025_06_18, |_| {});
    let (_, seen) = older.request("elicitation/create", elicitation(json!("anything")));
    assert!(matches!(&seen[..], [Seen::Asked(1, _)]), "{seen:?}");
    assert_eq!(older.error("tasks/get", json!({ "taskId": "t" })).0, -32601);
}

#[test]
fn tasks_are_listed_page_by_page() {
    let mut rig = Rig::new(|config| config.max_server_requests = 1000);
    for _ in 0..120 {
        rig.task(json!({}));
    }
    let (mut listed, mut sizes, mut params) = (Vec::new(), Vec::new(), json!({}));
    loop {
        let page = rig.answer("tasks/list", params)["result"].clone();
        let tasks = page["tasks"].as_array().unwrap().clone();
        sizes.push(tasks.len());
        listed.extend(tasks.into_iter().map(|task| task["taskId"].as_str().unwrap().to_owned()));
        let Some(cursor) = page.get("nextCursor") else { break };
        params = json!({ "cursor": cursor });
    }
    assert_eq!(sizes, [50, 50, 20]);
    assert_eq!(listed, (1..=120).map(|number| format!("task-{number}")).collect::<Vec<_>>());
    for cursor in ["0", "121", "-1", "x", ""] {
        let (code, message) = rig.error("tasks/list", json!({ "cursor": cursor }));
        assert!(code == -32602 && message.contains("cursor"), "{cursor}: {message}");
    }
}

#[test]
fn tasks_are_limited_in_number_and_bytes() {
    let mut rig = Rig::with_limits(|limits| limits.max_tasks = 2);
    rig.task(json!({ "ttl": 5000 }));
    rig.task(json!({}));
    let (code, message) = rig.error("elicitation/create", elicitation(json!({})));
    assert!(code == -32603 && message.contains("2 tasks"), "{message}");
    let (_, seen) = rig.request(
        "elicitation/create",
        json!({ "message": "m", "requestedSchema": { "type": "object", "properties": {} } }),
    );
    assert!(matches!(&seen[..], [Seen::Asked(3, _)]), "a plain request is no task: {seen:?}");
    rig.pass(5);
    rig.task(json!({}));

    let mut rig = Rig::with_limits(|limits| limits.max_bytes = 8000);
    let id = rig.task(json!({}));
    rig.respond(1, Ok(json!({ "action": "accept", "content": { "text": "x".repeat(20_000) } })));
    assert_eq!(rig.status(&id), "failed");
    let (code, message) = rig.error("tasks/result", json!({ "taskId": id }));
    assert!(code == -32603 && message.contains("8000"), "{message}");
    let id = rig.task(json!({}));
    rig.respond(2, Ok(json!({ "action": "accept", "content": { "text": "x".repeat(2000) } })));
    assert_eq!(rig.status(&id), "completed");
    let (code, message) = rig.error("elicitation/create", elicitation(json!({})));
    assert!(code == -32603 && message.contains("8000 bytes"), "{message}");
}

#[test]
fn expired_tasks_give_their_bytes_back() {
    let mut rig = Rig::with_limits(|limits| limits.max_bytes = 5000);
    for _ in 0..50 {
        let answer = rig.answer("elicitation/create", elicitation(json!({ "ttl": 1000 })));
        assert!(answer.get("result").is_some(), "{answer}");
        let (_, seen) = rig.request("tasks/list", json!({}));
        assert_eq!(seen.len(), 1);
        rig.pass(1);
    }
}

#[test]
fn requests_for_an_outcome_are_limited_and_can_be_given_up() {
    let mut rig = Rig::new(|_| {});
    let id = rig.task(json!({}));
    let waiting: Vec<i64> = (0..8).map(|_| rig.request("tasks/result", json!({ "taskId": id })).0).collect();
    let (code, message) = rig.error("tasks/result", json!({ "taskId": id }));
    assert!(code == -32603 && message.contains('8'), "{message}");
    let repeated = json!({ "id": waiting[1], "method": "tasks/result", "params": { "taskId": id } });
    let seen = rig.hear(repeated);
    assert!(seen.contains(&Seen::Finding("RPC-03")), "{seen:?}");
    rig.hear(json!({ "method": "notifications/cancelled", "params": { "requestId": waiting[0] } }));
    assert_eq!(rig.status(&id), "working", "the task goes on");
    let answered: Vec<Value> = rig
        .respond(1, Ok(accepted()))
        .into_iter()
        .filter_map(|seen| match seen {
            Seen::Sent(message) => message.get("id").cloned(),
            _ => None,
        })
        .collect();
    assert_eq!(answered, waiting[1..].iter().map(|id| json!(id)).collect::<Vec<_>>());
}

#[test]
fn a_cancelled_creation_leaves_the_task_alone() {
    let mut rig = Rig::new(|_| {});
    let (created, seen) = rig.request("elicitation/create", elicitation(json!({})));
    assert_eq!(seen.len(), 2);
    rig.hear(json!({ "method": "notifications/cancelled", "params": { "requestId": created } }));
    assert_eq!(rig.status("task-1"), "working");
}

#[test]
fn the_answer_names_the_task_of_the_server_that_it_belongs_to() {
    let mut rig = Rig::new(|_| {});
    let mut params = elicitation(json!({}));
    params["_meta"] = json!({ RELATED: { "taskId": "of-the-server" } });
    let answer = rig.answer("elicitation/create", params);
    assert_eq!(answer["result"]["_meta"][RELATED]["taskId"], "of-the-server");
    assert_eq!(answer["result"]["task"]["taskId"], "task-1");
}

#[test]
fn a_call_that_is_given_up_cancels_the_tasks_that_were_created_in_it() {
    let mut rig = Rig::new(|config| config.transport = TransportKind::Http);
    let of_others = rig.task(json!({}));
    let call = rig.engine.call(rig.now, "tools/list".into(), None, "{}".into(), CallOptions::default());
    rig.seen();
    let mut message = json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create" });
    message["params"] = elicitation(json!({}));
    rig.asked.insert(message["id"].to_string(), "elicitation/create".to_owned());
    rig.engine.receive(rig.now, Some(ExchangeId(call.0)), message.to_string().as_bytes());
    rig.seen();
    rig.engine.cancel(rig.now, call, "enough");
    let seen = rig.seen();
    assert!(seen.contains(&Seen::Withdrawn(2)) && !seen.contains(&Seen::Withdrawn(1)), "{seen:?}");
    let told = |seen: &Seen| matches!(seen, Seen::Sent(it) if it["method"] == "notifications/tasks/status" && it["params"]["status"] == "cancelled");
    assert!(seen.iter().any(told), "{seen:?}");
    assert_eq!((rig.status("task-2"), rig.status(&of_others)), (json!("cancelled"), json!("working")));

    // One that has just ended leaves its tasks alone.
    let call = rig.engine.call(rig.now, "tools/list".into(), None, "{}".into(), CallOptions::default());
    rig.seen();
    message["id"] = json!("r");
    rig.asked.insert(message["id"].to_string(), "elicitation/create".to_owned());
    rig.engine.receive(rig.now, Some(ExchangeId(call.0)), message.to_string().as_bytes());
    rig.hear(json!({ "id": call.0, "result": { "tools": [] } }));
    assert_eq!(rig.status("task-3"), "working");
}

#[test]
fn a_task_needs_an_id_of_its_own() {
    let mut rig = Rig::with_limits(|limits| limits.ids = TaskIds::new(|| None));
    let (code, message) = rig.error("elicitation/create", elicitation(json!({})));
    assert!(code == -32603 && message.contains("random"), "{message}");
    let mut rig = Rig::with_limits(|limits| limits.ids = TaskIds::new(|| Some("same".into())));
    rig.task(json!({}));
    let (code, message) = rig.error("elicitation/create", elicitation(json!({})));
    assert!(code == -32603 && message.contains("no new id"), "{message}");
}

#[test]
fn tasks_end_with_the_session() {
    let mut rig = Rig::new(|_| {});
    let id = rig.task(json!({}));
    rig.request("tasks/result", json!({ "taskId": id }));
    rig.engine.closed(TransportError::Closed);
    assert_eq!(rig.seen(), [Seen::Withdrawn(1)]);
    assert_eq!(rig.respond(1, Ok(accepted())), []);

    // A session that is lost is opened again, without the tasks of the first.
    let mut rig = Rig::new(|config| config.transport = TransportKind::Http);
    let id = rig.task(json!({}));
    let call = rig.engine.call(rig.now, "tools/list".into(), None, "{}".into(), CallOptions::default());
    rig.seen();
    let exchange = ExchangeId(call.0);
    rig.engine.ended(rig.now, exchange, TransportError::SessionLost);
    let mut reopening = None;
    let mut withdrawn = false;
    while let Some(output) = rig.engine.poll() {
        match output {
            ClientOutput::Send(message) => reopening = Some(message.exchange.0),
            ClientOutput::RequestCancelled(_) => withdrawn = true,
            _ => {}
        }
    }
    assert!(withdrawn);
    let opened = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "s", "version": "1" }
    });
    rig.hear(json!({ "id": reopening.unwrap(), "result": opened }));
    assert_eq!(rig.error("tasks/get", json!({ "taskId": id })).0, -32602);
}
