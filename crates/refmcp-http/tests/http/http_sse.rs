//! HTTP+SSE: one stream for all messages to the client, one URI for all messages of the client.

use std::time::Duration;

use refmcp_proto::frame::SseItem;
use serde_json::{Value, json};

use crate::support::http1::Reply;
use crate::support::{Client, Site, initialize_params, request, text_of};

/// Opens a stream; gives it with the URI to post to.
pub(crate) async fn open(site: &Site) -> (Reply, String) {
    let mut stream = site.send("GET", "/sse", &[], b"").await;
    assert_eq!((stream.status, stream.is_sse()), (200, true));
    let Some(SseItem::Event(event)) = stream.item().await else { panic!("no event") };
    assert_eq!(event.event, "endpoint");
    assert!(event.data.starts_with("/messages?sessionId="));
    post(site, &event.data, &request("initialize", initialize_params("2024-11-05"))).await;
    let (_, answer) = stream.event().await.unwrap();
    assert_eq!(answer["result"]["protocolVersion"], "2024-11-05");
    post(site, &event.data, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    (stream, event.data)
}

pub(crate) async fn post(site: &Site, address: &str, message: &Value) {
    let reply = site.send("POST", address, &[], message.to_string().as_bytes()).await;
    assert_eq!(reply.status, 202);
}

/// Calls `steps` with a note and gives every message up to the answer.
pub(crate) async fn steps(site: &Site, stream: &mut Reply, address: &str, note: &str) -> Vec<Value> {
    let arguments = json!({ "n": 3, "ms": 5, "note": note });
    let params = json!({ "name": "steps", "arguments": arguments, "_meta": { "progressToken": 1 } });
    post(site, address, &request("tools/call", params)).await;
    let mut heard = Vec::new();
    loop {
        let (_, message) = stream.event().await.unwrap();
        let done = message.get("id").is_some();
        heard.push(message);
        if done {
            return heard;
        }
    }
}

#[tokio::test]
async fn answers_come_on_the_stream_of_their_session() {
    let site = Site::usual().await;
    let ((mut one, to_one), (mut two, to_two)) = tokio::join!(open(&site), open(&site));
    let (one, two) =
        tokio::join!(steps(&site, &mut one, &to_one, "one"), steps(&site, &mut two, &to_two, "two"));
    for (heard, note) in [(one, "3 steps one"), (two, "3 steps two")] {
        assert_eq!(heard.len(), 4, "{heard:?}");
        assert_eq!(text_of(&heard[3]), note);
    }
}

#[tokio::test]
async fn errors_are_refused_or_answered_on_the_stream() {
    let site = Site::usual().await;
    assert_eq!(site.send("POST", "/sse", &[], b"{}").await.status, 405);
    assert_eq!(site.send("POST", "/messages?sessionId=unknown", &[], b"{}").await.status, 404);
    assert_eq!(site.send("POST", "/messages", &[], b"{}").await.status, 400);
    assert_eq!(site.send("GET", "/sse", &[("Accept", "application/json")], b"").await.status, 406);
    let (_stream, address) = open(&site).await;
    assert_eq!(site.send("POST", &address, &[("Content-Type", "text/plain")], b"{}").await.status, 415);
    assert_eq!(site.send("POST", &address, &[("Content-Encoding", "gzip")], b"{}").await.status, 415);
}

#[tokio::test]
async fn the_session_ends_with_its_stream() {
    let site = Site::usual().await;
    let (stream, address) = open(&site).await;
    drop(stream);
    let ping = request("ping", json!({})).to_string();
    for _ in 0..100 {
        if site.send("POST", &address, &[], ping.as_bytes()).await.status == 404 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the session is still there");
}

#[tokio::test]
async fn a_session_belongs_to_one_transport() {
    let site = Site::usual().await;
    let (_stream, address) = open(&site).await;
    let http_sse = address.rsplit_once('=').unwrap().1.to_owned();
    let ping = request("ping", json!({}));
    assert_eq!(site.post(&[("Mcp-Session-Id", &http_sse)], &ping).await.status, 404);
    let client = Client::open(&site, "2025-06-18").await;
    let crossed = format!("/messages?sessionId={}", client.session);
    assert_eq!(site.send("POST", &crossed, &[], ping.to_string().as_bytes()).await.status, 404);
}
