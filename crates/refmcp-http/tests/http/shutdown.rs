//! How an endpoint stops: streams end properly, calls get some time.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::time::timeout;

use crate::support::{Client, LATEST_SESSION, PATIENCE, Site, text_of};

const SOON: Duration = Duration::from_millis(700);

#[tokio::test]
async fn standing_streams_end_at_once() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let standing = client.get(None).await;
    let wish = json!({ "notifications": { "toolsListChanged": true } });
    let listening = site.alone("subscriptions/listen", wish, &[]).await;
    site.stop.cancel();
    let told = timeout(SOON, async { tokio::join!(standing.events(), listening.events()) }).await;
    let (standing, listening) = told.expect("they end soon");
    assert_eq!(standing, []);
    assert_eq!(listening.len(), 2, "that it listens, and that it does no longer: {listening:?}");
    assert_eq!(listening[1].1["id"], 1);
    timeout(SOON, site.served).await.expect("nothing is left").unwrap().unwrap();
}

#[tokio::test]
async fn calls_may_finish() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let watched = client.watch(1, "slow", json!({ "ms": 300 })).await;
    let alone = json!({ "name": "slow", "arguments": { "ms": 300 } });
    let alone = site.alone("tools/call", alone, &[]);
    let stop = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        site.stop.cancel();
    };
    let (watched, alone, ()) = tokio::join!(watched.answer(), alone, stop);
    assert_eq!(text_of(&watched), "slow");
    assert_eq!(text_of(&alone.answer().await), "slow");
    timeout(SOON, site.served).await.expect("nothing is left").unwrap().unwrap();
}

#[tokio::test]
async fn calls_that_take_too_long_are_left() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let _watched = client.watch(1, "slow", json!({ "ms": 1_000_000 })).await;
    let began = Instant::now();
    site.stop.cancel();
    site.until_ended(1).await;
    timeout(SOON, site.served).await.expect("it stops").unwrap().unwrap();
    assert!(began.elapsed() >= PATIENCE / 2, "they had some time");
}
