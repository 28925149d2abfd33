//! Resuming streams: a client gets each following event once, or an error if they are gone.

use std::time::Duration;

use refmcp_http::Options;
use refmcp_testkit::paused::PausedTime;
use serde_json::{Value, json};

use crate::support::http1::Reply;
use crate::support::{Client, LATEST_SESSION, Site, text_of};

/// The numbers of progress among messages.
fn steps(events: &[(Option<String>, Value)]) -> Vec<u64> {
    events
        .iter()
        .filter_map(|(_, message)| message["params"]["progress"].as_f64())
        .map(|step| step as u64)
        .collect()
}

/// Reads so many messages and breaks the connection; gives the last event's id.
async fn cut_after(mut stream: Reply, count: u64) -> String {
    let mut last = None;
    for expected in 1..=count {
        let (id, message) = stream.event().await.unwrap();
        assert_eq!(message["params"]["progress"].as_f64(), Some(expected as f64));
        last = id;
    }
    last.unwrap()
}

#[tokio::test]
async fn a_broken_stream_is_resumed_after_the_last_event() {
    let site = Site::usual().await;
    for revision in ["2025-03-26", "2025-06-18", LATEST_SESSION] {
        let client = Client::open(&site, revision).await;
        for cut in 1..5 {
            let stream = client.call_with_progress(7, "steps", json!({ "n": 6, "ms": 20 })).await;
            let last = cut_after(stream, cut).await;
            let rest = client.get(Some(&last)).await.events().await;
            assert_eq!(steps(&rest), (cut + 1..=6).collect::<Vec<_>>(), "{revision}");
            let (_, answer) = rest.last().unwrap();
            assert_eq!((answer["id"].as_u64(), text_of(answer)), (Some(7), "6 steps "));
            assert_eq!(rest.len() as u64, 6 - cut + 1);
        }
    }
}

#[tokio::test]
async fn an_answer_is_kept_for_a_client_that_was_away() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let last = cut_after(client.call_with_progress(7, "steps", json!({ "n": 4, "ms": 20 })).await, 1).await;
    site.until_ended(1).await;
    let rest = client.get(Some(&last)).await.events().await;
    assert_eq!(steps(&rest), [2, 3, 4]);
    assert_eq!(text_of(&rest[3].1), "4 steps ");
}

#[tokio::test]
async fn a_finished_stream_can_be_read_again_from_any_event() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let all = client.call_with_progress(7, "steps", json!({ "n": 3, "ms": 1 })).await.events().await;
    assert_eq!(all.len(), 4);
    for (index, (id, _)) in all.iter().enumerate().take(3) {
        let again = client.get(id.as_deref()).await.events().await;
        assert_eq!(again, all[index + 1..]);
    }
}

#[tokio::test]
async fn events_that_are_gone_are_an_error() {
    let site = Site::open(Options { stream_bytes: 200, ..Options::default() }).await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let last = cut_after(client.call_with_progress(7, "steps", json!({ "n": 20, "ms": 5 })).await, 1).await;
    site.until_ended(1).await;
    let rest = client.get(Some(&last)).await.events().await;
    assert_eq!(rest.len(), 1);
    assert_eq!((&rest[0].1["id"], &rest[0].1["error"]["code"]), (&json!(7), &json!(-32603)));
}

#[tokio::test]
async fn an_unknown_last_event_id_is_refused() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let all = client.call_with_progress(7, "steps", json!({ "n": 2, "ms": 1 })).await.events().await;
    let (stream, _) = all[0].0.as_deref().unwrap().split_once('.').unwrap();
    let beyond = format!("{stream}.4");
    let huge = format!("{stream}.18446744073709551615");
    for bad in [
        "x",
        "1",
        ".",
        "1.",
        ".1",
        "1.-1",
        "-1.1",
        "999.1",
        "99999999999999999999.1",
        "1.99999999999999999999",
        "0.1",
        "0.18446744073709551615",
        "18446744073709551615.0",
        beyond.as_str(),
        huge.as_str(),
    ] {
        let reply = client.get(Some(bad)).await;
        assert_eq!(reply.status, 400, "{bad}");
        assert!(!reply.text().await.is_empty(), "{bad}");
    }
    let other = Client::open(&site, LATEST_SESSION).await;
    let foreign = other.get(all[0].0.as_deref()).await;
    assert_eq!(foreign.status, 400, "another session's stream");
}

