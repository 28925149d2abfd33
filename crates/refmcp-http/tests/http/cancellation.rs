//! Cancelled requests: their streams end without an answer.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{Client, LATEST_SESSION, Site, text_of};

/// Longer than anything here takes, even on a machine that is busy.
const SOON: Duration = Duration::from_secs(60);
const SESSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", LATEST_SESSION];

fn cancel(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
}

#[tokio::test]
async fn the_stream_of_a_cancelled_request_ends() {
    let site = Site::usual().await;
    for (turn, revision) in SESSIONS.into_iter().enumerate() {
        let client = Client::open(&site, revision).await;
        let standing = client.get(None).await;
        let mut stream = client.call_with_progress(7, "steps", json!({ "n": 100_000, "ms": 5 })).await;
        let other = client.call_with_progress(8, "slow", json!({ "ms": 300 })).await;
        stream.event().await.unwrap();
        assert_eq!(client.post(&cancel(7)).await.status, 202);
        let rest =
            timeout(SOON, stream.events()).await.unwrap_or_else(|_| panic!("{revision}: it does not end"));
        assert!(rest.iter().all(|(_, message)| message["method"] == "notifications/progress"), "{rest:?}");
        assert_eq!(text_of(&other.answer().await), "slow", "{revision}: the other goes on");
        site.until_ended(2 * turn + 2).await;
        assert_eq!(client.post(&cancel(7)).await.status, 202, "once more does no harm");
        client.is_served().await;
        assert_eq!(client.delete().await, 204);
        standing.events().await;
    }
    site.until_quiet().await;
}

#[tokio::test]
async fn a_request_cancelled_before_its_stream_begins_ends() {
    let site = Site::usual().await;
    for revision in SESSIONS {
        let client = Client::open(&site, revision).await;
        let waiting = client.call(7, "slow", json!({ "ms": 1_000_000 }));
        let cancelling = async {
            site.until_metric("refmcp_requests_in_flight", 1.0).await;
            client.post(&cancel(7)).await.status
        };
        let (waiting, status) = tokio::join!(waiting, cancelling);
        assert_eq!(status, 202);
        if waiting.is_sse() {
            let heard =
                timeout(SOON, waiting.events()).await.unwrap_or_else(|_| panic!("{revision}: no end"));
            assert_eq!(heard, [], "{revision}");
        }
        client.is_served().await;
    }
    site.until_quiet().await;
}

#[tokio::test]
async fn resuming_a_cancelled_request_does_not_wait() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let mut stream = client.call_with_progress(7, "steps", json!({ "n": 100_000, "ms": 5 })).await;
    let (id, _) = stream.event().await.unwrap();
    drop(stream);
    assert_eq!(client.post(&cancel(7)).await.status, 202);
    site.until_ended(1).await;
    let back = client.get(id.as_deref()).await;
    if back.is_sse() {
        let rest = timeout(SOON, back.events()).await.expect("it ends");
        assert!(rest.iter().all(|(_, message)| message.get("result").is_none()), "{rest:?}");
    } else {
        assert_eq!(back.status, 400);
    }
    client.is_served().await;
}

#[tokio::test]
async fn a_call_that_never_stops_talking_can_be_cancelled() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let endless = json!({ "n": u32::MAX, "ms": 0 });
    let heard = client.call_with_progress(7, "steps", endless.clone()).await;
    let unheard = client.call(8, "steps", endless);
    let cancelling = async {
        for id in [7, 8] {
            assert_eq!(client.post(&cancel(id)).await.status, 202);
        }
    };
    let (unheard, ()) = tokio::join!(unheard, cancelling);
    site.until_ended(2).await;
    drop((heard, unheard));
    client.is_served().await;
}
