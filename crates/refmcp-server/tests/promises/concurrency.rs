//! How many calls run at once, and in which order a call's messages leave.

use refmcp_server::model::LogLevel;
use refmcp_server::{Call, NoArguments, Server, Tool};
use refmcp_testkit::client::TestClient;
use serde_json::{Value, json};

use crate::support::{BOTH, Gate, SESSION, idle, named, server};

#[tokio::test]
async fn calls_run_side_by_side() {
    let gate = Gate::new();
    for revision in BOTH {
        let mut client = TestClient::open(&server([gate.tool(), named("echo")]), revision).await;
        let mut waiting = Vec::new();
        for _ in 0..50 {
            waiting.push(client.start_tool("gate", json!({})).await);
        }
        assert_eq!(client.tool_text("echo", json!({})).await, "echo");
        gate.let_through(50);
        for id in waiting {
            assert_eq!(client.answer(id).await["result"]["content"][0]["text"], "through");
        }
    }
}

#[tokio::test]
async fn a_session_has_only_so_many_calls_in_flight() {
    for revision in BOTH {
        let gate = Gate::new();
        let server = Server::builder("test", "1").tool(gate.tool()).max_in_flight(2).build().unwrap();
        let mut client = TestClient::open(&server, revision).await;
        let first = client.start_tool("gate", json!({})).await;
        let second = client.start_tool("gate", json!({})).await;
        let error = client.tool_error("gate", json!({})).await;
        assert!(error["message"].as_str().unwrap().contains("too many"), "{error}");
        // Others have a right to their own.
        let mut other = TestClient::open(&server, revision).await;
        let theirs = other.start_tool("gate", json!({})).await;
        gate.let_through(4);
        client.answer(first).await;
        client.answer(second).await;
        other.answer(theirs).await;
        assert_eq!(client.tool_text("gate", json!({})).await, "through");
        assert_eq!(gate.begun(), 4, "the refused call never ran");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_those_that_may_run_wait_for_their_turn() {
    let gate = Gate::new();
    let server =
        Server::builder("test", "1").tool(gate.tool()).tool(named("inline").inline()).max_running(2).build();
    let mut client = TestClient::open(&server.unwrap(), SESSION).await;
    let mut calls = Vec::new();
    for _ in 0..4 {
        calls.push(client.start_tool("gate", json!({})).await);
    }
    idle().await;
    calls.push(client.start_tool("inline", json!({})).await);
    client.catch_up().await;
    assert_eq!(gate.begun(), 2);
    assert_eq!(client.answered(calls[4]), None, "a tool that is done at once waits for its turn, too");
    gate.let_through(1);
    idle().await;
    assert_eq!(gate.begun(), 3);
    gate.let_through(3);
    for id in calls {
        assert!(client.answer(id).await.get("result").is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_gives_up_its_turn() {
    let gate = Gate::new();
    let server = Server::builder("test", "1").tool(gate.tool()).max_running(1).build().unwrap();
    let mut client = TestClient::open(&server, SESSION).await;
    let running = client.start_tool("gate", json!({})).await;
    let queued = client.start_tool("gate", json!({})).await;
    let last = client.start_tool("gate", json!({})).await;
    idle().await;
    client.cancel(queued).await;
    client.cancel(running).await;
    idle().await;
    assert_eq!((gate.begun(), gate.stopped()), (2, 1), "the one that was queued never began");
    gate.let_through(1);
    assert!(client.answer(last).await.get("result").is_some());
}

/// Tells of many steps, and then is done.
fn talkative(steps: u32) -> Tool {
    Tool::new("talk", "Talks", move |call: Call, _: NoArguments| async move {
        for step in 1..=steps {
            call.progress(f64::from(step), None, "").await;
            call.log(LogLevel::Info, "", step).await;
        }
        Ok("said everything")
    })
}

#[tokio::test]
async fn what_a_call_says_comes_before_its_answer() {
    // More than fits into the queue between a call and its connection.
    for steps in [3, 1000] {
        for tool in [talkative(steps), talkative(steps).inline()] {
            let server = server([tool]);
            let mut client = TestClient::open(&server, SESSION).await;
            let params = json!({ "name": "talk", "_meta": { "progressToken": "t" } });
            let id = client.request("tools/call", params).await;
            for step in 1..=steps {
                let progress = client.read().await.unwrap();
                assert_eq!(progress["params"]["progress"], step, "{progress}");
                let log = client.read().await.unwrap();
                assert_eq!(log["params"]["data"], Value::from(step), "{log}");
            }
            assert_eq!(client.read().await.unwrap()["id"], id);
        }
    }
}

#[tokio::test]
async fn a_tool_that_waits_after_all_is_moved_away() {
    let gate = Gate::new();
    let server = server([gate.tool().inline(), named("echo").inline()]);
    for revision in BOTH {
        let mut client = TestClient::open(&server, revision).await;
        let waiting = client.start_tool("gate", json!({})).await;
        assert_eq!(client.tool_text("echo", json!({})).await, "echo");
        gate.let_through(1);
        assert_eq!(client.answer(waiting).await["result"]["content"][0]["text"], "through");
    }
}
