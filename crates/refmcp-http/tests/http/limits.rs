//! Every limit, and how it is said that one was met.

use std::time::Duration;

use refmcp_http::Options;
use serde_json::json;

use crate::support::{Client, LATEST_SESSION, Site, opening, request};

#[tokio::test]
async fn bodies_have_a_size() {
    let site = Site::open(Options { body_bytes: 1000, ..Options::default() }).await;
    let client = Client::open(&site, LATEST_SESSION).await;
    assert_eq!(client.call(1, "echo", json!({ "message": "x".repeat(500) })).await.status, 200);
    assert_eq!(client.call(2, "echo", json!({ "message": "x".repeat(1000) })).await.status, 413);
}

#[tokio::test]
async fn bodies_have_a_kind() {
    let site = Site::usual().await;
    for (header, status) in [
        (("Content-Type", "text/plain"), 415),
        (("Content-Type", "application/json; charset=latin1"), 415),
        (("Content-Encoding", "gzip"), 415),
        (("Accept", "application/json"), 406),
        (("Accept", "text/event-stream"), 406),
        (("Accept", "*/*"), 200),
    ] {
        let reply = site.post(&[header], &request("initialize", opening(LATEST_SESSION))).await;
        assert_eq!(reply.status, status, "{header:?}");
    }
    let client = Client::open(&site, LATEST_SESSION).await;
    let mut headers = client.headers().to_vec();
    headers.push(("Accept", "application/json"));
    assert_eq!(site.send("GET", "/mcp", &headers, b"").await.status, 406);
}

#[tokio::test]
async fn there_are_only_so_many_sessions() {
    let site = Site::open(Options { max_sessions: 1, ..Options::default() }).await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let refused = site.post(&[], &request("initialize", opening(LATEST_SESSION))).await;
    assert_eq!((refused.status, refused.header("mcp-session-id")), (503, None));
    assert!(refused.header("retry-after").is_some());
    let refused = site.send("GET", "/sse", &[], b"").await;
    assert_eq!(refused.status, 503);
    assert!(refused.header("retry-after").is_some());
    site.send("DELETE", "/mcp", &client.headers(), b"").await;
    Client::open(&site, LATEST_SESSION).await;
}

#[tokio::test]
async fn a_silent_session_ends() {
    let site = Site::open(Options { session_idle: Duration::ZERO, ..Options::default() }).await;
    let reply = site.post(&[], &request("initialize", opening(LATEST_SESSION))).await;
    let session = reply.header("mcp-session-id").unwrap().to_owned();
    let headers = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", LATEST_SESSION)];
    for _ in 0..80 {
        if site.post(&headers, &request("ping", json!({}))).await.status == 404 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the session is still there");
}
