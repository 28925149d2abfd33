//! Handlers on a runtime of their own: they may block all of it, and every message is still seen.

use std::sync::atomic::Ordering;

use serde_json::json;
use tokio::runtime::Builder;

use crate::script::Peer;

#[tokio::test]
async fn messages_are_answered_while_every_handler_thread_spins() {
    let handlers = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut peer = Peer::with(4096, Some(handlers.handle().clone())).await;
    for id in 0..4 {
        peer.call(id, "spin", json!({})).await;
    }
    while peer.gate.begun.load(Ordering::SeqCst) < 2 {
        assert!(peer.catch_up().await.is_empty());
    }
    // Both threads are busy, two more calls wait for one; what is done at once needs none.
    peer.call(10, "text", json!({ "bytes": 5 })).await;
    assert_eq!(peer.read().await.unwrap()["id"], 10);
    assert!(peer.catch_up().await.is_empty());
    peer.gate.open.add_permits(1);
    for _ in 0..4 {
        assert_eq!(peer.read().await.unwrap()["result"]["content"][0]["text"], "spun");
    }
    handlers.shutdown_background();
}
