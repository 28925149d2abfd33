//! Tools whose calls become tasks, in both kinds of tasks.

use std::time::Duration;

use refmcp_server::Server;
use serde_json::{Value, json};

use crate::client::{Client, SESSION, STATELESS, everything, server};

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A client that has tasks, of the kind of its revision.
async fn client(server: &Server, revision: &str) -> Client {
    let mut capabilities = everything();
    if revision == STATELESS {
        capabilities["extensions"] = json!({ TASKS: {} });
    }
    Client::with(server, revision, capabilities).await
}

/// Calls a tool as a task; gives its id.
async fn create(client: &mut Client, revision: &str, tool: &str, arguments: Value) -> Value {
    let mut params = json!({ "name": tool, "arguments": arguments });
    if revision == SESSION {
        params["task"] = json!({});
        return client.result("tools/call", params).await["task"]["taskId"].take();
    }
    let mut task = client.result("tools/call", params).await;
    assert_eq!(task["resultType"], "task", "{task}");
    task["taskId"].take()
}

/// Follows a task to its end, and answers what it asks; gives its last state and its result.
async fn follow(client: &mut Client, revision: &str, id: &Value) -> (Value, Value) {
    loop {
        let task = client.result("tasks/get", json!({ "taskId": id })).await;
        match task["status"].as_str().unwrap() {
            "working" => tokio::time::sleep(Duration::from_millis(100)).await,
            "input_required" if revision == STATELESS => {
                let requests = task["inputRequests"].as_object().unwrap();
                let responses: serde_json::Map<String, Value> =
                    requests.iter().map(|(key, request)| (key.clone(), client.reaction(request))).collect();
                client.result("tasks/update", json!({ "taskId": id, "inputResponses": responses })).await;
            }
            "input_required" => {
                client.request("tasks/result", json!({ "taskId": id })).await;
            }
            _ if revision == STATELESS => {
                let result = task["result"].clone();
                return (task, result);
            }
            _ => {
                let answer = client.request("tasks/result", json!({ "taskId": id })).await;
                return (task, answer["result"].clone());
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn research_asks_and_reports() {
    let server = server();
    for revision in [SESSION, STATELESS] {
        let mut client = client(&server, revision).await;
        let id = create(&mut client, revision, "research", json!({ "topic": "Tides" })).await;
        let (task, result) = follow(&mut client, revision, &id).await;
        assert_eq!((&task["status"], &result["isError"]), (&json!("completed"), &json!(false)), "{task}");
        let report = &result["structuredContent"];
        assert_eq!(report["topic"], "Tides");
        assert_ne!(report["focus"], "everything", "the user was asked: {report}");
        // A call that does not become a task asks the same, and says the same.
        let mut plain = Client::new(&server, revision).await;
        let called = plain.call("research", json!({ "topic": "Tides", "stage_ms": 1 })).await;
        assert_eq!(called["structuredContent"], *report);
        let unasked = plain.call("research", json!({ "topic": "Tides", "stage_ms": 1, "ask": false })).await;
        assert_eq!(unasked["structuredContent"]["focus"], "everything");
    }
}

#[tokio::test(start_paused = true)]
async fn fixtures_end_as_they_say() {
    let server = server();
    for revision in [SESSION, STATELESS] {
        let mut client = client(&server, revision).await;
        for (tool, arguments, status, text) in [
            ("slow_compute", json!({ "seconds": 2, "label": "it" }), "completed", "it computed in 2 s"),
            ("failing_job", json!({}), "failing", "the job failed on purpose"),
            ("confirm_delete", json!({ "filename": "f" }), "completed", "f would be deleted now"),
            ("multi_input", json!({}), "completed", "Hello, "),
        ] {
            let id = create(&mut client, revision, tool, arguments).await;
            let (task, result) = follow(&mut client, revision, &id).await;
            let expected = match status {
                "failing" if revision == SESSION => "failed",
                "failing" => "completed",
                status => status,
            };
            assert_eq!(task["status"], expected, "{revision} {tool}: {task}");
            assert!(result["content"][0]["text"].as_str().unwrap().starts_with(text), "{tool}: {result}");
        }
        let id = create(&mut client, revision, "protocol_error_job", json!({})).await;
        let (task, _) = follow(&mut client, revision, &id).await;
        assert_eq!(task["status"], "failed");
        assert_eq!(client.call("greet", json!({ "name": "Ann" })).await["content"][0]["text"], "Hello, Ann!");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_begins_after_its_input() {
    let mut client = client(&server(), STATELESS).await;
    let mut task = client.result("tools/call", json!({ "name": "test_tool_with_task" })).await;
    assert_eq!(client.asked.len(), 1, "the name was asked before there was a task");
    assert_eq!(task["resultType"], "task");
    let (_, result) = follow(&mut client, STATELESS, &task["taskId"].take()).await;
    assert!(result["content"][0]["text"].as_str().unwrap().starts_with("Hello, "), "{result}");
}

#[tokio::test]
async fn tools_that_need_a_task_say_so() {
    let server = server();
    let mut session = Client::new(&server, SESSION).await;
    let mut stateless = Client::new(&server, STATELESS).await;
    for tool in ["failing_job", "test_tool_with_task"] {
        assert_eq!(session.error("tools/call", json!({ "name": tool })).await["code"], -32601);
        let error = stateless.error("tools/call", json!({ "name": tool })).await;
        assert_eq!(error["data"]["requiredCapabilities"]["extensions"], json!({ TASKS: {} }), "{error}");
    }
}
