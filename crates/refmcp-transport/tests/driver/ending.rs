//! The end of a connection: every request is answered, or its work is stopped in time.

use std::sync::atomic::Ordering;
use std::time::Duration;

use refmcp_transport::ConnectionEnd;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use crate::script::{Peer, call, idle, line};

#[tokio::test(start_paused = true)]
async fn whatever_was_sent_before_the_end_is_answered() {
    // Far more than is ever kept for writing, and the peer takes all of it at once.
    let mut peer = Peer::of_width(64 << 20).await;
    let all: String = (0..1000).map(|id| line(&call(id, "text", &json!({ "bytes": 10_000 })))).collect();
    peer.input.write_all(all.as_bytes()).await.unwrap();
    peer.input.shutdown().await.unwrap();
    for id in 0..1000 {
        let answer = peer.read().await.unwrap_or_else(|| panic!("only {id} requests were answered"));
        assert_eq!(answer["id"], id);
    }
    assert_eq!(peer.read().await, None);
    assert_eq!(peer.driven.await.unwrap().unwrap(), ConnectionEnd::Closed);
}

#[tokio::test(start_paused = true)]
async fn an_answer_at_the_very_end_is_still_taken() {
    let mut peer = Peer::of_width(64 << 20).await;
    peer.call(0, "ask", json!({})).await;
    let question = peer.read().await.unwrap();
    let mut last: String = (1..=500).map(|id| line(&call(id, "text", &json!({ "bytes": 10_000 })))).collect();
    last.push_str(&line(&json!({ "id": question["id"], "result": { "roots": [] } })));
    peer.input.write_all(last.as_bytes()).await.unwrap();
    peer.input.shutdown().await.unwrap();
    let mut answered = 0;
    while let Some(message) = peer.read().await {
        if message["id"] == 0 && message.get("method").is_none() {
            assert_eq!(message["result"]["content"][0]["text"], r#"{"roots":[]}"#, "{message}");
        }
        answered += 1;
    }
    assert_eq!(answered, 501);
}

#[tokio::test(start_paused = true)]
async fn a_server_request_that_cannot_be_answered_ends_its_call() {
    let mut peer = Peer::of_width(64).await;
    peer.call(1, "ask", json!({})).await;
    peer.read().await.unwrap();
    peer.input.shutdown().await.unwrap();
    let withdrawn = peer.read().await.unwrap();
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(peer.read().await.unwrap()["error"]["code"], -32603);
    assert_eq!(peer.driven.await.unwrap().unwrap(), ConnectionEnd::Closed);
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_are_waited_for() {
    for shut_down in [true, false] {
        let mut peer = Peer::of_width(64).await;
        peer.call(1, "wait", json!({})).await;
        idle().await;
        if shut_down {
            peer.stop.cancel();
        } else {
            peer.input.shutdown().await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(9)).await;
        assert!(!peer.driven.is_finished());
        peer.gate.open.add_permits(1);
        assert_eq!(peer.read().await.unwrap()["result"]["content"][0]["text"], "waited");
        let end = peer.driven.await.unwrap().unwrap();
        assert_eq!(end, if shut_down { ConnectionEnd::ShutDown } else { ConnectionEnd::Closed });
    }
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_are_not_waited_for_any_longer() {
    for shut_down in [true, false] {
        let mut peer = Peer::of_width(64).await;
        peer.call(1, "wait", json!({})).await;
        idle().await;
        let begin = Instant::now();
        if shut_down {
            peer.stop.cancel();
        } else {
            peer.input.shutdown().await.unwrap();
        }
        let end = peer.driven.await.unwrap().unwrap();
        assert_eq!(
            (end, begin.elapsed().as_secs()),
            (if shut_down { ConnectionEnd::ShutDown } else { ConnectionEnd::Closed }, 10)
        );
        idle().await;
        assert_eq!(peer.gate.dropped.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_is_gone_while_there_is_something_to_write_is_noticed_at_once() {
    let mut peer = Peer::of_width(64).await;
    peer.call(1, "text", json!({ "bytes": 1000 })).await;
    peer.call(2, "wait", json!({})).await;
    idle().await;
    let begin = Instant::now();
    drop((peer.input, peer.output));
    assert_eq!(peer.driven.await.unwrap().unwrap(), ConnectionEnd::PeerGone);
    assert_eq!(begin.elapsed(), Duration::ZERO);
    idle().await;
    assert_eq!(peer.gate.begun.load(Ordering::SeqCst), peer.gate.dropped.load(Ordering::SeqCst));
    assert_eq!(peer.handle.inspect(|_| ()), None, "the connection is over");
}

#[tokio::test(start_paused = true)]
async fn work_ends_with_its_driver() {
    let mut peer = Peer::of_width(64).await;
    peer.call(1, "wait", json!({})).await;
    idle().await;
    peer.driven.abort();
    idle().await;
    assert_eq!(peer.gate.dropped.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn work_that_never_stops_talking_ends_with_its_driver() {
    let mut peer = Peer::of_width(256).await;
    peer.call(1, "shout", json!({ "bytes": 10_000 })).await;
    idle().await;
    drop((peer.input, peer.output));
    assert_eq!(peer.driven.await.unwrap().unwrap(), ConnectionEnd::PeerGone);
    idle().await;
    assert_eq!(peer.gate.dropped.load(Ordering::SeqCst), 1);
}
