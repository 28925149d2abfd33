//! Work that is cancelled stops, and the server tells when.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Client, SESSION, STATELESS, server};

/// The cancelled calls with this tag, once there are so many and all have stopped.
async fn cancellations(client: &mut Client, tag: &str, count: usize) -> Vec<Value> {
    // The work stops a moment after the cancellation was read.
    for _ in 0..100 {
        let result = client.call("cancellations", json!({ "tag": tag })).await;
        let cancelled = result["structuredContent"]["cancelled"].as_array().unwrap().clone();
        if cancelled.len() == count && cancelled.iter().all(|work| work.get("stoppedAt").is_some()) {
            return cancelled;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("there are never {count} calls that were cancelled and have stopped");
}

#[tokio::test]
async fn a_cancelled_call_stops_and_is_told() {
    let server = server();
    for revision in [SESSION, STATELESS] {
        let mut client = Client::new(&server, revision).await;
        for (tool, arguments) in [
            ("long_task", json!({ "step_ms": 60_000, "tag": "mine" })),
            ("slow", json!({ "ms": 600_000, "tag": "mine" })),
        ] {
            let id = client.start("tools/call", json!({ "name": tool, "arguments": arguments })).await;
            client.notify("notifications/cancelled", json!({ "requestId": id })).await;
        }
        let cancelled = cancellations(&mut client, "mine", 2).await;
        let tools: Vec<_> = cancelled.iter().map(|work| work["tool"].clone()).collect();
        assert!(
            tools.len() == 2 && tools.contains(&json!("long_task")) && tools.contains(&json!("slow")),
            "{cancelled:?}"
        );
        for work in &cancelled {
            assert_eq!(work["tag"], "mine");
            assert!(work["stoppedAfterMs"].as_f64().unwrap() < 5000.0);
            assert!(work["cancelledAt"].as_str().unwrap() <= work["stoppedAt"].as_str().unwrap());
        }
        let other = client.call("cancellations", json!({ "tag": "other" })).await;
        assert_eq!(other["structuredContent"], json!({ "cancelled": [] }));
        // What comes to its end was not cancelled.
        client.call("slow", json!({ "ms": 0, "tag": "mine" })).await;
        cancellations(&mut client, "mine", 2).await;
    }
    let mut session = Client::new(&server, SESSION).await;
    let none = session.call("cancellations", json!({})).await;
    assert_eq!(none["structuredContent"], json!({ "cancelled": [] }), "each session has its own");
    let mut stateless = Client::new(&server, STATELESS).await;
    assert_eq!(stateless.call("cancellations", json!({})).await["isError"], true, "which ones?");
}
