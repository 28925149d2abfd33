//! Tasks of both kinds: one handler, created, asked for, answered, cancelled and forgotten.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use refmcp_server::backplane::{Backplane, BackplaneSettings, MemoryBackplane};
use refmcp_server::model::TaskSupport;
use refmcp_server::{Call, CallError, NoArguments, Revision, RpcError, Server, TaskOptions, Tool};
use refmcp_testkit::client::{TestClient, accept_all, text};
use serde_json::{Value, json};

use crate::support::{BOTH, Gate, SESSION, STATELESS, idle, named, server};

const TASKS: &str = "io.modelcontextprotocol/tasks";
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// A client that has tasks, of the kind of its revision.
async fn client(server: &Server, revision: Revision) -> TestClient {
    let mut capabilities = json!({ "roots": {}, "sampling": {}, "elicitation": {} });
    if revision == STATELESS {
        capabilities["extensions"] = json!({ TASKS: {} });
    }
    TestClient::open_with(server, revision, capabilities).await
}

/// Calls a tool as a task; gives the task.
async fn create(client: &mut TestClient, revision: Revision, tool: &str, arguments: Value) -> Value {
    let mut params = json!({ "name": tool, "arguments": arguments });
    if revision == SESSION {
        params["task"] = json!({});
        return client.result("tools/call", params).await["task"].take();
    }
    let task = client.result("tools/call", params).await;
    assert_eq!(task["resultType"], "task");
    task
}

async fn get(client: &mut TestClient, id: &Value) -> Value {
    client.result("tasks/get", json!({ "taskId": id })).await
}

