//! Shutdown: streams end, calls in flight get some time, further triggers hasten it.

use std::time::Duration;

use refmcp_http::{Endpoint, Shutdown};
use refmcp_testkit::paused::{PausedTime, real_pause};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::support::tools;
use crate::support::{Client, LATEST_SESSION, SHUTDOWN_TIMEOUT, Site, text_of};

#[tokio::test]
async fn get_streams_end_at_once() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let standing = client.get(None).await;
    let wish = json!({ "notifications": { "toolsListChanged": true } });
    let listening = site.stateless("subscriptions/listen", wish, &[]).await;
    let _time = PausedTime::start();
    let began = Instant::now();
    site.stop.cancel();
    let (standing, listening) = tokio::join!(standing.events(), listening.events());
    assert_eq!(standing, []);
    assert_eq!(listening.len(), 2, "that it listens, and that it does no longer: {listening:?}");
    assert_eq!(listening[1].1["id"], 1);
    site.served.await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO, "nothing waits");
}

#[tokio::test]
async fn calls_in_flight_may_finish() {
    let time = PausedTime::start();
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let watched = client.call_with_progress(1, "slow", json!({ "ms": 300 })).await;
    let alone = json!({ "name": "slow", "arguments": { "ms": 300 } });
    let alone = site.stateless("tools/call", alone, &[]);
    let stop = async {
        time.advance(Duration::from_millis(100)).await;
        site.stop.cancel();
        time.advance(Duration::from_millis(300)).await;
    };
    let (watched, alone, ()) = tokio::join!(watched.answer(), alone, stop);
    assert_eq!(text_of(&watched), "slow");
    assert_eq!(text_of(&alone.answer().await), "slow");
    site.served.await.unwrap();
}

#[tokio::test]
async fn calls_that_take_too_long_are_cut() {
    let time = PausedTime::start();
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let _watched = client.call_with_progress(1, "slow", json!({ "ms": 1_000_000 })).await;
    site.stop.cancel();
    time.advance(SHUTDOWN_TIMEOUT / 2).await;
    assert_eq!(site.ended(), 0, "they have some time");
    time.advance(SHUTDOWN_TIMEOUT).await;
    site.until_ended(1).await;
    site.served.await.unwrap();
}

/// A site that ends with this shutdown.
pub(crate) async fn ending_by(shutdown: &Shutdown) -> Site {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (endpoint, told) = (Endpoint::builder(tools::server().0).build(), shutdown.clone());
    let served = async move { endpoint.serve_with_shutdown(listener, &told).await };
    Site::served_by(address, tokio::spawn(served))
}

/// Waits until the server says that it is not ready.
pub(crate) async fn until_not_ready(site: &Site) {
    for _ in 0..5000 {
        let reply = site.send("GET", "/readyz", &[], b"").await;
        if reply.status == 503 {
            assert_eq!(reply.text().await, "the server stops\n");
            return;
        }
        real_pause().await;
    }
    panic!("it is still ready");
}

#[tokio::test]
async fn draining_serves_everything_and_is_not_ready() {
    let time = PausedTime::start();
    let drain = Duration::from_secs(30);
    let shutdown = Shutdown::new(SHUTDOWN_TIMEOUT).drain(drain);
    let site = ending_by(&shutdown).await;
    let client = Client::open(&site, LATEST_SESSION).await;
    shutdown.trigger();
    until_not_ready(&site).await;
    assert_eq!(site.send("GET", "/healthz", &[], b"").await.status, 200);
    client.is_served().await;
    site.serves().await;
    let standing = client.get(None).await;
    assert_eq!(standing.status, 200, "streams are opened as before");
    time.advance(drain - Duration::from_millis(100)).await;
    assert!(!site.served.is_finished(), "it drains");
    site.serves().await;
    time.advance(Duration::from_millis(101)).await;
    assert_eq!(standing.events().await, []);
    site.served.await.unwrap();
}

#[tokio::test]
async fn each_further_trigger_hastens_the_end() {
    let _time = PausedTime::start();
    let long = Duration::from_secs(600);
    let shutdown = Shutdown::new(long).drain(long);
    let site = ending_by(&shutdown).await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let watched = client.call_with_progress(1, "slow", json!({ "ms": 1_000_000 })).await;
    shutdown.trigger();
    until_not_ready(&site).await;
    shutdown.trigger();
    shutdown.ending().await;
    let (address, served) = (site.address, site.served);
    let mut refused = false;
    for _ in 0..5000 {
        refused = tokio::net::TcpStream::connect(address).await.is_err();
        if refused {
            break;
        }
        real_pause().await;
    }
    assert!(refused, "nothing new is accepted");
    assert!(!served.is_finished(), "the call may go on");
    shutdown.trigger();
    served.await.expect("the call is cut");
    drop(watched);
}
