//! Tasks and clients that mean harm, or have left: floods, wrong lifetimes, cancelling at every moment.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use refmcp_server::backplane::{Backplane, BackplaneSettings, CreateTaskOutcome, MemoryBackplane, NewTask};
use refmcp_server::model::TaskSupport;
use refmcp_server::transport::MemoryBudget;
use refmcp_server::{Call, CallError, NoArguments, Server, Tool};
use refmcp_testkit::client::{Pair, TestClient, accept_all, text};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{Gate, SESSION, STATELESS, idle, named, server};

const TASKS: &str = "io.modelcontextprotocol/tasks";
/// Long before the client's time for its responses is over.
const SOON: Duration = Duration::from_secs(3);

async fn interview(call: Call, _: NoArguments) -> Result<String, CallError> {
    let (one, other) = (call.confirm("one", "One?"), call.confirm("other", "Other?"));
    Ok(format!("{} {}", one?, other?))
}

fn interviewer() -> Server {
    server([Tool::new("interview", "Asks", interview).task(TaskSupport::Optional)])
}

/// Calls a tool as a task in a session; gives parameters that name it.
async fn create(client: &mut TestClient, tool: &str) -> Value {
    let params = json!({ "name": tool, "arguments": {}, "task": {} });
    json!({ "taskId": client.result("tools/call", params).await["task"]["taskId"] })
}

async fn session(server: &Server) -> TestClient {
    let capabilities = json!({ "sampling": {}, "elicitation": {}, "extensions": { TASKS: {} } });
    TestClient::open_with(server, SESSION, capabilities).await
}

