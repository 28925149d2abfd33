//! Health, readiness, and what the metrics count.

use refmcp_http::{Options, Rate};
use serde_json::json;

use crate::http_sse;
use crate::support::websocket_frames::RawSocket;
use crate::support::{Client, LATEST_SESSION, Site, request};

#[tokio::test]
async fn a_running_server_is_alive_and_ready() {
    let site = Site::usual().await;
    for (path, says) in [("/healthz", "alive\n"), ("/readyz", "ready\n")] {
        let reply = site.send("GET", path, &[], b"").await;
        assert_eq!((reply.status, reply.header("cache-control")), (200, Some("no-store")), "{path}");
        assert_eq!(reply.text().await, says);
    }
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(site.send("HEAD", path, &[], b"").await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn requests_sessions_and_streams_are_counted() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    for _ in 0..3 {
        client.is_served().await;
    }
    assert_eq!(client.call(1, "no such tool", json!({})).await.status, 200);
    client.call(1, "echo", json!({ "message": 5 })).await;
    let watched = client.call_with_progress(7, "slow", json!({ "ms": 1_000_000 })).await;
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } });
    client.post(&cancel).await;
    watched.events().await;
    let mut asked = client.call(8, "ask", json!({})).await;
    asked.event().await.unwrap();
    let (_stream, _) = http_sse::open(&site).await;
    let _socket = RawSocket::open(&site).await;
    let _standing = client.get(None).await;
    for (name, count) in [
        ("refmcp_sessions{transport=\"streamable\"}", 1.0),
        ("refmcp_sessions{transport=\"http+sse\"}", 1.0),
        ("refmcp_sessions_opened_total", 2.0),
        ("refmcp_websockets", 1.0),
        ("refmcp_streams", 3.0),
        ("refmcp_requests_in_flight", 0.0),
        ("refmcp_calls_total{method=\"tools/call\",ending=\"done\"}", 3.0),
        ("refmcp_calls_total{method=\"tools/call\",ending=\"cancelled\"}", 1.0),
        ("refmcp_calls_total{method=\"tools/call\",ending=\"asked\"}", 1.0),
        ("refmcp_calls_total{method=\"tools/list\",ending=\"done\"}", 0.0),
        ("refmcp_responses_total{route=\"/sse\",status=\"2xx\"}", 1.0),
        ("refmcp_responses_total{route=\"/mcp/ws\",status=\"1xx\"}", 1.0),
    ] {
        site.until_metric(name, count).await;
    }
    let failed = site.metric("refmcp_calls_total{method=\"tools/call\",ending=\"failed\"}").await
        + site.metric("refmcp_calls_total{method=\"tools/call\",ending=\"tool_error\"}").await;
    assert!(failed <= 2.0, "{failed}");
    assert_eq!(client.delete().await, 204);
    site.until_metric("refmcp_sessions{transport=\"streamable\"}", 0.0).await;
    site.until_metric("refmcp_sessions_opened_total", 2.0).await;
}

/// Requests that no handler runs for are counted like the others, and have a latency.
#[tokio::test]
async fn every_method_is_counted() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    client.post(&request("ping", json!({}))).await;
    client.post(&request("ping", json!({}))).await;
    client.post(&request("logging/setLevel", json!({ "level": "error" }))).await;
    client.post(&request("logging/setLevel", json!({ "level": "loud" }))).await;
    client.post(&request("resources/subscribe", json!({ "uri": "test://a" }))).await;
    client.post(&request("no/such/method", json!({}))).await;
    site.stateless("server/discover", json!({}), &[]).await;
    let _listening = site.stateless("subscriptions/listen", json!({ "notifications": {} }), &[]).await;
    for (method, done, failed) in [
        ("initialize", 1.0, 0.0),
        ("ping", 2.0, 0.0),
        ("logging/setLevel", 1.0, 1.0),
        ("server/discover", 1.0, 0.0),
        ("subscriptions/listen", 1.0, 0.0),
        ("other", 0.0, 1.0),
    ] {
        let ended = |ending: &str| format!("refmcp_calls_total{{method=\"{method}\",ending=\"{ending}\"}}");
        site.until_metric(&ended("done"), done).await;
        site.until_metric(&ended("failed"), failed).await;
        let count = format!("refmcp_call_seconds_count{{method=\"{method}\"}}");
        site.until_metric(&count, done + failed).await;
    }
    assert!(site.metric("refmcp_call_seconds_sum{method=\"initialize\"}").await > 0.0);
    let subscribed = "refmcp_call_seconds_count{method=\"resources/subscribe\"}";
    site.until_metric(subscribed, 1.0).await;
}

#[tokio::test]
async fn bytes_are_counted_once() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let numbers = async || {
        (site.metric("refmcp_received_bytes_total").await, site.metric("refmcp_sent_bytes_total").await)
    };
    let before = numbers().await;
    let echo = request("tools/call", json!({ "name": "echo", "arguments": { "message": "x".repeat(1000) } }));
    let answer = client.post(&echo).await.text().await;
    let after = numbers().await;
    assert_eq!(after.0 - before.0, echo.to_string().len() as f64);
    assert_eq!(after.1 - before.1, answer.len() as f64);
    client
        .call_with_progress(1, "steps", json!({ "n": 3, "ms": 1, "note": "x".repeat(1000) }))
        .await
        .events()
        .await;
    assert!((4000.0..6000.0).contains(&(numbers().await.1 - after.1)));
}

/// A reason, and the method, path, headers and body of a request that is refused for it.
type Refused<'a> = (&'a str, &'a str, &'a str, &'a [(&'a str, &'a str)], &'a [u8]);

#[tokio::test]
async fn refusals_are_counted_by_their_reason() {
    let rate = Some(Rate { per_second: 1, burst: 1000 });
    let site =
        Site::open(Options { rate, rate_on_loopback: true, max_message_size: 1000, ..Options::default() })
            .await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let long = [b' '; 1001];
    let named = client.headers();
    let with = |header| [named[0], named[1], header];
    let refusals: [Refused<'_>; 12] = [
        ("host", "GET", "/healthz", &[("Host", "evil.com")], b""),
        ("origin", "GET", "/healthz", &[("Origin", "null")], b""),
        ("path", "GET", "/nothing", &[], b""),
        ("method", "PUT", "/mcp", &[], b""),
        ("content_type", "POST", "/mcp", &[("Content-Type", "text/plain")], b"{}"),
        ("accept", "POST", "/mcp", &[("Accept", "text/html")], b"{}"),
        ("body_size", "POST", "/mcp", &[], &long),
        ("session", "GET", "/mcp", &[("Mcp-Session-Id", "unknown")], b""),
        ("revision", "GET", "/mcp", &named[..1], b""),
        ("event_id", "GET", "/mcp", &with(("Last-Event-ID", "x")), b""),
        ("message", "POST", "/mcp", &[], b"{oops"),
        ("upgrade", "GET", "/mcp/ws", &[], b""),
    ];
    for (reason, method, path, headers, body) in refusals {
        let reply = site.send(method, path, headers, body).await;
        assert!((400..500).contains(&reply.status), "{reason}: {}", reply.status);
        site.until_metric(&format!("refmcp_rejections_total{{reason=\"{reason}\"}}"), 1.0).await;
    }
    site.until_metric("refmcp_rejections_total{reason=\"rate\"}", 0.0).await;
}
