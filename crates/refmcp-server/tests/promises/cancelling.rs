//! Cancelled calls end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use refmcp_server::{Call, CallError, NoArguments, Tool};
use refmcp_testkit::client::TestClient;
use serde_json::json;
use tokio::sync::mpsc;

use crate::support::{BOTH, CountWhenDropped, Gate, SESSION, idle, server};

#[tokio::test(start_paused = true)]
async fn a_cancelled_handler_is_dropped_and_not_answered() {
    for revision in BOTH {
        for inline in [false, true] {
            let gate = Gate::new();
            let tool = if inline { gate.tool().inline() } else { gate.tool() };
            let server = server([tool]);
            let mut client = TestClient::open(&server, revision).await;
            let unwanted = client.start_tool("gate", json!({})).await;
            let wanted = client.start_tool("gate", json!({})).await;
            idle().await;
            client.cancel(unwanted).await;
            idle().await;
            assert_eq!((gate.begun(), gate.stopped()), (2, 1), "{revision}");
            gate.let_through(1);
            assert!(client.answer(wanted).await.get("result").is_some());
            client.catch_up().await;
            assert_eq!(client.answered(unwanted), None, "{revision}");
        }
    }
}

#[tokio::test]
async fn whatever_a_handler_started_can_see_the_cancellation() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let tool = Tool::new("start", "Starts something", move |call: Call, _: NoArguments| {
        let tell = tell.clone();
        async move {
            let watching = call.clone();
            tokio::spawn(async move {
                tell.send(watching.cancelled_at()).unwrap();
                watching.cancelled().await;
                tell.send(watching.cancelled_at()).unwrap();
            });
            std::future::pending::<()>().await;
            Ok("never")
        }
    });
    let mut client = TestClient::open(&server([tool]), SESSION).await;
    let id = client.start_tool("start", json!({})).await;
    assert_eq!(told.recv().await, Some(None));
    client.cancel(id).await;
    assert!(told.recv().await.unwrap().is_some());
}

#[tokio::test]
async fn cancelling_a_call_that_waits_withdraws_its_questions() {
    let ask = Tool::new("ask", "Asks twice", |call: Call, _: NoArguments| async move {
        let sure = call.confirm("sure", "Sure?");
        let roots = call.list_roots("roots");
        Ok(format!("{} {}", sure?, roots?.len()))
    });
    let mut client = TestClient::open(&server([ask]), SESSION).await;
    let id = client.start_tool("ask", json!({})).await;
    let questions = [client.question().await, client.question().await];
    client.cancel(id).await;
    let mut withdrawn = Vec::new();
    for _ in &questions {
        withdrawn.push(client.notification("notifications/cancelled").await["params"]["requestId"].clone());
    }
    assert_eq!(withdrawn, questions.each_ref().map(|question| question["id"].clone()));
    // Answers that crossed the cancellation bring nothing back to life.
    client.reply(&questions[0], json!({ "action": "decline" })).await;
    client.catch_up().await;
    assert_eq!(client.answered(id), None);
}

#[tokio::test(start_paused = true)]
async fn an_id_can_be_used_again_after_its_call_was_cancelled() {
    let gate = Gate::new();
    let mut client = TestClient::open(&server([gate.tool()]), SESSION).await;
    let call = json!({ "id": 77, "method": "tools/call", "params": { "name": "gate" } });
    client.send(call.clone()).await;
    client.cancel(77).await;
    client.send(call).await;
    idle().await;
    gate.let_through(2);
    assert!(client.answer(77).await.get("result").is_some());
    client.catch_up().await;
    assert_eq!(client.answered(77), None, "one answer for two requests, of which one was cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_handler_sees_its_cancellation_before_it_is_dropped() {
    let (tidied, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (tidied.clone(), dropped.clone());
    let tool = Tool::new("tidy", "Tidies up", move |call: Call, _: NoArguments| {
        let (tidied, dropped) = counts.clone();
        async move {
            let _count = CountWhenDropped(dropped);
            call.cancelled().await;
            tidied.fetch_add(1, Ordering::SeqCst);
            Err::<String, _>(CallError::new("never sent"))
        }
    });
    let mut client = TestClient::open(&server([tool]), SESSION).await;
    let id = client.start_tool("tidy", json!({})).await;
    idle().await;
    client.cancel(id).await;
    idle().await;
    assert_eq!((tidied.load(Ordering::SeqCst), dropped.load(Ordering::SeqCst)), (1, 1));
    client.catch_up().await;
    assert_eq!(client.answered(id), None);
}
