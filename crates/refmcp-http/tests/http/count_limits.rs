//! Limits of requests, connections, sessions and streams, and `Retry-After` of what is refused.

use std::time::Duration;

use refmcp_http::{Endpoint, Options, Rate};
use refmcp_testkit::paused::PausedTime;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::http_sse;
use crate::support::http1::Reply;
use crate::support::{Client, LATEST_SESSION, STATELESS, Site, initialize_params, request};

/// Refused with this status and `Retry-After`.
fn later(reply: &Reply, status: u16, what: &str) {
    assert_eq!(reply.status, status, "{what}");
    let seconds: u64 = reply.header("retry-after").expect(what).parse().unwrap();
    assert!((1..=60).contains(&seconds), "{what}: {seconds}");
}

#[tokio::test]
async fn every_route_has_the_rate_limit() {
    let _time = PausedTime::start();
    for route in Endpoint::routes() {
        for method in route.methods.iter().chain(&["OPTIONS"]) {
            let rate = Some(Rate { per_second: 1, burst: 3 });
            let site = Site::open(Options { rate, rate_on_loopback: true, ..Options::default() }).await;
            let what = format!("{method} {}", route.path);
            let mut replies = Vec::new();
            for turn in 0..4 {
                // Forwarding headers of an untrusted client do not change its address.
                let claimed = format!("10.0.0.{turn}");
                let claims =
                    [("X-Forwarded-For", &*claimed), ("X-Real-IP", &claimed), ("Forwarded", "for=10.1.1.1")];
                replies.push(site.send(method, route.path, &claims, b"{}").await);
            }
            let refused: Vec<bool> = replies.iter().map(|reply| reply.status == 429).collect();
            assert_eq!(refused, [false, false, false, true], "{what}");
            later(&replies[3], 429, &what);
            #[cfg(target_os = "linux")]
            assert_ne!(from_elsewhere(&site).await.status, 429, "{what}");
        }
    }
}

/// A request from another address.
async fn from_elsewhere(site: &Site) -> Reply {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut socket = socket.connect(site.address).await.unwrap();
    socket.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    Reply::read(socket, Vec::new()).await.unwrap()
}

#[tokio::test]
async fn a_rate_refills() {
    let time = PausedTime::start();
    let rate = Some(Rate { per_second: 50, burst: 2 });
    let site = Site::open(Options { rate, rate_on_loopback: true, ..Options::default() }).await;
    let asks = async || site.send("GET", "/healthz", &[], b"").await.status;
    assert_eq!([asks().await, asks().await, asks().await], [200, 200, 429], "a burst");
    time.advance(Duration::from_millis(19)).await;
    assert_eq!(asks().await, 429, "a fiftieth of a second has not passed");
    time.advance(Duration::from_millis(1)).await;
    assert_eq!([asks().await, asks().await], [200, 429], "one more");
    time.advance(Duration::from_secs(10)).await;
    assert_eq!([asks().await, asks().await, asks().await], [200, 200, 429], "a burst, and no more");
}

#[tokio::test]
async fn requests_in_flight_are_limited() {
    let time = PausedTime::start();
    let site = Site::open(Options { max_in_flight: 2, ..Options::default() }).await;
    let call = |ms: u64| json!({ "name": "slow", "arguments": { "ms": ms } });
    let held = async {
        tokio::join!(
            site.stateless("tools/call", call(600), &[]),
            site.stateless("tools/call", call(600), &[])
        )
    };
    let others = async {
        site.until_metric("refmcp_requests_in_flight", 2.0).await;
        for (method, path) in
            [("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp"), ("GET", "/sse"), ("POST", "/messages")]
        {
            later(&site.send(method, path, &[], b"{}").await, 503, path);
        }
        later(&site.stateless("tools/call", call(0), &[]).await, 503, "a call");
        for path in ["/healthz", "/readyz", "/metrics"] {
            assert_eq!(site.send("GET", path, &[], b"").await.status, 200, "who operates it can still look");
        }
        time.advance(Duration::from_millis(601)).await;
    };
    let ((one, two), ()) = tokio::join!(held, others);
    assert_eq!((one.status, two.status), (200, 200));
    site.serves().await;
}

#[tokio::test]
async fn connections_are_limited() {
    let site = Site::open(Options { max_connections: 3, ..Options::default() }).await;
    let asks = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(site.send_raw(asks).await.unwrap());
    }
    // It is refused before it has sent a request.
    let mut socket = TcpStream::connect(site.address).await.unwrap();
    let mut told = String::new();
    socket.read_to_string(&mut told).await.unwrap();
    assert!(told.starts_with("HTTP/1.1 503 ") && told.contains("retry-after: 1"), "{told}");
    let freed = held.pop().unwrap();
    assert_eq!(freed.again(asks).await.unwrap().status, 200, "those who are in are served");
    for _ in 0..200 {
        // A refused connection may be reset while it sends.
        if site.send_raw(asks).await.is_some_and(|reply| reply.status == 200) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("no connection is accepted again");
}

#[tokio::test]
async fn streams_of_a_session_are_limited() {
    let site = Site::open(Options { max_streams: 2, ..Options::default() }).await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let forever = json!({ "ms": 1_000_000 });
    let one = client.call_with_progress(1, "slow", forever.clone()).await;
    let two = client.call_with_progress(2, "slow", forever.clone()).await;
    assert_eq!((one.status, two.status), (200, 200));
    for id in 3..6 {
        later(&client.call_with_progress(id, "slow", forever.clone()).await, 429, "one more");
    }
    site.serves().await;
    assert_eq!(client.delete().await, 204);
    site.until_ended(2).await;
}

