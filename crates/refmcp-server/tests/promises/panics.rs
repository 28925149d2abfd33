//! A panic in a handler is -32603 for its call, and affects no other.

use std::future::Ready;

use refmcp_server::model::{PromptMessage, ResourceContents};
use refmcp_server::{Call, CallError, NoArguments, Prompt, PromptArguments, Resource, Server, Tool};
use refmcp_testkit::client::TestClient;
use serde_json::{Value, json};

use crate::support::{BOTH, Gate};

async fn at_once(_: Call, _: NoArguments) -> Result<String, CallError> {
    panic!("at once, on purpose");
}

async fn after_waiting(_: Call, _: NoArguments) -> Result<String, CallError> {
    tokio::task::yield_now().await;
    panic!("after waiting, on purpose");
}

fn before_there_is_a_future(_: Call, _: NoArguments) -> Ready<Result<String, CallError>> {
    panic!("before there is a future, on purpose");
}

fn before_there_are_contents(_: Call) -> Ready<Result<ResourceContents, CallError>> {
    panic!("before there are contents, on purpose");
}

fn before_there_are_messages(_: Call, _: PromptArguments) -> Ready<Result<PromptMessage, CallError>> {
    panic!("before there are messages, on purpose");
}

fn panicking(gate: &Gate) -> Server {
    let tools = |ending: &str| {
        [
            Tool::new(format!("at_once{ending}"), "Panics", at_once),
            Tool::new(format!("after_waiting{ending}"), "Panics", after_waiting),
            Tool::new(format!("before{ending}"), "Panics", before_there_is_a_future),
        ]
    };
    let builder =
        tools("").into_iter().fold(Server::builder("test", "1"), refmcp_server::ServerBuilder::tool);
    let inline = tools("_inline").into_iter().map(Tool::inline);
    inline
        .fold(builder, refmcp_server::ServerBuilder::tool)
        .tool(gate.tool())
        .resource(Resource::new("panic://", "panic", before_there_are_contents))
        .prompt(
            Prompt::new("panic", before_there_are_messages)
                .optional("about", "What about")
                .complete("about", |_, _| async { panic!("in a completer, on purpose") }),
        )
        .method("panic/now", |_, _| async { panic!("in a method, on purpose") })
        .build()
        .unwrap()
}

fn every_panic() -> Vec<(&'static str, Value)> {
    let tools =
        ["at_once", "after_waiting", "before", "at_once_inline", "after_waiting_inline", "before_inline"];
    let mut calls: Vec<_> = tools.map(|name| ("tools/call", json!({ "name": name }))).into();
    let reference = json!({ "type": "ref/prompt", "name": "panic" });
    calls.push(("resources/read", json!({ "uri": "panic://" })));
    calls.push(("prompts/get", json!({ "name": "panic" })));
    calls.push((
        "completion/complete",
        json!({ "ref": reference, "argument": { "name": "about", "value": "" } }),
    ));
    calls.push(("panic/now", json!({})));
    calls
}

#[tokio::test]
async fn a_panic_ends_its_call_alone() {
    let gate = Gate::new();
    let server = panicking(&gate);
    for revision in BOTH {
        let mut client = TestClient::open(&server, revision).await;
        let waiting = client.start_tool("gate", json!({})).await;
        for (method, params) in every_panic() {
            let error = client.error(method, params.clone()).await;
            assert_eq!(error["code"], -32603, "{method} {params}");
            let told = error["message"].as_str().unwrap();
            assert!(!told.contains("on purpose"), "what panics say is nothing for clients: {told}");
        }
        gate.let_through(1);
        assert_eq!(client.answer(waiting).await["result"]["content"][0]["text"], "through", "{revision}");
    }
}

#[tokio::test]
async fn a_listener_to_calls_that_panics_does_not_swallow_answers() {
    let build = |tool: Tool| {
        let builder = Server::builder("test", "1").on_call(|_| panic!("while being told, on purpose"));
        builder.tool(tool).build().unwrap()
    };
    let tool = || Tool::new("tool", "Works", |_: Call, _: NoArguments| async { Ok("works") });
    for server in [build(tool()), build(tool().inline())] {
        let mut client = TestClient::open(&server, BOTH[0]).await;
        for _ in 0..2 {
            assert_eq!(client.tool_text("tool", json!({})).await, "works");
        }
    }
}
