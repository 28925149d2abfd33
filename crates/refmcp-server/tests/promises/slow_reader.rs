//! A client that stops reading costs no more memory than agreed, and loses nothing when it goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use refmcp_server::model::LogLevel;
use refmcp_server::{Call, Connection, NoArguments, Server, Tool};
use refmcp_testkit::client::{Pair, TestClient};
use serde_json::json;

use crate::support::{SESSION, idle, named, server};

/// Bytes of one message.
const SIZE: usize = 10_000;
/// Messages that may be under way: a megabyte in the queue for writing, and the 256 between calls and connection
/// twice, since they are taken together.
const UNDER_WAY: usize = (1 << 20) / SIZE + 2 * 256 + 10;

/// A server whose tool sends many large messages, and how many it got rid of.
fn flood(messages: usize) -> (Server, Arc<AtomicUsize>) {
    let sent = Arc::new(AtomicUsize::new(0));
    let count = sent.clone();
    let flood = Tool::new("flood", "Sends much", move |call: Call, _: NoArguments| {
        let count = count.clone();
        async move {
            let padding = "x".repeat(SIZE);
            for number in 0..messages {
                call.log(LogLevel::Info, "", json!([number, padding])).await;
                count.fetch_add(1, Ordering::SeqCst);
            }
            Ok("sent")
        }
    });
    (server([flood, named("echo")]), sent)
}

async fn read_all(client: &mut TestClient, id: u64, messages: usize) {
    for number in 0..messages {
        let message = client.read().await.unwrap();
        assert_eq!(message["params"]["data"][0], number);
    }
    assert_eq!(client.answer(id).await["result"]["content"][0]["text"], "sent");
}

#[tokio::test(start_paused = true)]
async fn a_flood_waits_for_its_reader() {
    let (server, sent) = flood(1500);
    let mut pair = Pair::with(&server, Connection::default(), 1024).start(SESSION).await;
    let id = pair.client.start_tool("flood", json!({})).await;
    idle().await;
    let under_way = sent.load(Ordering::SeqCst);
    assert!(under_way > 0 && under_way <= UNDER_WAY, "{under_way} messages are under way");
    // Others have nothing to do with it.
    let mut other = TestClient::open(&server, SESSION).await;
    assert_eq!(other.tool_text("echo", json!({})).await, "echo");
    read_all(&mut pair.client, id, 1500).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_from_another_thread_waits_as_well() {
    let (server, sent) = flood(20_000);
    let mut pair = Pair::with(&server, Connection::default(), 1024).start(SESSION).await;
    pair.client.start_tool("flood", json!({})).await;
    // It has come to a halt when it has not moved for a while.
    let (mut last, mut still) = (0, 0);
    while still < 10 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let now = sent.load(Ordering::SeqCst);
        assert!(now <= UNDER_WAY, "{now} messages are under way");
        still = if now == last && now > 0 { still + 1 } else { 0 };
        last = now;
    }
}

#[tokio::test(start_paused = true)]
async fn requests_are_not_taken_in_while_their_answers_are_not_read() {
    let large =
        Tool::new("large", "Answers at length", |_: Call, _: NoArguments| async { Ok("x".repeat(SIZE)) });
    let server = server([large.inline()]);
    let mut pair = Pair::with(&server, Connection::default(), 1024).start(SESSION).await;
    let call = json!({ "jsonrpc": "2.0", "id": 0, "method": "tools/call", "params": { "name": "large" } });
    let mut sent = 0;
    loop {
        let mut call = call.clone();
        call["id"] = json!(1000 + sent);
        let text = call.to_string();
        let sending = tokio::time::timeout(Duration::from_secs(1), pair.client.send_text(&text));
        sent += 1;
        if sending.await.is_err() {
            break;
        }
        // The server takes in a chunk of input at a time, and works on it as long as there is room for answers.
        assert!(sent < 5000, "the server reads on and on");
    }
    // The last one is still half in the client's own hands.
    let done = async {
        for number in 0..sent - 1 {
            assert!(pair.client.answer(1000 + number).await.get("result").is_some(), "{number}");
        }
    };
    done.await;
}
