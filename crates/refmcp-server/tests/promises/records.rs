//! Records of calls: every call, how it ended, and nothing of its arguments.

use std::sync::{Arc, Mutex};

use refmcp_server::model::CallToolResult;
use refmcp_server::{Call, CallError, CallOutcome, NoArguments, Resource, RpcError, Server, Tool};
use refmcp_testkit::client::{Pair, TestClient, accept_all};
use serde_json::{Value, json};

use crate::support::{BOTH, Gate, SESSION, STATELESS, idle};

type Heard = Arc<Mutex<Vec<(String, Option<String>, CallOutcome)>>>;

fn recorded(gate: &Gate) -> (Server, Heard) {
    let heard = Heard::default();
    let hear = heard.clone();
    let tool = |name: &str, outcome: fn() -> Result<CallToolResult, CallError>| {
        Tool::new(name, "Ends", move |_: Call, _: Value| async move { outcome() })
    };
    let server = Server::builder("test", "1")
        .tool(tool("done", || Ok(CallToolResult::text("done"))))
        .tool(tool("done_inline", || Ok(CallToolResult::text("done"))).inline())
        .tool(tool("sorry", || Err(CallError::new("sorry"))))
        .tool(tool("failed", || Err(RpcError::internal("failed").into())))
        .tool(tool("panicked", || panic!("on purpose")))
        .tool(gate.tool())
        .tool(Tool::new("ask", "Asks", |call: Call, _: NoArguments| async move {
            Ok(format!("{}", call.confirm("sure", "?")?))
        }))
        .resource(Resource::new("a://b", "b", |_| async {
            Err::<Vec<_>, _>(CallError::resource_not_found("a://b"))
        }))
        .on_call(move |record| {
            let told = format!("{record:?}");
            assert!(!told.contains("hunter2"), "arguments are not logged: {told}");
            let subject = record.subject.map(str::to_owned);
            hear.lock().unwrap().push((record.method.to_owned(), subject, record.outcome));
        })
        .build()
        .unwrap();
    (server, heard)
}

fn take(heard: &Heard) -> Vec<(String, Option<String>, CallOutcome)> {
    std::mem::take(&mut heard.lock().unwrap())
}

#[tokio::test]
async fn every_ending_is_heard_of() {
    for revision in BOTH {
        let (server, heard) = recorded(&Gate::new());
        let mut client = TestClient::open(&server, revision).await;
        take(&heard);
        for (name, outcome) in [
            ("done", CallOutcome::Done),
            ("done_inline", CallOutcome::Done),
            ("sorry", CallOutcome::ToolError),
            ("failed", CallOutcome::Failed),
            ("panicked", CallOutcome::Failed),
        ] {
            client.call("tools/call", json!({ "name": name, "arguments": { "password": "hunter2" } })).await;
            assert_eq!(
                take(&heard),
                [("tools/call".to_owned(), Some(name.to_owned()), outcome)],
                "{revision}"
            );
        }
        client.list("tools").await;
        assert_eq!(take(&heard), [("tools/list".to_owned(), None, CallOutcome::Done)]);
        client.error("resources/read", json!({ "uri": "a://b" })).await;
        assert_eq!(
            take(&heard),
            [("resources/read".to_owned(), Some("a://b".to_owned()), CallOutcome::Failed)]
        );
        client.tool_error("nonsense", json!({})).await;
        assert_eq!(take(&heard).len(), 1, "calls that are refused are calls");
    }
}

#[tokio::test]
async fn requests_without_a_handler_are_heard_of_too() {
    let (server, heard) = recorded(&Gate::new());
    let mut client = TestClient::open(&server, SESSION).await;
    client.call("ping", json!({})).await;
    client.error("no/such/method", json!({})).await;
    let own = |method: &str, outcome| (method.to_owned(), None, outcome);
    let expected = [
        own("initialize", CallOutcome::Done),
        own("ping", CallOutcome::Done),
        own("other", CallOutcome::Failed),
    ];
    assert_eq!(take(&heard), expected);
    TestClient::open(&server, STATELESS).await.call("server/discover", json!({})).await;
    assert_eq!(take(&heard), [own("server/discover", CallOutcome::Done)]);
}

#[tokio::test]
async fn asking_is_an_ending_of_its_own() {
    let (server, heard) = recorded(&Gate::new());
    let mut client = TestClient::open(&server, SESSION).await;
    take(&heard);
    let id = client.start_tool("ask", json!({})).await;
    let question = client.question().await;
    client.reply(&question, accept_all(&question)).await;
    client.answer(id).await;
    let endings: Vec<CallOutcome> = take(&heard).into_iter().map(|(_, _, outcome)| outcome).collect();
    assert_eq!(endings, [CallOutcome::InputRequired, CallOutcome::Done]);
    TestClient::open(&server, STATELESS).await.tool("ask", json!({})).await;
    assert_eq!(take(&heard).last().unwrap().2, CallOutcome::InputRequired);
}

#[tokio::test(start_paused = true)]
async fn cancelled_calls_are_heard_of_too() {
    let gate = Gate::new();
    let (server, heard) = recorded(&gate);
    let mut client = TestClient::open(&server, SESSION).await;
    take(&heard);
    let id = client.start_tool("gate", json!({})).await;
    idle().await;
    client.cancel(id).await;
    idle().await;
    assert_eq!(take(&heard), [("tools/call".to_owned(), Some("gate".to_owned()), CallOutcome::Cancelled)]);
    client.start_tool("gate", json!({})).await;
    idle().await;
    drop(client);
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    assert_eq!(take(&heard).len(), 1, "the client is gone, and so is its call");
}

#[tokio::test]
async fn a_record_says_who_called() {
    let said = Arc::new(Mutex::new(Vec::new()));
    let say = said.clone();
    let server = Server::builder("test", "1")
        .tool(crate::support::named("echo"))
        .on_call(move |record| {
            let who = (record.client.map(str::to_owned), record.principal.map(str::to_owned));
            say.lock().unwrap().push((record.session, who));
        })
        .build()
        .unwrap();
    for principal in ["alice", "bob"] {
        Pair::of(&server, principal).start(SESSION).await.client.tool("echo", json!({})).await;
    }
    let said = said.lock().unwrap().clone();
    assert_ne!(said[0].0, said[2].0, "two sessions");
    let who: Vec<_> = said.into_iter().map(|(_, who)| who).collect();
    let expected = |principal: &str| (Some("testkit".to_owned()), Some(principal.to_owned()));
    assert_eq!(who, ["alice", "alice", "bob", "bob"].map(expected), "of initialize and of the call");
}
