//! A peer that does not read slows itself down, fills no memory, and loses nothing.

use std::sync::atomic::Ordering;
use std::time::Duration;

use refmcp_transport::{ConnectionEnd, MemoryBudget};
use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::script::{Peer, call, idle, line};

const SIZE: usize = 10_000;

#[tokio::test(start_paused = true)]
async fn nothing_more_is_read_while_nothing_is_taken() {
    let mut peer = Peer::of_width(256).await;
    let mut sent = 0;
    loop {
        let text = line(&call(sent, "text", &json!({ "bytes": SIZE })));
        let writing = peer.input.write_all(text.as_bytes());
        if tokio::time::timeout(Duration::from_secs(1), writing).await.is_err() {
            break;
        }
        sent += 1;
        assert!(sent < 10_000, "the driver reads on and on");
    }
    // What was taken in is answered in order; the line that is cut off in the middle is not.
    for id in 0..sent {
        assert_eq!(peer.read().await.unwrap()["id"], id);
    }
}

#[tokio::test(start_paused = true)]
async fn backpressure_stops_calls_that_send() {
    let mut peer = Peer::of_width(256).await;
    peer.call(1, "shout", json!({ "bytes": SIZE })).await;
    idle().await;
    let said = peer.gate.begun.load(Ordering::SeqCst);
    assert!((1..1000).contains(&said), "{said}");
    for _ in 0..said {
        assert_eq!(peer.read().await.unwrap()["method"], "notifications/message");
    }
    idle().await;
    assert!(peer.gate.begun.load(Ordering::SeqCst) > said, "it goes on once it is heard");
}

#[tokio::test(start_paused = true)]
async fn calls_that_wait_for_room_get_it_once_all_is_written() {
    // The pipe takes everything at once, so nothing but writing makes room.
    let mut peer = Peer::of_width(16 << 20).await;
    for id in 0..60 {
        peer.call(id, "task", json!({ "bytes": 100_000 })).await;
    }
    for _ in 0..60 {
        let answer = tokio::time::timeout(Duration::from_secs(60), peer.read()).await;
        assert!(answer.expect("a call waits for ever").unwrap()["result"].is_object());
    }
}

#[tokio::test(start_paused = true)]
async fn results_of_calls_that_have_ended_are_counted() {
    let mut peer = Peer::of_width(4096).await;
    for id in 0..10 {
        peer.call(id, "wait", json!({ "bytes": 500_000 })).await;
    }
    idle().await;
    peer.gate.open.add_permits(10);
    idle().await;
    let held = peer.memory.held();
    assert!(held > 4_900_000, "{held}");
    for _ in 0..10 {
        assert!(peer.read().await.unwrap()["result"].is_object());
    }
    idle().await;
    assert_eq!(peer.memory.held(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn calls_that_talk_on_other_threads_wait_as_well() {
    // Wide enough for all three calls: once the first has filled the queue, no more is read.
    let mut peer = Peer::of_width(1024).await;
    for id in 0..3 {
        peer.call(id, "shout", json!({ "bytes": SIZE })).await;
    }
    // They have come to a halt when they have not moved for a while.
    let (mut last, mut still) = (0, 0);
    while still < 10 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let now = peer.gate.begun.load(Ordering::SeqCst);
        assert!(now < 1000, "{now} messages wait for a reader");
        still = if now == last && now > 0 { still + 1 } else { 0 };
        last = now;
    }
}

#[tokio::test(start_paused = true)]
async fn responses_beyond_the_memory_budget_are_errors() {
    let budget = MemoryBudget::new(200_000);
    let mut peer = Peer::with_memory(256, None, &budget).await;
    for id in 0..10 {
        peer.call(id, "task", json!({ "bytes": 40_000 })).await;
    }
    idle().await;
    assert!((40_000..=200_000).contains(&budget.held()), "{}", budget.held());
    let mut refused = 0;
    for _ in 0..10 {
        let response = peer.read().await.unwrap();
        if let Some(why) = response["error"]["message"].as_str() {
            assert!(why.contains("too many bytes are held for this client"), "{why}");
            refused += 1;
        }
    }
    assert!((1..10).contains(&refused), "{refused}");
    assert_eq!(budget.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_message_without_end_beyond_the_memory_budget_ends_the_connection() {
    let budget = MemoryBudget::new(200_000);
    let mut peer = Peer::with_memory(256, None, &budget).await;
    let endless = vec![b'x'; 300_000];
    let writing = peer.input.write_all(&endless);
    // It is not read to its end.
    let _ = tokio::time::timeout(Duration::from_secs(1), writing).await;
    assert_eq!(peer.driven.await.unwrap().unwrap(), ConnectionEnd::NoMemory);
    assert_eq!(budget.held(), 0);
}