#[tokio::test]
async fn open_streams_are_limited() {
    let site = Site::open(Options { max_open_streams: 2, ..Options::default() }).await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let held = (client.get(None).await, Client::open(&site, LATEST_SESSION).await.get(None).await);
    site.until_metric("refmcp_streams", 2.0).await;
    later(&client.get(None).await, 503, "GET /mcp");
    later(&site.send("GET", "/sse", &[], b"").await, 503, "GET /sse");
    later(
        &client.call_with_progress(99, "slow", json!({ "ms": 1_000_000 })).await,
        503,
        "a call with progress",
    );
    site.until_ended(1).await;
    let again = client.call(99, "echo", json!({ "message": "what was refused is not in flight" })).await;
    assert_eq!(again.status, 200);
    let wish = json!({ "notifications": { "toolsListChanged": true } });
    later(&site.stateless("subscriptions/listen", wish, &[]).await, 503, "listen");
    client.is_served().await;
    site.serves().await;
    drop(held);
    site.until_metric("refmcp_streams", 0.0).await;
    assert_eq!(client.get(None).await.status, 200);
    assert_eq!(site.send("POST", "/mcp", &[("MCP-Protocol-Version", STATELESS)], b"{}").await.status, 400);
}

/// The status of `initialize`, and the session that it opened.
async fn initialize(site: &Site, headers: &[(&str, &str)]) -> (u16, Option<String>) {
    let reply = site.post(headers, &request("initialize", initialize_params(LATEST_SESSION))).await;
    if reply.status != 200 {
        assert!(reply.header("retry-after").is_some(), "{}", reply.status);
    }
    (reply.status, reply.header("mcp-session-id").map(str::to_owned))
}

#[tokio::test]
async fn sessions_are_limited() {
    let site = Site::open(Options { max_sessions: 1, ..Options::default() }).await;
    let (stream, _) = http_sse::open(&site).await;
    // It is in use, so it does not end for another.
    for headers in [&[][..], &FROM_ELSEWHERE] {
        assert_ne!(initialize(&site, headers).await.0, 200);
    }
    drop(stream);
    site.until_metric("refmcp_sessions{transport=\"http+sse\"}", 0.0).await;
    Client::open(&site, LATEST_SESSION).await;
}

/// Headers of a trusted proxy.
const FROM_ELSEWHERE: [(&str, &str); 1] = [("X-Forwarded-For", "192.0.2.7")];

/// One that takes so many sessions of a client, behind a proxy.
async fn with_sessions_per_client(most: usize, max_sessions: usize) -> Site {
    let trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    let max_sessions_per_client = Some(most);
    Site::open(Options { max_sessions, max_sessions_per_client, trusted_proxies, ..Options::default() }).await
}

#[tokio::test]
async fn a_client_with_too_many_sessions_loses_its_own_that_is_idle() {
    let site = with_sessions_per_client(2, 100).await;
    let (_, other) = initialize(&site, &FROM_ELSEWHERE).await;
    let other = Client::of_session(&site, other.unwrap(), LATEST_SESSION);
    let one = Client::open(&site, LATEST_SESSION).await;
    let two = Client::open(&site, LATEST_SESSION).await;
    let stream = one.get(None).await;
    let three = Client::open(&site, LATEST_SESSION).await;
    assert_eq!(two.call(1, "echo", json!({ "message": "m" })).await.status, 404, "it was idle");
    one.is_served().await;
    three.is_served().await;
    assert_eq!(site.metric("refmcp_sessions_evicted_total").await, 1.0);
    let held = three.get(None).await;
    assert_eq!(initialize(&site, &[]).await.0, 429, "none is idle");
    assert_eq!(site.metric("refmcp_rejections_total{reason=\"client_sessions\"}").await, 1.0);
    assert_eq!(initialize(&site, &FROM_ELSEWHERE).await.0, 200, "another client has room");
    drop((stream, held));
    site.until_metric("refmcp_streams", 0.0).await;
    assert_eq!(initialize(&site, &[]).await.0, 200, "one is idle again");
    assert_eq!(other.post(&request("ping", json!({}))).await.status, 200, "it never lost one to another");
}

#[tokio::test]
async fn when_all_sessions_are_open_the_client_with_the_most_loses_one() {
    let site = with_sessions_per_client(3, 4).await;
    let (_, other) = initialize(&site, &FROM_ELSEWHERE).await;
    let other = Client::of_session(&site, other.unwrap(), LATEST_SESSION);
    let mut own = Vec::new();
    for _ in 0..3 {
        own.push(Client::open(&site, LATEST_SESSION).await);
    }
    assert_eq!(initialize(&site, &[("X-Forwarded-For", "192.0.2.8")]).await.0, 200);
    assert_eq!(own[0].call(1, "echo", json!({ "message": "m" })).await.status, 404);
    own[1].is_served().await;
    assert_eq!(other.post(&request("ping", json!({}))).await.status, 200);
}

#[tokio::test]
async fn refused_requests_are_not_counted() {
    let max_sessions_per_client = Some(3);
    let site = Site::open(Options { max_sessions: 2, max_sessions_per_client, ..Options::default() }).await;
    let held = (http_sse::open(&site).await, http_sse::open(&site).await);
    for _ in 0..5 {
        later(
            &site.post(&[], &request("initialize", initialize_params(LATEST_SESSION))).await,
            503,
            "no room",
        );
    }
    drop(held);
    site.until_metric("refmcp_sessions{transport=\"http+sse\"}", 0.0).await;
    let one = Client::open(&site, LATEST_SESSION).await;
    let two = Client::open(&site, LATEST_SESSION).await;
    one.is_served().await;
    two.is_served().await;
}
