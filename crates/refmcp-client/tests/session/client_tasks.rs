//! Requests of a server that the client runs as tasks (2025-11-25): the library of each side against that of the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use refmcp_client::memory::Memory;
use refmcp_client::model::{
    CallToolResult, CreateMessageParams, CreateMessageResult, ElicitFormParams, ElicitResult,
    ElicitUrlParams, FormSchema, SamplingMessage, TaskSupport,
};
use refmcp_client::{Client, Host, Revision, RpcError, VersionPolicy};
use refmcp_testkit::audit::{Role, fatal_audit};
use refmcp_testkit::refmcp_server::{
    Call, CallError, ElicitOutcome, NoArguments, Server, ServerRequest, ServerRequestError, Tool,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::fixture::{client_of, client_of_script, server_builder};

const SESSIONS: [Revision; 2] = [Revision::V2025_06_18, Revision::V2025_11_25];

fn sampling() -> ServerRequest<CreateMessageResult> {
    ServerRequest::from(CreateMessageParams::new(vec![SamplingMessage::user("Write a novel.")], 10))
        .as_task(None)
}

fn form() -> ServerRequest<ElicitOutcome> {
    ServerRequest::from(ElicitFormParams::new("Who?", FormSchema::new()))
        .as_task(Some(Duration::from_secs(600)))
}

/// A server whose tools ask by tasks.
fn server() -> Server {
    let sample = Tool::new("sample", "Samples", |call: Call, _: NoArguments| async move {
        Ok(format!("{:?}", call.request("novel", sampling())?))
    });
    let both = Tool::new("both", "Samples and asks", |call: Call, _: NoArguments| async move {
        let (novel, who) = (call.request("novel", sampling()), call.request("who", form()));
        let (novel, who) = (novel?, who?);
        Ok(format!("{novel:?} {who:?}"))
    });
    let visit = Tool::new("visit", "Asks to visit a page", |call: Call, _: NoArguments| async move {
        let page = ServerRequest::from(ElicitUrlParams::new("Pay!", "https://example.com/pay")).as_task(None);
        Ok(format!("{:?}", call.request("page", page)?))
    });
    let refused = Tool::new("refused", "Tells why", |call: Call, _: NoArguments| async move {
        match call.request("who", form()) {
            Err(ServerRequestError::Pending) => Err(CallError::from(ServerRequestError::Pending)),
            other => Ok(format!("{other:?}")),
        }
    });
    let outside = Tool::new("outside", "Asks in the session", |call: Call, _: NoArguments| async move {
        let session = call.session().ok_or_else(|| CallError::new("no session"))?;
        Ok(format!("{:?}", session.request(form()).await?))
    });
    let builder = server_builder().tool(sample).tool(both.task(TaskSupport::Optional));
    builder.tool(visit).tool(refused).tool(outside).build().unwrap()
}

async fn with_host(host: Host, revision: Revision) -> Client {
    let builder = Client::builder("test", "1").host(host).observer(fatal_audit(Role::Client));
    let builder = builder.version_policy(VersionPolicy::Exactly(revision));
    builder.connect(Memory::new(server().in_memory())).await.unwrap()
}

fn text(result: &CallToolResult) -> String {
    serde_json::to_value(&result.content).unwrap()[0]["text"].as_str().unwrap().to_owned()
}

async fn call(client: &Client, tool: &str) -> String {
    text(&client.call_tool(tool, json!({})).await.unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_handler_gets_what_it_asks_for_by_a_task_or_without() {
    for revision in SESSIONS {
        let (client, _) = client_of(&server(), revision).await;
        assert!(call(&client, "sample").await.contains("something"), "{revision}");
        let both = call(&client, "both").await;
        assert!(both.contains("something") && both.contains("Accepted"), "{revision}: {both}");
        assert!(call(&client, "outside").await.contains("Accepted"), "{revision}");
    }
    let host = Host::new().without_tasks().elicitation_defaults();
    let client = with_host(host, Revision::V2025_11_25).await;
    assert!(call(&client, "refused").await.contains("Accepted"));
}

#[tokio::test(start_paused = true)]
async fn what_takes_long_is_waited_for() {
    let host = Host::new()
        .sampling(|_| async {
            tokio::time::sleep(Duration::from_secs(300)).await;
            Ok(CreateMessageResult::text("a model", "a novel"))
        })
        .url_elicitation(|_| async {
            tokio::time::sleep(Duration::from_secs(30)).await;
            Ok(ElicitResult::accept(serde_json::Map::new()))
        });
    let client = with_host(host, Revision::V2025_11_25).await;
    assert!(call(&client, "sample").await.contains("a novel"));
    assert!(call(&client, "visit").await.contains("Accepted"));
}

#[tokio::test(start_paused = true)]
async fn what_fails_in_the_host_is_told_to_the_handler() {
    let host = Host::new().elicitation(|_| async { Err(RpcError::new(-1, "no person is here")) });
    let client = with_host(host, Revision::V2025_11_25).await;
    assert!(call(&client, "refused").await.contains("no person is here"));
    let host = Host::new().elicitation(|_| async { panic!("the form is broken") });
    let client = with_host(host, Revision::V2025_11_25).await;
    assert!(call(&client, "refused").await.contains("the application failed"));
}

#[tokio::test(start_paused = true)]
async fn a_task_of_the_server_asks_by_a_task_of_the_client() {
    let (client, _) = client_of(&server(), Revision::V2025_11_25).await;
    let started = client.call_tool("both", json!({})).as_task().await.unwrap();
    let refmcp_client::StartedCall::Task(task) = started else { panic!("{started:?}") };
    let result = task.result().await.unwrap();
    assert!(text(&result).contains("Accepted"), "{result:?}");
}

/// Counts the forms that are open.
struct Open(Arc<AtomicUsize>);

impl Open {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn a_form_is_taken_away_with_the_call() {
    let (open, shown) = (Arc::<AtomicUsize>::default(), Arc::new(Notify::new()));
    let (count, tell) = (open.clone(), shown.clone());
    let host = Host::new().elicitation(move |_| {
        let (form, tell) = (Open::new(&count), tell.clone());
        async move {
            tell.notify_one();
            std::future::pending::<()>().await;
            drop(form);
            Ok(ElicitResult::accept(serde_json::Map::new()))
        }
    });
    let client = with_host(host, Revision::V2025_11_25).await;
    let calling = tokio::spawn({
        let client = client.clone();
        async move { call(&client, "refused").await }
    });
    shown.notified().await;
    assert_eq!(open.load(Ordering::SeqCst), 1);
    calling.abort();
    while open.load(Ordering::SeqCst) > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    // The same when the connection ends.
    let calling = tokio::spawn({
        let client = client.clone();
        async move { client.call_tool("refused", json!({})).await }
    });
    shown.notified().await;
    client.close().await;
    while open.load(Ordering::SeqCst) > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    calling.await.unwrap().unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn ids_cannot_be_guessed_and_limits_are_the_applications() {
    let (client, mut script, _) = client_of_script().await;
    let mut ids = Vec::new();
    for id in 0..3 {
        let params = json!({ "messages": [], "maxTokens": 1, "task": { "ttl": 5000 } });
        script.say(json!({ "id": id, "method": "sampling/createMessage", "params": params })).await;
        loop {
            let message = script.next().await.unwrap();
            if message["id"] == id {
                let task = &message["result"]["task"];
                assert_eq!(task["ttl"], 5000);
                ids.push(task["taskId"].as_str().unwrap().to_owned());
                break;
            }
            assert_eq!(message["method"], "notifications/tasks/status");
        }
    }
    assert!(ids.iter().all(|id| id.len() == 36), "{ids:?}");
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2], "{ids:?}");
    client.close().await;

    let builder = Client::builder("test", "1")
        .host(Host::new().elicitation_defaults())
        .version_policy(VersionPolicy::Legacy)
        .client_tasks(|tasks| tasks.max_tasks = 0);
    let (mut script, memory) = crate::fixture::Script::new();
    let (client, ()) = tokio::join!(builder.connect(memory), script.open("2025-11-25"));
    let _client = client.unwrap();
    let schema = json!({ "type": "object", "properties": {} });
    let params = json!({ "message": "m", "requestedSchema": schema, "task": {} });
    script.say(json!({ "id": 1, "method": "elicitation/create", "params": params })).await;
    let refused: Value = script.next().await.unwrap();
    assert_eq!(refused["error"]["code"], -32603);
}
