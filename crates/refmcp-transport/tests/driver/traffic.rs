//! Many calls at once: every message is whole, in the order of its call, and every call has one answer.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use refmcp_proto::engine::Change;
use serde_json::{Value, json};

use crate::script::{Peer, idle};

#[tokio::test(start_paused = true)]
async fn calls_interleave_and_each_is_answered_once() {
    for width in [7, 64, 4096] {
        let mut peer = Peer::of_width(width).await;
        for id in 0..40 {
            match id % 3 {
                0 => peer.call(id, "text", json!({ "bytes": 300 })).await,
                1 => peer.call(id, "steps", json!({ "count": 5 })).await,
                _ => peer.call(id, "steps", json!({ "count": 5, "inline": true })).await,
            }
        }
        let (mut progress, mut answered) = (BTreeMap::<u64, Vec<u64>>::new(), Vec::new());
        while answered.len() < 40 {
            let message = peer.read().await.unwrap();
            if let Some(id) = message["id"].as_u64() {
                answered.push(id);
                continue;
            }
            let id = message["params"]["progressToken"].as_u64().unwrap();
            assert!(!answered.contains(&id), "{id} spoke after its answer");
            progress.entry(id).or_default().push(message["params"]["progress"].as_u64().unwrap());
        }
        assert!(peer.catch_up().await.is_empty());
        answered.sort_unstable();
        assert_eq!(answered, (0..40).collect::<Vec<u64>>());
        assert_eq!(progress.len(), 26);
        assert!(progress.values().all(|steps| *steps == [1, 2, 3, 4, 5]), "{progress:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_a_question_runs_the_call_again() {
    let mut peer = Peer::of_width(7).await;
    peer.call(1, "ask", json!({})).await;
    let question = peer.read().await.unwrap();
    assert_eq!(question["method"], "roots/list");
    peer.send(&json!({ "id": question["id"], "result": { "roots": [] } })).await;
    let answer = peer.read().await.unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], r#"{"roots":[]}"#);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_is_dropped_and_says_nothing_more() {
    let mut peer = Peer::of_width(64).await;
    for id in 1..=3 {
        peer.call(id, "wait", json!({})).await;
    }
    idle().await;
    peer.send(&json!({ "method": "notifications/cancelled", "params": { "requestId": 2 } })).await;
    idle().await;
    assert_eq!(peer.gate.dropped.load(Ordering::SeqCst), 1);
    peer.gate.open.add_permits(3);
    let mut answered =
        [peer.read().await.unwrap(), peer.read().await.unwrap()].map(|answer| answer["id"].clone());
    answered.sort_by_key(Value::as_u64);
    assert_eq!(answered, [json!(1), json!(3)]);
    assert!(peer.catch_up().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn changes_reach_the_peer_and_so_does_what_is_said_beside_calls() {
    let mut peer = Peer::of_width(64).await;
    peer.catch_up().await;
    for _ in 0..100 {
        peer.hub.publish(&Change::Tools);
    }
    assert_eq!(peer.read().await.unwrap()["method"], "notifications/tools/list_changed");
    peer.handle.changed(Change::Prompts).await;
    assert_eq!(peer.read().await.unwrap()["method"], "notifications/prompts/list_changed");
    assert!(peer.catch_up().await.is_empty(), "a hundred times the same is one thing to tell");
    let in_flight = peer.handle.inspect(refmcp_proto::engine::ServerEngine::in_flight);
    assert_eq!(in_flight, Some(0));
}
