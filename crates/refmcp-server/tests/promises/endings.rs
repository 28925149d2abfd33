//! How connections end: the client disconnects, or the server is stopped.

use std::time::Duration;

use refmcp_server::transport::ConnectionEnd;
use refmcp_server::{Call, Connection, NoArguments, Server, Tool};
use refmcp_testkit::client::Pair;
use serde_json::json;
use tokio::time::Instant;

use crate::support::{BOTH, Gate, SESSION, STATELESS, idle};

fn patient(gate: &Gate) -> Server {
    Server::builder("test", "1").tool(gate.tool()).grace(Duration::from_secs(7)).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_work_of_a_client_that_is_gone_ends() {
    for revision in BOTH {
        let gate = Gate::new();
        let mut pair = Pair::new(&patient(&gate)).start(revision).await;
        pair.client.start_tool("gate", json!({})).await;
        idle().await;
        assert_eq!((gate.begun(), gate.stopped()), (1, 0));
        let gone = Instant::now();
        drop(pair.client);
        let end = pair.served.await.unwrap().unwrap();
        assert!(matches!(end, ConnectionEnd::Closed | ConnectionEnd::PeerGone), "{end:?}");
        assert!(gone.elapsed() <= Duration::from_secs(7), "{:?}", gone.elapsed());
        idle().await;
        assert_eq!(gate.stopped(), 1, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn stopping_waits_for_calls_in_flight() {
    for revision in BOTH {
        let gate = Gate::new();
        let mut pair = Pair::new(&patient(&gate)).start(revision).await;
        let id = pair.client.start_tool("gate", json!({})).await;
        idle().await;
        pair.stop.cancel();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(!pair.served.is_finished());
        gate.let_through(1);
        assert_eq!(pair.client.answer(id).await["result"]["content"][0]["text"], "through");
        assert_eq!(pair.served.await.unwrap().unwrap(), ConnectionEnd::ShutDown);
        pair.client.closed().await;
    }
}

#[tokio::test(start_paused = true)]
async fn stopping_waits_no_longer_than_the_grace() {
    let gate = Gate::new();
    let mut pair = Pair::new(&patient(&gate)).start(SESSION).await;
    pair.client.start_tool("gate", json!({})).await;
    idle().await;
    let told = Instant::now();
    pair.stop.cancel();
    assert_eq!(pair.served.await.unwrap().unwrap(), ConnectionEnd::ShutDown);
    assert_eq!(told.elapsed().as_secs(), 7);
    idle().await;
    assert_eq!(gate.stopped(), 1);
    pair.client.closed().await;
}

#[tokio::test(start_paused = true)]
async fn stopping_an_idle_server_takes_no_time() {
    for revision in BOTH {
        let mut pair = Pair::new(&patient(&Gate::new())).start(revision).await;
        pair.client.catch_up().await;
        let told = Instant::now();
        pair.stop.cancel();
        assert_eq!(pair.served.await.unwrap().unwrap(), ConnectionEnd::ShutDown);
        assert_eq!(told.elapsed(), Duration::ZERO);
    }
}

#[tokio::test(start_paused = true)]
async fn stopping_ends_listening_streams_properly() {
    let mut pair = Pair::new(&patient(&Gate::new())).start(STATELESS).await;
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    let id = pair.client.request("subscriptions/listen", wanted).await;
    pair.client.notification("notifications/subscriptions/acknowledged").await;
    pair.stop.cancel();
    assert!(pair.client.answer(id).await.get("result").is_some());
    assert_eq!(pair.served.await.unwrap().unwrap(), ConnectionEnd::ShutDown);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_cannot_keep_a_server_from_stopping() {
    let big = Tool::new("big", "Much", |_: Call, _: NoArguments| async { Ok("x".repeat(100_000)) });
    let server = Server::builder("test", "1").tool(big).grace(Duration::from_secs(7)).build().unwrap();
    let mut pair = Pair::with(&server, Connection::default(), 4096).start(SESSION).await;
    pair.client.start_tool("big", json!({})).await;
    idle().await;
    let told = Instant::now();
    pair.stop.cancel();
    assert_eq!(pair.served.await.unwrap().unwrap(), ConnectionEnd::ShutDown);
    assert_eq!(told.elapsed().as_secs(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_a_person_does_not_outlast_the_grace() {
    let ask = Tool::new("ask", "Asks", |call: Call, _: NoArguments| async move {
        Ok(format!("{}", call.confirm("sure", "Sure?")?))
    });
    let server = Server::builder("test", "1").tool(ask).grace(Duration::from_secs(7)).build().unwrap();
    let mut pair = Pair::new(&server).start(SESSION).await;
    pair.client.start_tool("ask", json!({})).await;
    let question = pair.client.question().await;
    let told = Instant::now();
    pair.stop.cancel();
    let withdrawn = pair.client.notification("notifications/cancelled").await;
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    assert_eq!(pair.served.await.unwrap().unwrap(), ConnectionEnd::ShutDown);
    assert!(told.elapsed() <= Duration::from_secs(7));
}