#[tokio::test]
async fn a_reader_that_stops_delays_no_other() {
    let site = Site::open(Options { stream_bytes: 1 << 20, ..Options::default() }).await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let note = "x".repeat(100_000);
    let stuck = client.call_with_progress(1, "steps", json!({ "n": 600, "ms": 0, "note": note })).await;
    site.until_ended(1).await;
    for id in 2..20 {
        // A delay would last for ever: that stream is not read yet.
        assert_eq!(text_of(&client.call(id, "echo", json!({ "message": "m" })).await.json().await), "m");
    }
    // Too many messages came meanwhile: there is no gap in what was sent, and the rest is reported as gone.
    let heard = stuck.events().await;
    assert_eq!(steps(&heard), (1..=heard.len() as u64).collect::<Vec<_>>());
    let rest = client.get(heard.last().unwrap().0.as_deref()).await.events().await;
    assert_eq!((&rest[0].1["id"], &rest[0].1["error"]["code"]), (&json!(1), &json!(-32603)));
}

#[tokio::test]
async fn a_duplicate_request_id_is_refused() {
    let time = PausedTime::start();
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let first = client.call_with_progress(1, "slow", json!({ "ms": 200 })).await;
    let second = client.call(1, "slow", json!({ "ms": 0 })).await;
    assert_eq!(second.status, 400);
    assert_eq!(second.json().await["error"]["code"], -32600);
    time.advance(Duration::from_millis(201)).await;
    drop(time);
    assert_eq!(text_of(&first.answer().await), "slow");
    assert_eq!(
        text_of(&client.call(1, "slow", json!({ "ms": 0 })).await.answer().await),
        "slow",
        "free again"
    );
}

#[tokio::test]
async fn duplicate_request_ids_can_be_served() {
    let site = Site::open(Options { serve_duplicate_ids: true, ..Options::default() }).await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let first = client.call_with_progress(1, "steps", json!({ "n": 2, "ms": 100, "note": "first" })).await;
    let second = client.call_with_progress(1, "steps", json!({ "n": 3, "ms": 10, "note": "second" })).await;
    let (first, second) = tokio::join!(first.events(), second.events());
    assert_eq!((steps(&first), text_of(&first[2].1)), (vec![1, 2], "2 steps first"));
    assert_eq!((steps(&second), text_of(&second[3].1)), (vec![1, 2, 3], "3 steps second"));
}

#[tokio::test]
async fn resuming_after_the_answer_is_refused() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let all = client.call_with_progress(7, "steps", json!({ "n": 1, "ms": 1 })).await.events().await;
    let reply = client.get(all[1].0.as_deref()).await;
    assert_eq!(reply.status, 400);
    assert!(!reply.text().await.is_empty());
}

#[tokio::test]
async fn an_expired_stream_answers_its_request_with_an_error() {
    let retention = Duration::from_secs(60);
    let site = Site::open(Options { retention, ..Options::default() }).await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let all = client.call_with_progress(7, "steps", json!({ "n": 1, "ms": 0 })).await.events().await;
    let time = PausedTime::start();
    time.advance(retention - Duration::from_secs(5)).await;
    assert_eq!(client.get(all[0].0.as_deref()).await.events().await, all[1..], "within its time");
    time.advance(retention * 2).await;
    // The session lives, and remembers what the stream was for.
    for event in &all {
        let lost = client.get(event.0.as_deref()).await.events().await;
        assert_eq!(lost.len(), 1);
        assert_eq!((&lost[0].1["id"], &lost[0].1["error"]["code"]), (&json!(7), &json!(-32603)));
    }
    assert_eq!(text_of(&client.call(8, "echo", json!({ "message": "m" })).await.json().await), "m");
}
