//! When an exchange becomes a stream.

use std::time::{Duration, Instant};

use refmcp_http::Options;
use refmcp_proto::frame::SseItem;
use serde_json::json;

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
async fn who_wants_progress_gets_a_stream_at_once() {
    let site = Site::usual().await;
    for revision in SESSIONS {
        let client = Client::open(&site, revision).await;
        let began = Instant::now();
        let mut stream = client.watch(1, "slow", json!({ "ms": 1000 })).await;
        assert!(stream.is_sse() && began.elapsed() < Duration::from_millis(500), "{revision}");
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
    let site = Site::open(Options { commit_after: Duration::from_millis(50), ..Options::default() }).await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let began = Instant::now();
    let stream = client.call(1, "slow", json!({ "ms": 1000 })).await;
    assert!(stream.is_sse() && began.elapsed() < Duration::from_millis(700));
    assert_eq!(text_of(&stream.answer().await), "slow");
}

#[tokio::test]
async fn a_silent_stream_shows_that_it_is_alive() {
    let site = Site::open(Options { keep_alive: Duration::from_millis(20), ..Options::default() }).await;
    let client = Client::open(&site, "2025-06-18").await;
    let mut stream = client.watch(1, "slow", json!({ "ms": 300 })).await;
    assert_eq!(stream.item().await, Some(SseItem::Comment));
    assert_eq!(text_of(&stream.answer().await), "slow");
}

#[tokio::test]
async fn a_client_that_is_sent_away_comes_back_for_the_answer() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    for watching in [true, false] {
        let mut stream = if watching {
            client.watch(3, "leave", json!({})).await
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
async fn nobody_is_sent_away_who_could_not_come_back() {
    let site = Site::usual().await;
    let client = Client::open(&site, "2025-06-18").await;
    let answer = client.watch(3, "leave", json!({})).await.answer().await;
    assert_eq!(text_of(&answer), "came back");
}