#[tokio::test(start_paused = true)]
async fn a_result_that_asks_ends_when_its_task_is_cancelled() {
    let server = interviewer();
    let mut client = session(&server).await;
    let id = create(&mut client, "interview").await;
    let waiting = client.request("tasks/result", id.clone()).await;
    let questions = [client.question().await, client.question().await];
    assert_eq!(client.result("tasks/cancel", id).await["status"], "cancelled");
    let cancelled = Instant::now();
    let answer = client.answer(waiting).await;
    assert!(cancelled.elapsed() < SOON, "not when the questions are overdue");
    assert!(answer["error"]["message"].as_str().unwrap().contains("cancelled"), "{answer}");
    let withdrawn = client.take_notifications("notifications/cancelled");
    let ids: Vec<&Value> = withdrawn.iter().map(|told| &told["params"]["requestId"]).collect();
    assert_eq!(ids, questions.iter().map(|question| &question["id"]).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_result_that_asks_ends_when_its_task_expires() {
    let server = interviewer();
    let mut client = session(&server).await;
    let params = json!({ "name": "interview", "arguments": {}, "task": { "ttl": 5000 } });
    let task = client.result("tools/call", params).await["task"]["taskId"].take();
    let waiting = client.request("tasks/result", json!({ "taskId": task })).await;
    client.question().await;
    let asked = Instant::now();
    assert_eq!(client.answer(waiting).await["error"]["code"], -32602);
    assert!(asked.elapsed() < SOON + Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn another_session_is_asked_where_the_first_was_left() {
    let server = interviewer();
    let mut left = Pair::of(&server, "ann").start(SESSION).await;
    let id = create(&mut left.client, "interview").await;
    left.client.request("tasks/result", id.clone()).await;
    left.client.question().await;
    // The first session is still open, and its client says nothing more.
    let mut again = Pair::of(&server, "ann").start(SESSION).await;
    let waiting = again.client.request("tasks/result", id).await;
    let called = Instant::now();
    for _ in 0..2 {
        let question = again.client.question().await;
        again.client.reply(&question, accept_all(&question)).await;
    }
    assert_eq!(text(&again.client.answer(waiting).await["result"]), "true true");
    assert!(called.elapsed() < SOON);
}

#[tokio::test(start_paused = true)]
async fn wrong_lifetimes_are_refused() {
    let gate = Gate::new();
    let server = server([gate.tool().task(TaskSupport::Required)]);
    let mut client = session(&server).await;
    for task in [
        json!({ "ttl": -1 }),
        json!({ "ttl": 0.5 }),
        json!({ "ttl": "60000" }),
        json!({ "ttl": 1e300 }),
        json!({ "ttl": [] }),
        json!({ "ttl": true }),
        json!([]),
        json!("now"),
        json!(7),
    ] {
        let params = json!({ "name": "gate", "arguments": {}, "task": task });
        let error = client.error("tools/call", params).await;
        assert_eq!(error["code"], -32602, "{task}: {error}");
    }
    idle().await;
    assert_eq!(gate.begun(), 0);
    // One without a lifetime to speak of is over at once, and its handler does not run on.
    for ttl in [json!(0), json!(1)] {
        let params = json!({ "name": "gate", "arguments": {}, "task": { "ttl": ttl } });
        let task = client.result("tools/call", params).await["task"].take();
        assert_eq!(task["ttl"], ttl);
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(client.error("tasks/get", json!({ "taskId": task["taskId"] })).await["code"], -32602);
    }
    idle().await;
    assert_eq!(gate.stopped(), gate.begun());
    // No task is kept for ever.
    let params = json!({ "name": "gate", "arguments": {}, "task": { "ttl": u64::MAX } });
    assert_eq!(client.result("tools/call", params).await["task"]["ttl"], 24 * 3600 * 1000);
}

#[tokio::test(start_paused = true)]
async fn the_extension_is_nothing_in_a_session() {
    let gate = Gate::new();
    let server =
        server([gate.tool().task(TaskSupport::Required), named("plain").task(TaskSupport::Optional)]);
    let mut client = session(&server).await;
    let plain = client.result("tools/call", json!({ "name": "plain", "arguments": {} })).await;
    assert!(text(&plain) == "plain" && plain.get("taskId").is_none(), "{plain}");
    let error = client.error("tools/call", json!({ "name": "gate", "arguments": {} })).await;
    assert_eq!(error["code"], -32601);
    let update = json!({ "taskId": "x", "inputResponses": {} });
    assert_eq!(client.error("tasks/update", update).await["code"], -32601);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_moves_on_keeps_its_tasks() {
    let gate = Gate::new();
    let server = server([gate.tool().task(TaskSupport::Optional)]);
    let mut before = session(&server).await;
    let old = [create(&mut before, "gate").await, create(&mut before, "gate").await];
    let mut declared =
        TestClient::open_with(&server, STATELESS, json!({ "extensions": { TASKS: {} } })).await;
    let new = declared.result("tools/call", json!({ "name": "gate", "arguments": {} })).await;
    let new = json!({ "taskId": new["taskId"] });
    let mut moved = TestClient::open_with(&server, STATELESS, json!({ "tasks": {} })).await;
    let task = moved.result("tasks/get", old[0].clone()).await;
    assert_eq!((&task["status"], &task["resultType"]), (&json!("working"), &json!("complete")));
    moved.result("tasks/cancel", old[0].clone()).await;
    assert_eq!(moved.result("tasks/get", old[0].clone()).await["status"], "cancelled");
    for method in ["tasks/get", "tasks/cancel"] {
        assert_eq!(
            moved.error(method, new.clone()).await["code"],
            -32021,
            "{method} of a task of the extension"
        );
    }
    let update = json!({ "taskId": old[1]["taskId"], "inputResponses": {} });
    assert_eq!(moved.error("tasks/update", update).await["code"], -32021);
    let mut undeclared = TestClient::open_with(&server, STATELESS, json!({})).await;
    assert_eq!(undeclared.error("tasks/get", old[1].clone()).await["code"], -32021);
}

#[tokio::test(start_paused = true)]
async fn cancelling_at_every_moment_ends_in_one_state() {
    for pause in 0..30 {
        async fn brief(call: Call, _: NoArguments) -> Result<String, CallError> {
            for step in 1..=3 {
                call.progress(f64::from(step), None, "a step").await;
                tokio::time::sleep(Duration::from_millis(4)).await;
            }
            Ok("done".to_owned())
        }
        let server = server([Tool::new("brief", "", brief).task(TaskSupport::Optional)]);
        let mut client = session(&server).await;
        let id = create(&mut client, "brief").await;
        let waiting = client.request("tasks/result", id.clone()).await;
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let cancelled = client.call("tasks/cancel", id.clone()).await;
        let answer = client.answer(waiting).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        let status = client.result("tasks/get", id).await["status"].take();
        let is_cancelled = cancelled.get("result").is_some();
        assert_eq!(is_cancelled, status == "cancelled", "{pause}: {cancelled}");
        assert_eq!(is_cancelled, answer.get("error").is_some(), "{pause}: {answer}");
        assert!(is_cancelled || cancelled["error"]["code"] == -32602, "{cancelled}");
    }
}

#[tokio::test(start_paused = true)]
async fn those_who_keep_all_they_can_leave_some_for_others() {
    let settings = BackplaneSettings {
        tasks: 1000,
        owner_tasks: 400,
        total_task_bytes: 10 << 20,
        ..BackplaneSettings::default()
    };
    let memory = MemoryBackplane::new(settings);
    let create = async |owner: usize, number: usize| {
        let task = NewTask {
            id: format!("{owner} {number}").into(),
            owner: owner.to_string().into(),
            state: vec![b'x'; 100].into(),
            call: vec![b'x'; 100].into(),
            ttl: Some(Duration::from_secs(3600)),
        };
        memory.create_task(task).await.unwrap() == CreateTaskOutcome::Created
    };
    for owner in 0..8 {
        for number in 0..500 {
            if !create(owner, number).await {
                break;
            }
        }
    }
    assert!(memory.kept_tasks().0 < 1000);
    assert!(create(100, 0).await, "a client that keeps none gets one");
    tokio::time::sleep(Duration::from_secs(3601)).await;
    memory.sweep().await.unwrap();
    assert_eq!(memory.kept_tasks(), (0, 0));
    assert!(create(0, 0).await && memory.kept_tasks().1 > 0);
}

#[tokio::test]
async fn tasks_of_one_owner_take_half_of_the_memory() {
    let budget = MemoryBudget::new(4 << 20);
    let memory = MemoryBackplane::with_budget(BackplaneSettings::default(), &budget);
    let create = async |owner: &str, number: usize| {
        let task = NewTask {
            id: format!("{owner} {number}").into(),
            owner: owner.into(),
            state: vec![b'x'; 300].into(),
            call: vec![b'x'; 20_000].into(),
            ttl: None,
        };
        memory.create_task(task).await.unwrap() == CreateTaskOutcome::Created
    };
    let mut number = 0;
    while create("greedy", number).await {
        number += 1;
    }
    assert!((1_900_000..=2 << 20).contains(&budget.held()), "{} bytes of {number}", budget.held());
    assert!(create("other", 0).await);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_tasks_is_refused_and_forgotten() {
    let gate = Gate::new();
    let server = server([gate.tool().task(TaskSupport::Optional), named("plain")]);
    let settings = BackplaneSettings { owner_tasks: 100, ..BackplaneSettings::default() };
    let memory = Arc::new(MemoryBackplane::new(settings));
    server.use_backplane(memory.clone());
    let mut client = session(&server).await;
    let mut refused = 0;
    for _ in 0..300 {
        let params = json!({ "name": "gate", "arguments": {}, "task": { "ttl": 60_000 } });
        let answer = client.call("tools/call", params).await;
        refused += usize::from(answer["error"]["code"] == -32603);
    }
    assert_eq!((refused, memory.kept_tasks().0), (200, 100));
    assert_eq!(text(&client.tool("plain", json!({})).await), "plain");
    idle().await;
    assert_eq!(gate.begun(), 100);
    tokio::time::sleep(Duration::from_secs(61)).await;
    memory.sweep().await.unwrap();
    idle().await;
    assert_eq!((gate.stopped(), memory.kept_tasks()), (100, (0, 0)));
}

/// Bytes that the process has in memory; 0 where that is not known.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_finished_tasks_are_held_in_80_megabytes() {
    // What a task comes to that says its name, as it is kept.
    let server = server([named("plain").task(TaskSupport::Optional)]);
    let mut client = session(&server).await;
    let id = create(&mut client, "plain").await["taskId"].take();
    client.result("tasks/result", json!({ "taskId": id })).await;
    let state = server.backplane().task(id.as_str().unwrap()).await.unwrap().unwrap().state;

    let (memory, before) = (MemoryBackplane::default(), resident());
    for number in 0..100_000 {
        let task = NewTask {
            id: format!("{number:024}").into(),
            owner: format!("principal {}", number / 10_000).into(),
            state: state.clone(),
            call: vec![b'x'; 300].into(),
            ttl: Some(Duration::from_secs(3600)),
        };
        let id = task.id.clone();
        assert_eq!(memory.create_task(task).await.unwrap(), CreateTaskOutcome::Created, "{number}");
        let finished = state.to_vec().into();
        memory.update_task(&id, 1, finished, Some(Bytes::new())).await.unwrap();
    }
    let (count, bytes) = memory.kept_tasks();
    assert_eq!(count, 100_000);
    assert!(bytes <= 80_000_000, "{} bytes for each", bytes / count);
    let grown = resident().saturating_sub(before);
    assert!(grown <= bytes, "{} bytes for each are counted, and {} are held", bytes / count, grown / count);
    tokio::time::sleep(Duration::from_secs(3601)).await;
    memory.sweep().await.unwrap();
    assert_eq!(memory.kept_tasks(), (0, 0));
}