/// Asks for the task until it has this status.
async fn until(client: &mut TestClient, id: &Value, status: &str) -> Value {
    for _ in 0..1000 {
        let task = get(client, id).await;
        if task["status"] == status {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{id} does not become {status}: {}", get(client, id).await);
}

fn gated(gate: &Gate, support: TaskSupport) -> Server {
    server([gate.tool().task(support), named("plain")])
}

async fn interview(call: Call, _: NoArguments) -> Result<String, CallError> {
    call.progress(1.0, Some(2.0), "asking").await;
    let (one, other) = (call.confirm("one", "One?"), call.confirm("other", "Other?"));
    let (one, other) = (one?, other?);
    let third = call.confirm("third", "Third?")?;
    Ok(format!("{one} {other} {third}"))
}

fn interviewer() -> Server {
    server([Tool::new("interview", "Asks", interview).task(TaskSupport::Optional)])
}

#[tokio::test(start_paused = true)]
async fn a_call_goes_on_as_a_task() {
    for revision in BOTH {
        let gate = Gate::new();
        let server = gated(&gate, TaskSupport::Optional);
        let mut client = client(&server, revision).await;
        let task = create(&mut client, revision, "gate", json!({})).await;
        assert_eq!(task["status"], "working");
        assert!(task["taskId"].as_str().unwrap().len() >= 22, "128 bits or more: {task}");
        assert_eq!(task["createdAt"], task["lastUpdatedAt"]);
        let id = &task["taskId"];
        assert_eq!(get(&mut client, id).await["status"], "working");
        idle().await;
        assert_eq!(gate.begun(), 1);
        gate.let_through(1);
        let done = until(&mut client, id, "completed").await;
        if revision == STATELESS {
            assert_eq!(
                (text(&done["result"]), done["resultType"].as_str()),
                ("through".to_owned(), Some("complete"))
            );
            assert_eq!(done["ttlMs"], 3_600_000);
        } else {
            assert!(done.get("result").is_none() && done["ttl"] == 3_600_000, "{done}");
            let result = client.result("tasks/result", json!({ "taskId": id })).await;
            assert_eq!(text(&result), "through");
            assert_eq!(result["_meta"][RELATED], json!({ "taskId": id }));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whether_a_call_becomes_a_task_depends_on_both_sides() {
    let tools = |support: &TaskSupport| {
        let tool = |name| named(name).task(support.clone());
        server([tool("tool"), named("plain")])
    };
    for support in [TaskSupport::Forbidden, TaskSupport::Optional, TaskSupport::Required] {
        let builder = Server::builder("test", "1").tasks(TaskOptions::default());
        let server = builder.tool(named("tool").task(support.clone())).build().unwrap();
        let mut session = client(&server, SESSION).await;
        let with = json!({ "name": "tool", "arguments": {}, "task": {} });
        let plain = json!({ "name": "tool", "arguments": {} });
        match support {
            TaskSupport::Forbidden => {
                assert_eq!(session.error("tools/call", with.clone()).await["code"], -32601);
                assert_eq!(text(&session.result("tools/call", plain.clone()).await), "tool");
            }
            TaskSupport::Optional => {
                assert_eq!(text(&session.result("tools/call", plain.clone()).await), "tool");
            }
            _ => {
                let error = session.error("tools/call", plain.clone()).await;
                assert_eq!(error["code"], -32601);
                assert!(error["message"].as_str().unwrap().contains("params.task"), "{error}");
            }
        }
        let mut declared = client(&server, STATELESS).await;
        let answer = declared.result("tools/call", with.clone()).await;
        let becomes_task = support != TaskSupport::Forbidden;
        assert_eq!(answer["resultType"] == "task", becomes_task, "params.task says nothing: {answer}");
        let mut undeclared = TestClient::open(&server, STATELESS).await;
        let answer = undeclared.call("tools/call", plain.clone()).await;
        if support == TaskSupport::Required {
            assert_eq!(answer["error"]["code"], -32021);
            let required = &answer["error"]["data"]["requiredCapabilities"]["extensions"];
            assert_eq!(*required, json!({ TASKS: {} }));
        } else {
            assert_eq!(text(&answer["result"]), "tool");
        }
        // Revisions without tasks get the result.
        let mut old = TestClient::open(&server, Revision::V2025_06_18).await;
        assert_eq!(text(&old.result("tools/call", with).await), "tool");
    }
    // A server that has declared nothing ignores what it does not know.
    let none = tools(&TaskSupport::Forbidden);
    let mut session = client(&none, SESSION).await;
    let with = json!({ "name": "plain", "arguments": {}, "task": { "ttl": 5 } });
    assert_eq!(text(&session.result("tools/call", with).await), "plain");
    assert_eq!(session.error("tasks/get", json!({ "taskId": "x" })).await["code"], -32601);
}

#[tokio::test]
async fn tasks_are_declared_where_they_are() {
    let gate = Gate::new();
    let server = gated(&gate, TaskSupport::Required);
    let mut session = TestClient::over(server.in_memory());
    let opened = session.start(SESSION, json!({})).await;
    let tasks = &opened["capabilities"]["tasks"];
    assert_eq!(*tasks, json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } }));
    let tools = session.list("tools").await;
    assert_eq!(tools[0]["execution"], json!({ "taskSupport": "required" }));
    assert!(tools[1].get("execution").is_none());
    let mut stateless = TestClient::open(&server, STATELESS).await;
    let discovered = stateless.result("server/discover", json!({})).await;
    assert!(discovered["capabilities"].get("tasks").is_none(), "{discovered}");
    assert_eq!(discovered["capabilities"]["extensions"][TASKS], json!({}));
    assert!(stateless.list("tools").await[0].get("execution").is_none());
    let mut old = TestClient::over(server.in_memory());
    let opened = old.start(Revision::V2025_06_18, json!({})).await;
    assert!(opened["capabilities"].get("tasks").is_none(), "{opened}");
}

#[tokio::test(start_paused = true)]
async fn a_task_of_2026_07_28_gets_its_input_by_updates() {
    let server = interviewer();
    let mut client = client(&server, STATELESS).await;
    let task = create(&mut client, STATELESS, "interview", json!({})).await;
    let id = &task["taskId"];
    let asking = until(&mut client, id, "input_required").await;
    assert_eq!(asking["statusMessage"], "asking", "progress is what the task does");
    let requests = asking["inputRequests"].as_object().unwrap();
    assert_eq!(requests.keys().collect::<Vec<_>>(), ["one", "other"]);
    let bad = json!({ "taskId": id, "inputResponses": { "one": { "action": "maybe" } } });
    let error = client.error("tasks/update", bad).await;
    assert!(error["code"] == -32602 && error["message"].as_str().unwrap().contains("inputResponses.one"));
    let yes = json!({ "action": "accept", "content": { "confirm": true } });
    let one = json!({ "taskId": id, "inputResponses": { "one": yes, "unknown": 7 } });
    let ack = client.result("tasks/update", one).await;
    assert!(ack["resultType"] == "complete" && ack.get("taskId").is_none() && ack.get("status").is_none());
    let half = get(&mut client, id).await;
    assert_eq!(half["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["other"]);
    let other = json!({ "taskId": id, "inputResponses": { "other": { "action": "decline" } } });
    client.result("tasks/update", other).await;
    let third = until(&mut client, id, "input_required").await;
    assert_eq!(third["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["third"]);
    client.result("tasks/update", json!({ "taskId": id, "inputResponses": { "third": yes } })).await;
    let done = until(&mut client, id, "completed").await;
    assert_eq!(text(&done["result"]), "true false true");
    assert!(done.get("inputRequests").is_none());
    // A task that is over takes updates, and ignores them.
    client.result("tasks/update", json!({ "taskId": id, "inputResponses": { "third": yes } })).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_of_2025_11_25_asks_while_its_result_is_waited_for() {
    let server = interviewer();
    let mut client = client(&server, SESSION).await;
    let task = create(&mut client, SESSION, "interview", json!({})).await;
    let id = &task["taskId"];
    until(&mut client, id, "input_required").await;
    assert!(client.requests.is_empty(), "nothing is asked before that");
    let waiting = client.request("tasks/result", json!({ "taskId": id })).await;
    let second = client.request("tasks/result", json!({ "taskId": id })).await;
    for _ in 0..3 {
        let question = client.question().await;
        assert_eq!(question["params"]["_meta"][RELATED], json!({ "taskId": id }));
        client.reply(&question, accept_all(&question)).await;
    }
    for waiting in [waiting, second] {
        let answer = client.answer(waiting).await;
        assert_eq!(text(&answer["result"]), "true true true");
        assert_eq!(answer["result"]["_meta"][RELATED], json!({ "taskId": id }));
    }
    assert!(client.requests.is_empty(), "each question is asked once");
    let statuses = client.take_notifications("notifications/tasks/status");
    let statuses: Vec<&str> = statuses.iter().filter_map(|told| told["params"]["status"].as_str()).collect();
    assert_eq!(statuses, ["input_required", "input_required", "completed"]);
}

#[tokio::test(start_paused = true)]
async fn what_one_tasks_result_gave_up_another_asks() {
    let server = interviewer();
    let mut client = client(&server, SESSION).await;
    let task = create(&mut client, SESSION, "interview", json!({})).await;
    let params = json!({ "taskId": task["taskId"] });
    let first = client.request("tasks/result", params.clone()).await;
    client.question().await;
    client.question().await;
    let second = client.request("tasks/result", params).await;
    idle().await;
    client.cancel(first).await;
    for _ in 0..3 {
        let question = client.question().await;
        client.reply(&question, accept_all(&question)).await;
    }
    assert_eq!(text(&client.answer(second).await["result"]), "true true true");
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_the_work() {
    for revision in BOTH {
        let gate = Gate::new();
        let server = gated(&gate, TaskSupport::Optional);
        let mut client = client(&server, revision).await;
        let task = create(&mut client, revision, "gate", json!({})).await;
        let params = json!({ "taskId": task["taskId"] });
        idle().await;
        let waiting = match revision {
            SESSION => Some(client.request("tasks/result", params.clone()).await),
            _ => None,
        };
        let cancelled = client.result("tasks/cancel", params.clone()).await;
        if revision == SESSION {
            assert_eq!(cancelled["status"], "cancelled");
        } else {
            assert!(cancelled["resultType"] == "complete" && cancelled.get("status").is_none());
        }
        idle().await;
        assert_eq!((gate.begun(), gate.stopped.load(Ordering::SeqCst)), (1, 1), "its handler was dropped");
        gate.let_through(1);
        idle().await;
        let task = get(&mut client, &params["taskId"]).await;
        assert_eq!(task["status"], "cancelled");
        if let Some(waiting) = waiting {
            let answer = client.answer(waiting).await;
            assert!(answer["error"]["message"].as_str().unwrap().contains("cancelled"), "{answer}");
            let again = client.error("tasks/cancel", params).await;
            assert_eq!(again["code"], -32602);
            assert!(again["message"].as_str().unwrap().contains("cancelled already"), "{again}");
        } else {
            client.result("tasks/cancel", params).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_belongs_to_its_principal() {
    use refmcp_testkit::client::Pair;
    let gate = Gate::new();
    let server = gated(&gate, TaskSupport::Optional);
    let mut ann = Pair::of(&server, "ann").start(SESSION).await;
    let params = json!({ "name": "gate", "arguments": {}, "task": {} });
    let task = ann.client.result("tools/call", params).await["task"].take();
    let id = json!({ "taskId": task["taskId"] });
    let mut bob = Pair::of(&server, "bob").start(SESSION).await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let foreign = bob.client.error(method, id.clone()).await;
        assert_eq!(foreign["code"], -32602);
        let known = foreign["message"].as_str().unwrap().replace(task["taskId"].as_str().unwrap(), "x");
        let absent = bob.client.error(method, json!({ "taskId": "x" })).await;
        assert_eq!(absent["message"], known.as_str(), "one cannot be told from the other");
    }
    assert_eq!(bob.client.list("tasks").await, Vec::<Value>::new());
    // It outlives the session, and another one of the same principal finds it.
    drop(ann);
    idle().await;
    let mut again = Pair::of(&server, "ann").start(SESSION).await;
    gate.let_through(1);
    assert_eq!(text(&again.client.result("tasks/result", id).await), "through");
    assert_eq!(again.client.list("tasks").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn tasks_are_listed_page_by_page() {
    let gate = Gate::new();
    let builder = Server::builder("test", "1").page_size(2).tool(gate.tool().task(TaskSupport::Optional));
    let server = builder.build().unwrap();
    let mut client = client(&server, SESSION).await;
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(create(&mut client, SESSION, "gate", json!({})).await["taskId"].take());
    }
    let listed = client.list("tasks").await;
    assert_eq!(listed.iter().map(|task| task["taskId"].clone()).collect::<Vec<_>>(), made);
    let error = client.error("tasks/list", json!({ "cursor": "made up" })).await;
    assert_eq!(error["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn a_task_expires() {
    let gate = Gate::new();
    let options = TaskOptions::default().ttl(Duration::from_secs(60)).max_ttl(Duration::from_secs(100));
    let builder = Server::builder("test", "1").tasks(options).tool(gate.tool().task(TaskSupport::Optional));
    let server = builder.build().unwrap();
    let mut client = client(&server, SESSION).await;
    for (asked, granted) in
        [(json!({ "ttl": 30_000 }), 30_000), (json!({ "ttl": 9e9 as u64 }), 100_000), (json!({}), 60_000)]
    {
        let params = json!({ "name": "gate", "arguments": {}, "task": asked });
        let task = client.result("tools/call", params).await["task"].take();
        assert_eq!(task["ttl"], granted);
        tokio::time::sleep(Duration::from_millis(granted - 100)).await;
        assert_eq!(get(&mut client, &task["taskId"]).await["status"], "working");
        tokio::time::sleep(Duration::from_millis(200)).await;
        let error = client.error("tasks/get", json!({ "taskId": task["taskId"] })).await;
        assert!(error["message"].as_str().unwrap().contains("expired"), "{error}");
    }
    idle().await;
    assert_eq!(gate.stopped.load(Ordering::SeqCst), 3, "nothing runs any more");
}

#[tokio::test(start_paused = true)]
async fn failures_end_a_task() {
    async fn fail(_: Call, _: NoArguments) -> Result<String, CallError> {
        Err(CallError::new("no disk"))
    }
    async fn refuse(_: Call, _: NoArguments) -> Result<String, CallError> {
        Err(RpcError::invalid_params("not so").into())
    }
    async fn burst(_: Call, _: NoArguments) -> Result<String, CallError> {
        panic!("on purpose")
    }
    let tools = [Tool::new("fail", "", fail), Tool::new("refuse", "", refuse), Tool::new("burst", "", burst)];
    let server = server(tools.map(|tool| tool.task(TaskSupport::Optional)));
    for revision in BOTH {
        let mut client = client(&server, revision).await;
        let session = revision == SESSION;
        for (tool, status) in [
            ("fail", if session { "failed" } else { "completed" }),
            ("refuse", "failed"),
            ("burst", "failed"),
        ] {
            let task = create(&mut client, revision, tool, json!({})).await;
            let over = until(&mut client, &task["taskId"], status).await;
            assert!(over["statusMessage"].is_string(), "{tool}: {over}");
            if session {
                let answer = client.call("tasks/result", json!({ "taskId": task["taskId"] })).await;
                let is_result = tool == "fail";
                assert_eq!(answer.get("result").is_some(), is_result, "{answer}");
                assert!(!is_result || answer["result"]["isError"] == true);
            } else {
                assert_eq!(over.get("error").is_some(), status == "failed");
                assert!(status == "failed" || over["result"]["isError"] == true, "{over}");
            }
        }
        let bad = json!({ "name": "fail", "arguments": { "more": 1 }, "task": {} });
        let answer = client.call("tools/call", bad).await;
        assert!(
            answer["result"].get("task").is_none() && answer["result"].get("taskId").is_none(),
            "{answer}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_says_where_its_task_begins() {
    async fn later(call: Call, _: NoArguments) -> Result<String, CallError> {
        let runs = call.once("runs", async { Ok(1) }).await?;
        let sure = call.confirm("sure", "Begin?")?;
        call.start_task()?;
        let also = call.confirm("also", "Go on?")?;
        Ok(format!("{runs} {sure} {also} {}", call.is_task()))
    }
    let tool = Tool::new("later", "", later).task(TaskSupport::Required).starts_task_itself();
    let server = server([tool]);
    let mut client = client(&server, STATELESS).await;
    let asked = client.tool("later", json!({})).await;
    assert_eq!(asked["resultType"], "input_required");
    let yes = json!({ "action": "accept", "content": { "confirm": true } });
    let params = json!({
        "name": "later", "arguments": {}, "requestState": asked["requestState"], "inputResponses": { "sure": yes }
    });
    let task = client.result("tools/call", params).await;
    assert!(task["resultType"] == "task" && task.get("requestState").is_none(), "{task}");
    let asking = until(&mut client, &task["taskId"], "input_required").await;
    assert_eq!(asking["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["also"]);
    let update = json!({ "taskId": task["taskId"], "inputResponses": { "also": yes } });
    client.result("tasks/update", update).await;
    let done = until(&mut client, &task["taskId"], "completed").await;
    assert_eq!(text(&done["result"]), "1 true true true");
}

#[tokio::test]
async fn requests_about_tasks_declare_the_extension() {
    let gate = Gate::new();
    let server = gated(&gate, TaskSupport::Optional);
    let mut undeclared = TestClient::open(&server, STATELESS).await;
    for (method, params) in [
        ("tasks/get", json!({ "taskId": "x" })),
        ("tasks/cancel", json!({ "taskId": "x" })),
        ("tasks/update", json!({ "taskId": "x", "inputResponses": {} })),
        ("tasks/get", json!({})),
        ("subscriptions/listen", json!({ "notifications": { "taskIds": ["x"] } })),
    ] {
        assert_eq!(undeclared.error(method, params).await["code"], -32021, "{method}");
    }
    for method in ["tasks/result", "tasks/list"] {
        assert_eq!(undeclared.error(method, json!({})).await["code"], -32601, "{method}");
    }
    let mut declared = client(&server, STATELESS).await;
    for (method, params) in [
        ("tasks/get", json!({ "taskId": "x" })),
        ("tasks/get", json!({})),
        ("tasks/get", json!({ "taskId": 7 })),
        ("tasks/cancel", json!({ "taskId": "x" })),
        ("tasks/update", json!({ "taskId": "x", "inputResponses": {} })),
        ("tasks/update", json!({ "taskId": "x", "inputResponses": [] })),
    ] {
        assert_eq!(declared.error(method, params).await["code"], -32602, "{method}");
    }
    let mut session = client(&server, SESSION).await;
    assert_eq!(session.error("tasks/update", json!({})).await["code"], -32601);
}

#[tokio::test(start_paused = true)]
async fn listeners_hear_of_their_tasks_alone() {
    let gate = Gate::new();
    let server = gated(&gate, TaskSupport::Optional);
    let mut client = client(&server, STATELESS).await;
    let task = create(&mut client, STATELESS, "gate", json!({})).await;
    let other = create(&mut client, STATELESS, "gate", json!({})).await;
    let ids = json!([task["taskId"], "x"]);
    client.request("subscriptions/listen", json!({ "notifications": { "taskIds": ids } })).await;
    let acknowledged = client.notification("notifications/subscriptions/acknowledged").await;
    assert_eq!(acknowledged["params"]["notifications"], json!({ "taskIds": ids }));
    gate.let_through(2);
    until(&mut client, &other["taskId"], "completed").await;
    let done = until(&mut client, &task["taskId"], "completed").await;
    idle().await;
    client.catch_up().await;
    let told = client.take_notifications("notifications/tasks");
    assert!(told.iter().all(|told| told["params"]["taskId"] == task["taskId"]), "{told:?}");
    let last = &told.last().unwrap()["params"];
    assert_eq!((&last["status"], &last["result"]), (&done["status"], &done["result"]), "what tasks/get says");
    assert!(last["_meta"]["io.modelcontextprotocol/subscriptionId"].is_number());
}

#[tokio::test(start_paused = true)]
async fn a_task_of_2025_11_25_reports_progress_and_log_messages() {
    async fn work(call: Call, _: NoArguments) -> Result<String, CallError> {
        call.progress(1.0, Some(2.0), "one").await;
        call.log(refmcp_server::model::LogLevel::Warning, "work", "careful").await;
        call.progress(1.0, None, "not more").await;
        call.progress(2.0, None, "two").await;
        Ok("done".to_owned())
    }
    let server = server([Tool::new("work", "", work).task(TaskSupport::Optional)]);
    let mut client = client(&server, SESSION).await;
    let params = json!({ "name": "work", "arguments": {}, "task": {}, "_meta": { "progressToken": "p" } });
    let task = client.result("tools/call", params).await["task"].take();
    until(&mut client, &task["taskId"], "completed").await;
    let progress = client.take_notifications("notifications/progress");
    assert_eq!(progress.iter().map(|told| &told["params"]["progress"]).collect::<Vec<_>>(), [1, 2]);
    let logs = client.take_notifications("notifications/message");
    for told in progress.iter().chain(&logs) {
        assert_eq!(told["params"]["_meta"][RELATED], json!({ "taskId": task["taskId"] }), "{told}");
    }
    assert_eq!(logs.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn tasks_have_limits() {
    let gate = Gate::new();
    let server = gated(&gate, TaskSupport::Optional);
    let settings = BackplaneSettings { owner_tasks: 2, owner_task_bytes: 1 << 20, ..Default::default() };
    server.use_backplane(Arc::new(MemoryBackplane::new(settings)));
    let mut client = client(&server, STATELESS).await;
    create(&mut client, STATELESS, "gate", json!({})).await;
    create(&mut client, STATELESS, "gate", json!({})).await;
    let error = client.error("tools/call", json!({ "name": "gate", "arguments": {} })).await;
    assert!(error["message"].as_str().unwrap().contains("no more tasks"), "{error}");
    assert_eq!(text(&client.tool("plain", json!({})).await), "plain");
}

#[tokio::test(start_paused = true)]
async fn a_result_that_cannot_be_kept_is_an_error() {
    async fn large(_: Call, _: NoArguments) -> Result<String, CallError> {
        Ok("x".repeat(100_000))
    }
    let server = server([Tool::new("large", "", large).task(TaskSupport::Optional)]);
    let settings = BackplaneSettings { owner_task_bytes: 50_000, ..Default::default() };
    server.use_backplane(Arc::new(MemoryBackplane::new(settings)));
    let mut client = client(&server, STATELESS).await;
    let task = create(&mut client, STATELESS, "large", json!({})).await;
    let failed = until(&mut client, &task["taskId"], "failed").await;
    assert!(failed["error"]["message"].as_str().unwrap().contains("larger than"), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn waiting_for_results_takes_no_turn() {
    let gate = Gate::new();
    let runs = Arc::new(AtomicUsize::new(0));
    let builder = Server::builder("test", "1").max_running(2).tool(gate.tool().task(TaskSupport::Optional));
    let server = builder.tool(named("plain")).build().unwrap();
    let mut client = client(&server, SESSION).await;
    let task = create(&mut client, SESSION, "gate", json!({})).await;
    let mut waiting = Vec::new();
    for _ in 0..20 {
        waiting.push(client.request("tasks/result", json!({ "taskId": task["taskId"] })).await);
    }
    idle().await;
    assert_eq!(text(&client.tool("plain", json!({})).await), "plain");
    gate.let_through(1);
    for id in waiting {
        assert_eq!(text(&client.answer(id).await["result"]), "through");
        runs.fetch_add(1, Ordering::SeqCst);
    }
    assert_eq!(runs.load(Ordering::SeqCst), 20);
}

#[tokio::test(start_paused = true)]
async fn finished_tasks_take_bounded_memory() {
    let server = server([named("plain").task(TaskSupport::Optional)]);
    let memory = Arc::new(MemoryBackplane::default());
    server.use_backplane(memory.clone());
    let mut client = client(&server, STATELESS).await;
    for _ in 0..200 {
        create(&mut client, STATELESS, "plain", json!({})).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (count, bytes) = memory.kept_tasks();
    assert_eq!(count, 200);
    assert!(bytes / count <= 1536, "{} bytes for each", bytes / count);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    memory.sweep().await.unwrap();
    assert_eq!(memory.kept_tasks(), (0, 0));
}
