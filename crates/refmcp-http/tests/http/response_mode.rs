//! The kind of response: when it is JSON, and when it becomes an SSE stream.

use std::time::Duration;

use refmcp_http::Options;
use refmcp_proto::frame::SseItem;
use refmcp_testkit::paused::PausedTime;
use serde_json::json;
use tokio::time::Instant;

use crate::support::{Client, LATEST_SESSION, Site, text_of};

const SESSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", LATEST_SESSION];

#[tokio::test]
async fn a_fast_answer_is_json() {
    let site = Site::usual().await;
    for revision in SESSIONS {
        let client = Client::open(&site, revision).await;
        let reply = client.call(1, "echo", json!({ "message": "m" })).await;
        assert_eq!(text_of(&reply.json().await), "m");
        let reply = client.call(1, "slow", json!({ "ms": 5 })).await;
        assert_eq!(text_of(&reply.json().await), "slow");
    }
}

#[tokio::test]
async fn progress_makes_the_response_a_stream_at_once() {
    let time = PausedTime::start();
    let site = Site::usual().await;
    for revision in SESSIONS {
        let client = Client::open(&site, revision).await;
        let began = Instant::now();
        let mut stream = client.call_with_progress(1, "slow", json!({ "ms": 1000 })).await;
        assert!(stream.is_sse() && began.elapsed().is_zero(), "{revision}");
        time.advance(Duration::from_millis(1001)).await;
        let mut primed = Vec::new();
        let event = loop {
            match stream.item().await.unwrap() {
                SseItem::Event(event) => break event,
                item => primed.push(item),
            }
        };
        assert!(event.id.is_some(), "{revision}");
        let polling = revision == LATEST_SESSION;
        assert_eq!(primed.contains(&SseItem::Retry(1000)), polling, "{revision} {primed:?}");
        assert_eq!(primed.iter().any(|item| matches!(item, SseItem::Primed { .. })), polling, "{revision}");
        assert_eq!(primed.len(), if polling { 2 } else { 0 }, "{revision}");
    }
}

#[tokio::test]
async fn a_slow_answer_becomes_a_stream() {
    let time = PausedTime::start();
    let stream_after = Duration::from_millis(50);
    let site = Site::open(Options { stream_after, ..Options::default() }).await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let began = Instant::now();
    let call = async {
        let stream = client.call(1, "slow", json!({ "ms": 1000 })).await;
        (stream, began.elapsed())
    };
    let ((stream, after), ()) = tokio::join!(call, async {
        time.advance(stream_after - Duration::from_millis(1)).await;
        time.advance(Duration::from_millis(2)).await;
    });
    assert!(stream.is_sse() && after >= stream_after, "{after:?}");
    time.advance(Duration::from_secs(1)).await;
    assert_eq!(text_of(&stream.answer().await), "slow");
}

#[tokio::test]
async fn a_silent_stream_has_keep_alive_comments() {
    let time = PausedTime::start();
    let keep_alive = Duration::from_secs(20);
    let site = Site::open(Options { keep_alive, ..Options::default() }).await;
    let client = Client::open(&site, "2025-06-18").await;
    let mut stream = client.call_with_progress(1, "slow", json!({ "ms": 60_000 })).await;
    time.advance(keep_alive + Duration::from_millis(1)).await;
    assert_eq!(stream.item().await, Some(SseItem::Comment));
    time.advance(Duration::from_secs(60)).await;
    assert_eq!(text_of(&stream.answer().await), "slow");
}

#[tokio::test]
async fn a_detached_client_resumes_for_the_answer() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    for watching in [true, false] {
        let mut stream = if watching {
            client.call_with_progress(3, "leave", json!({})).await
        } else {
            client.call(3, "leave", json!({})).await
        };
        assert!(stream.is_sse());
        let mut from = None;
        while let Some(item) = stream.item().await {
            match item {
                SseItem::Primed { id } => from = Some(id),
                SseItem::Retry(_) => {}
                other => panic!("{other:?} {watching}"),
            }
        }
        let rest = client.get(from.as_deref()).await.events().await;
        assert_eq!(rest.len(), 1);
        assert_eq!((rest[0].1["id"].as_u64(), text_of(&rest[0].1)), (Some(3), "came back"));
    }
}

#[tokio::test]
async fn a_client_that_cannot_resume_is_not_detached() {
    let site = Site::usual().await;
    let client = Client::open(&site, "2025-06-18").await;
    let answer = client.call_with_progress(3, "leave", json!({})).await.answer().await;
    assert_eq!(text_of(&answer), "came back");
}
