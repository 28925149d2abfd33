//! Calls that become tasks, of both kinds: by a plain call, by a handle, and again after a restart.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use refmcp_client::memory::Memory;
use refmcp_client::model::{CallToolResult, ContentBlock, ElicitResult, JsonObject, TaskStatus, TaskSupport};
use refmcp_client::{
    CallError, Client, Error, Event, Host, Revision, StartedCall, TaskHandle, VersionPolicy,
};
use refmcp_testkit::refmcp_server::{Call, NoArguments, Server, Tool};
use serde_json::{Value, json};

use crate::fixture::{client_of, client_of_script, server_builder};

const KINDS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

/// A server with tools that become tasks.
fn server() -> Server {
    let work = Tool::new("work", "Works for a minute", |call: Call, _: NoArguments| async move {
        call.progress(1.0, Some(2.0), "half").await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok("worked")
    });
    let sure = Tool::new("sure", "Asks", |call: Call, _: NoArguments| async move {
        Ok(format!("sure: {}", call.confirm("sure", "Sure?")?))
    });
    server_builder()
        .tool(work.task(TaskSupport::Required))
        .tool(sure.task(TaskSupport::Optional))
        .build()
        .unwrap()
}

fn text(result: &CallToolResult) -> &str {
    match &result.content[..] {
        [ContentBlock::Text(text)] => &text.text,
        other => panic!("{other:?}"),
    }
}

async fn begun(client: &Client, tool: &str) -> TaskHandle<CallToolResult> {
    match client.call_tool(tool, json!({})).as_task().await.unwrap() {
        StartedCall::Task(task) => *task,
        StartedCall::Complete(result) => panic!("{result:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_plain_call_of_a_tool_that_demands_a_task_just_works() {
    for revision in KINDS {
        for listed in [false, true] {
            let (client, _) = client_of(&server(), revision).await;
            if listed {
                client.list_tools().await.unwrap();
            }
            let told: Arc<Mutex<Vec<Option<String>>>> = Arc::default();
            let listener = told.clone();
            let call = client.call_tool("work", json!({}));
            let call =
                call.on_task_status(move |task| listener.lock().unwrap().push(task.status_message.clone()));
            let result = call.await.unwrap();
            assert_eq!(text(&result), "worked", "{revision}");
            assert!(told.lock().unwrap().contains(&Some("half".to_owned())), "{revision}: {told:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_host_responds_to_what_a_task_asks() {
    for revision in KINDS {
        let (client, _) = client_of(&server(), revision).await;
        let result = client.call_tool("sure", json!({})).await.unwrap();
        assert_eq!(text(&result), "sure: true");
        let result = begun(&client, "sure").await.result().await.unwrap();
        assert_eq!(text(&result), "sure: true");
        // The input of one task can be given by a function of its own.
        let task = begun(&client, "sure").await;
        let result = task.on_request(|_| async { Ok(json!({ "action": "decline" })) }).result().await;
        assert!(!text(&result.unwrap()).contains("true"), "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_goes_on_without_its_client() {
    for revision in KINDS {
        let server = server();
        let (client, _) = client_of(&server, revision).await;
        let id = begun(&client, "work").await.id().to_owned();
        client.close().await;

        let (client, _) = client_of(&server, revision).await;
        let task = client.task(&id);
        assert_eq!(task.get().await.unwrap().status, TaskStatus::Working);
        let mut statuses = client.task(&id).follow();
        let mut seen = Vec::new();
        while let Some(task) = statuses.next().await {
            seen.push(task.status);
        }
        assert_eq!(seen.last(), Some(&TaskStatus::Completed), "{revision}: {seen:?}");
        assert_eq!(text(&statuses.result().await.unwrap()), "worked");
        assert_eq!(text(&task.result().await.unwrap()), "worked", "it can be had again");
        let listed = client.list_tasks().await;
        assert_eq!(listed.is_ok(), revision == Revision::V2025_11_25, "{listed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_a_task_and_dropping_a_plain_call_cancels_its_task() {
    for revision in KINDS {
        let server = server();
        let (client, _) = client_of(&server, revision).await;
        let task = begun(&client, "work").await;
        task.cancel().await.unwrap();
        let ended = task.result().await.unwrap_err();
        assert!(matches!(ended, Error::Call(CallError::TaskCancelled { .. })), "{revision}: {ended}");

        let id: Arc<Mutex<Option<String>>> = Arc::default();
        let told = id.clone();
        let call = client.call_tool("work", json!({}));
        let call = call.on_task_status(move |task| *told.lock().unwrap() = Some(task.task_id.clone()));
        assert!(tokio::time::timeout(Duration::from_secs(5), call).await.is_err());
        let id = id.lock().unwrap().clone().unwrap();
        assert_eq!(client.task(id).get().await.unwrap().status, TaskStatus::Cancelled, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_task_is_said_to_be_unknown() {
    for revision in KINDS {
        let (client, _) = client_of(&server(), revision).await;
        let task = client.task("never");
        let is_unknown = |error: &Error| matches!(error, Error::Call(CallError::UnknownTask { task, .. }) if task == "never");
        for error in [task.get().await.unwrap_err(), task.result().await.unwrap_err()] {
            assert!(is_unknown(&error), "{revision}: {error}");
        }
        // A task that has ended cannot be cancelled in 2025-11-25, which is the same error: the server's words tell.
        let error = task.cancel().await.unwrap_err();
        assert_eq!(is_unknown(&error), revision == Revision::V2026_07_28, "{revision}: {error}");
        assert!(error.to_string().contains("never"), "{revision}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_become_a_task_is_complete() {
    for revision in KINDS {
        let (client, _) = client_of(&server(), revision).await;
        let started = client.call_tool("echo", json!({ "message": "m" })).as_task().await.unwrap();
        assert!(matches!(&started, StartedCall::Complete(result) if text(result) == "m"), "{started:?}");
    }
    // Without tasks, the server of the newest revision makes none where it has the choice.
    let host = Host::new().without_tasks().elicitation(|_| async {
        let confirmed = JsonObject::from_iter([("confirm".to_owned(), json!(true))]);
        Ok(ElicitResult::accept(confirmed))
    });
    let builder = Client::builder("test", "1").host(host);
    let builder = builder.version_policy(VersionPolicy::Exactly(Revision::V2026_07_28));
    let client = builder.connect(Memory::new(server().in_memory())).await.unwrap();
    let started = client.call_tool("sure", json!({})).as_task().await.unwrap();
    assert!(matches!(started, StartedCall::Complete(_)), "{started:?}");
    let refused = client.call_tool("work", json!({})).await.unwrap_err();
    assert_eq!(refused.rpc().unwrap().code, -32021);
}

#[tokio::test(start_paused = true)]
async fn a_raw_call_gives_the_task_itself() {
    let (client, _) = client_of(&server(), Revision::V2026_07_28).await;
    let params = json!({ "name": "work", "arguments": {} });
    let Value::Object(params) = params else { unreachable!() };
    let created = client.raw("tools/call", params).await.unwrap();
    assert_eq!(created["resultType"], "task");
}

#[tokio::test(start_paused = true)]
async fn a_failed_call_of_an_unlisted_tool_is_not_repeated_where_no_task_is_demanded() {
    let (client, mut script, events) = client_of_script().await;
    let call = tokio::spawn(async move { client.call_tool("t", json!({})).await });
    let error = json!({ "isError": true, "content": [] });
    script.answer("tools/call", error).await;
    assert_eq!(call.await.unwrap().unwrap().is_error, Some(true));
    assert!(!events.lock().unwrap().iter().any(|event| matches!(event, Event::Finding(_))));
}
