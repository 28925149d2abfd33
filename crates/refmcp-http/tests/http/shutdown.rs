//! How an endpoint stops: streams end properly, calls get some time.

use std::time::{Duration, Instant};

use refmcp_http::{Endpoint, Options, Shutdown};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::support::{Client, LATEST_SESSION, PATIENCE, Site, text_of};
use crate::tools;

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

/// A site that ends with this shutdown.
async fn ending_by(shutdown: &Shutdown) -> Site {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (endpoint, told) = (Endpoint::new(tools::server().0, Options::default()), shutdown.clone());
    let served = async move {
        endpoint.serve_until(listener, &told).await;
        Ok(())
    };
    Site::found(address, tokio::spawn(served))
}

/// Waits until the server says that it is not ready.
async fn until_not_ready(site: &Site) {
    for _ in 0..200 {
        let reply = site.send("GET", "/readyz", &[], b"").await;
        if reply.status == 503 {
            assert_eq!(reply.text().await, "the server stops\n");
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it is still ready");
}

#[tokio::test]
async fn a_drain_serves_everything_and_is_not_ready() {
    let drain = Duration::from_millis(1500);
    let shutdown = Shutdown::new(PATIENCE).drain(drain);
    let site = ending_by(&shutdown).await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let began = Instant::now();
    shutdown.trigger();
    until_not_ready(&site).await;
    assert_eq!(site.send("GET", "/healthz", &[], b"").await.status, 200);
    client.is_served().await;
    site.serves().await;
    let standing = client.get(None).await;
    assert_eq!(standing.status, 200, "streams are opened as before");
    timeout(drain + PATIENCE + SOON, site.served).await.expect("it ends by itself").unwrap().unwrap();
    assert!(began.elapsed() >= drain);
    assert_eq!(standing.events().await, []);
}

#[tokio::test]
async fn each_further_trigger_hastens_the_end() {
    let long = Duration::from_secs(600);
    let shutdown = Shutdown::new(long).drain(long);
    let site = ending_by(&shutdown).await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let watched = client.watch(1, "slow", json!({ "ms": 1_000_000 })).await;
    shutdown.trigger();
    until_not_ready(&site).await;
    shutdown.trigger();
    shutdown.ending().await;
    let (address, served) = (site.address, site.served);
    let mut refused = false;
    for _ in 0..200 {
        refused = tokio::net::TcpStream::connect(address).await.is_err();
        if refused {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(refused, "nothing new is accepted");
    assert!(!served.is_finished(), "the call may go on");
    shutdown.trigger();
    timeout(Duration::from_secs(5), served).await.expect("the call is cut").unwrap().unwrap();
    drop(watched);
}
