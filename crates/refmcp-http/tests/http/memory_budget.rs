//! The memory budget: clients that do not read, or do not finish what they send, are refused when they hold their share;
//! others are served, and everything is given back.

use std::time::Duration;

use h2::client::Builder;
use refmcp_http::Options;
use refmcp_proto::frame::SseItem;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::http2::Peer;
use crate::support::websocket_frames::{RawSocket, frame};
use crate::support::{Client, STATELESS, Site, initialize_params, request, with_meta};

const BUDGET: usize = 8 << 20;

/// Bytes of a message that clients send and do not read.
const LARGE: usize = 512 << 10;

async fn site() -> Site {
    Site::with_memory(BUDGET, Options::default()).await
}

fn large_call(id: i64) -> Value {
    let params = json!({ "name": "echo", "arguments": { "message": "x".repeat(LARGE) } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": with_meta(params) })
}

/// What is held is within the budget; another client is served.
async fn holds(site: &Site) -> f64 {
    let held = site.metric("refmcp_memory_bytes").await;
    assert!(held <= BUDGET as f64, "{held}");
    assert_eq!(site.metric("refmcp_memory_limit_bytes").await, BUDGET as f64);
    site.serves().await;
    held
}

/// Everything is given back, but for the connection that asks for it.
async fn until_given_back(site: &Site) {
    site.until_quiet().await;
    site.until_metric("refmcp_memory_bytes", f64::from(16 << 10)).await;
}

/// Connects with small buffers.
async fn connect(site: &Site) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 << 10).unwrap();
    socket.connect(site.address).await.unwrap()
}

/// The head of a stateless call with a body of so many bytes.
fn head(site: &Site, length: usize) -> String {
    let named = format!("MCP-Protocol-Version: {STATELESS}\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\n");
    format!("{}{named}Content-Length: {length}\r\n\r\n", site.head("POST", "/mcp"))
}

#[tokio::test]
async fn responses_that_are_not_read_over_http1() {
    let site = site().await;
    let body = large_call(1).to_string();
    let mut stuck = Vec::new();
    for _ in 0..40 {
        let mut socket = connect(&site).await;
        let sent = async {
            socket.write_all(head(&site, body.len()).as_bytes()).await?;
            socket.write_all(body.as_bytes()).await
        };
        // One that is refused is closed while it sends.
        let _ = sent.await;
        stuck.push(socket);
    }
    assert!(holds(&site).await > (2 * LARGE) as f64);
    drop(stuck);
    until_given_back(&site).await;
}

#[tokio::test]
async fn bodies_that_are_not_complete() {
    let site = site().await;
    let part = vec![b' '; LARGE];
    let (mut stuck, mut refused) = (Vec::new(), 0);
    for _ in 0..40 {
        let mut socket = connect(&site).await;
        socket.write_all(head(&site, 2 * LARGE).as_bytes()).await.unwrap();
        let sending = tokio::time::timeout(Duration::from_secs(5), socket.write_all(&part));
        let _ = sending.await.unwrap();
        let mut start = [0; 12];
        if let Ok(Ok(12)) = tokio::time::timeout(Duration::from_millis(50), socket.read(&mut start)).await {
            assert_eq!(&start, b"HTTP/1.1 503");
            refused += 1;
        } else {
            stuck.push(socket);
        }
    }
    assert!(refused >= 20, "{refused}");
    assert!(holds(&site).await > (2 * LARGE) as f64);
    drop(stuck);
    until_given_back(&site).await;
}

