//! Tasks, and what the specification says of their messages: which of them name the task, and which are not sent at all.

use std::time::Duration;

use refmcp_server::model::{LogLevel, TaskSupport};
use refmcp_server::{Call, CallError, NoArguments, Revision, Server, Tool};
use refmcp_testkit::client::TestClient;
use serde_json::{Value, json};

use crate::support::{BOTH, Gate, SESSION, STATELESS, idle, server};

const TASKS: &str = "io.modelcontextprotocol/tasks";
const RELATED: &str = "io.modelcontextprotocol/related-task";

async fn client(server: &Server, revision: Revision) -> TestClient {
    let capabilities = match revision {
        SESSION => json!({ "elicitation": {} }),
        _ => json!({ "elicitation": {}, "extensions": { TASKS: {} } }),
    };
    TestClient::open_with(server, revision, capabilities).await
}

/// Calls a tool as a task; gives parameters that name it.
async fn create(client: &mut TestClient, revision: Revision, tool: &str) -> Value {
    let mut params = json!({ "name": tool, "arguments": {}, "_meta": { "progressToken": "p" } });
    if revision == SESSION {
        params["task"] = json!({});
    } else {
        params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    }
    let created = client.result("tools/call", params).await;
    let task = if revision == SESSION { &created["task"] } else { &created };
    assert_eq!(task["status"], "working", "{created}");
    json!({ "taskId": task["taskId"] })
}

#[tokio::test(start_paused = true)]
async fn a_task_of_2026_07_28_sends_neither_progress_nor_logs() {
    async fn chatty(call: Call, _: NoArguments) -> Result<String, CallError> {
        call.progress(1.0, None, "one").await;
        call.log(LogLevel::Error, "chatty", "careful").await;
        Ok("done".to_owned())
    }
    let server = server([Tool::new("chatty", "", chatty).task(TaskSupport::Optional)]);
    let mut client = client(&server, STATELESS).await;
    let ids = json!([]);
    client.request("subscriptions/listen", json!({ "notifications": { "taskIds": ids } })).await;
    let id = create(&mut client, STATELESS, "chatty").await;
    let filter = json!({ "taskIds": [id["taskId"]] });
    client.request("subscriptions/listen", json!({ "notifications": filter })).await;
    idle().await;
    assert_eq!(client.result("tasks/get", id.clone()).await["status"], "completed");
    client.catch_up().await;
    for method in ["notifications/progress", "notifications/message", "notifications/tasks/status"] {
        assert!(client.take_notifications(method).is_empty(), "{method}");
    }
    let told = client.take_notifications("notifications/tasks");
    assert!(!told.is_empty() && told.iter().all(|told| told["params"]["taskId"] == id["taskId"]), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn messages_that_name_a_task_do_not_name_it_twice() {
    for revision in BOTH {
        let gate = Gate::new();
        let server = server([gate.tool().task(TaskSupport::Optional)]);
        let mut client = client(&server, revision).await;
        let id = create(&mut client, revision, "gate").await;
        let mut results = vec![client.result("tasks/get", id.clone()).await];
        // Where parameters and `_meta` differ, the parameters count.
        let mut twice = id.clone();
        twice["_meta"] = json!({ RELATED: { "taskId": "another" } });
        results.push(client.result("tasks/get", twice.clone()).await);
        assert_eq!(results[0]["taskId"], results[1]["taskId"]);
        if revision == SESSION {
            results.push(client.result("tasks/list", json!({})).await);
        }
        results.push(client.result("tasks/cancel", twice).await);
        for result in results {
            assert!(!result.to_string().contains(RELATED), "{result}");
        }
        for told in client.take_notifications("notifications/tasks/status") {
            assert!(!told.to_string().contains(RELATED), "{told}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn progress_ends_with_its_task() {
    async fn endless(call: Call, _: NoArguments) -> Result<String, CallError> {
        for step in 1..u32::MAX {
            call.progress(f64::from(step), None, "on").await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(String::new())
    }
    let server = server([Tool::new("endless", "", endless).task(TaskSupport::Optional)]);
    let mut client = client(&server, SESSION).await;
    let id = create(&mut client, SESSION, "endless").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    client.result("tasks/cancel", id.clone()).await;
    client.catch_up().await;
    let before = client.take_notifications("notifications/progress");
    assert!(!before.is_empty());
    for told in before {
        assert_eq!(told["params"]["progressToken"], "p");
        assert_eq!(told["params"]["_meta"][RELATED], id);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    client.catch_up().await;
    assert!(client.take_notifications("notifications/progress").is_empty());
}

#[tokio::test(start_paused = true)]
async fn times_of_a_task_are_those_of_its_changes() {
    for revision in BOTH {
        let gate = Gate::new();
        let server = server([gate.tool().task(TaskSupport::Optional)]);
        let mut client = client(&server, revision).await;
        let id = create(&mut client, revision, "gate").await;
        let first = client.result("tasks/get", id.clone()).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        let same = client.result("tasks/get", id.clone()).await;
        let times = |task: &Value| [task["createdAt"].clone(), task["lastUpdatedAt"].clone()];
        assert_eq!(times(&first), times(&same), "polling changes nothing");
        gate.let_through(1);
        idle().await;
        let done = client.result("tasks/get", id).await;
        assert_eq!((&done["status"], &done["createdAt"]), (&json!("completed"), &first["createdAt"]));
        assert!(done["lastUpdatedAt"].as_str() > first["lastUpdatedAt"].as_str(), "{done}");
        let (ttl, interval) =
            if revision == SESSION { ("ttl", "pollInterval") } else { ("ttlMs", "pollIntervalMs") };
        assert!(done[ttl].is_u64() && done[interval].is_u64(), "{done}");
        let others = if revision == SESSION { ["ttlMs", "result"] } else { ["ttl", "inputRequests"] };
        assert!(others.iter().all(|name| done.get(name).is_none()), "{done}");
    }
}