#[tokio::test]
async fn responses_that_are_not_read_over_http2() {
    let site =
        Site::with_memory(BUDGET, Options { write_timeout: Duration::from_secs(2), ..Options::default() })
            .await;
    let mut builder = Builder::new();
    builder.initial_window_size(1);
    let peer = Peer::with(&site, &builder).await;
    let (mut kept, mut refused) = (Vec::new(), 0);
    for _ in 0..40 {
        let reply = peer.call("echo", json!({ "message": "x".repeat(LARGE) })).await.unwrap();
        let length = reply.headers().get("content-length").map(|length| length.to_str().unwrap().to_owned());
        match (reply.status().as_u16(), length) {
            (200, Some(length)) if length.parse::<usize>().unwrap() > LARGE => kept.push(reply),
            // Before it was executed, or after.
            (503, _) | (200 | 500, _) => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(kept.len() >= 2 && refused >= 5, "{} {refused}", kept.len());
    assert!(holds(&site).await > (2 * LARGE) as f64);
    // The client holds on to all of them, and so the server does not.
    for _ in 0..200 {
        if site.metric("refmcp_memory_bytes").await < LARGE as f64 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(site.metric("refmcp_memory_bytes").await < LARGE as f64);
    peer.is_served().await;
    drop((peer, kept));
    until_given_back(&site).await;
}

#[tokio::test]
async fn what_clients_say_of_themselves() {
    let site = site().await;
    let mut params = initialize_params("2025-11-25");
    params["capabilities"] = json!({ "experimental": { "large": { "text": "x".repeat(40 << 10) } } });
    let (mut opened, mut refused) = (0, 0);
    for _ in 0..100 {
        match site.post(&[], &request("initialize", params.clone())).await.status {
            200 => opened += 1,
            503 => refused += 1,
            other => panic!("{other}"),
        }
    }
    assert!(opened >= 2 && refused >= 10, "{opened} {refused}");
    assert!(holds(&site).await > BUDGET as f64 / 2.0);
}

#[tokio::test]
async fn what_clients_of_http_sse_say_of_themselves() {
    let site = site().await;
    let mut params = initialize_params("2024-11-05");
    params["capabilities"] = json!({ "experimental": { "large": { "text": "x".repeat(40 << 10) } } });
    let initialize = request("initialize", params).to_string();
    let (mut opened, mut refused) = (Vec::new(), 0);
    for _ in 0..100 {
        let mut stream = site.send("GET", "/sse", &[], b"").await;
        if stream.status == 503 {
            refused += 1;
            continue;
        }
        let Some(SseItem::Event(event)) = stream.item().await else { panic!("no event") };
        match site.send("POST", &event.data, &[], initialize.as_bytes()).await.status {
            202 => opened.push(stream),
            503 => refused += 1,
            other => panic!("{other}"),
        }
    }
    assert!(opened.len() >= 2 && refused >= 10, "{} {refused}", opened.len());
    assert!(holds(&site).await > BUDGET as f64 / 2.0);
    drop(opened);
    until_given_back(&site).await;
}

#[tokio::test]
async fn responses_to_a_batch() {
    let site = site().await;
    let client = Client::open(&site, "2025-03-26").await;
    let message = "x".repeat(20 << 10);
    let batch: Vec<_> = (1..=150)
        .map(|id| {
            let params = json!({ "name": "echo", "arguments": { "message": message } });
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
        })
        .collect();
    let reply = client.post(&Value::Array(batch)).await;
    let responses = reply.json().await;
    let responses = responses.as_array().unwrap();
    let mut ids: Vec<_> = responses.iter().map(|response| response["id"].as_i64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (1..=150).collect::<Vec<_>>());
    let errors: Vec<_> = responses.iter().filter(|response| response["error"].is_object()).collect();
    assert!(!errors.is_empty());
    for error in errors {
        assert!(error["error"]["message"].as_str().unwrap().contains("too many bytes are held"), "{error}");
    }
    client.is_served().await;
    assert_eq!(client.delete().await, 204);
    until_given_back(&site).await;
}

#[tokio::test]
async fn websockets_that_are_not_read() {
    let site = site().await;
    let (mut stuck, mut sent) = (Vec::new(), 0);
    for _ in 0..4 {
        let mut socket = RawSocket::open(&site).await;
        for id in 0..100 {
            let params = json!({ "name": "echo", "arguments": { "message": "x".repeat(LARGE) } });
            let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
            let message = frame(0x81, call.to_string().as_bytes());
            match tokio::time::timeout(Duration::from_millis(300), socket.try_send(&message)).await {
                Ok(true) => sent += 1,
                Ok(false) => panic!("closed after {sent} messages"),
                Err(_) => break,
            }
        }
        stuck.push(socket);
    }
    let held = holds(&site).await;
    assert!(held > LARGE as f64, "{held} after {sent} messages");
    drop(stuck);
    until_given_back(&site).await;
}
