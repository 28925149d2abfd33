//! Clients that stop reading: messages to them are kept up to a limit, and no call waits for them.

use std::time::Duration;

use refmcp_http::Options;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};

use crate::http_sse;
use crate::support::{Client, LATEST_SESSION, STATELESS, Site, request, with_meta};

const STEPS: usize = 200;
const NOTE: usize = 100_000;
/// What fits into the sockets and buffers between us, and some more.
const ON_THE_WAY: f64 = (STEPS * NOTE / 2) as f64;

/// Sends a request on a connection with small buffers, and reads nothing of the response.
async fn send_and_ignore(site: &Site, head: &str, body: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 << 10).unwrap();
    let mut socket = socket.connect(site.address).await.unwrap();
    let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    socket.write_all(request.as_bytes()).await.unwrap();
    socket
}

async fn site() -> Site {
    Site::open(Options { stream_bytes: 1 << 20, ..Options::default() }).await
}

fn much() -> serde_json::Value {
    let arguments = json!({ "n": STEPS, "ms": 1, "note": "x".repeat(NOTE) });
    json!({ "name": "steps", "arguments": arguments, "_meta": { "progressToken": 1 } })
}

/// The call has ended although the client does not read; only so much of it was sent.
async fn nothing_waits(site: &Site) {
    site.until_ended(1).await;
    let sent = site.metric("refmcp_sent_bytes_total").await;
    assert!(sent < ON_THE_WAY, "{sent}");
    site.serves().await;
}

#[tokio::test]
async fn in_a_session() {
    let site = site().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let named = client.headers().map(|(name, value)| format!("{name}: {value}\r\n")).concat();
    let head = site.head("POST", "/mcp") + &named;
    let stuck = send_and_ignore(&site, &head, &request("tools/call", much()).to_string()).await;
    nothing_waits(&site).await;
    client.is_served().await;
    drop(stuck);
    site.until_quiet().await;
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_disconnected() {
    let write_timeout = Duration::from_millis(300);
    let site = Site::open(Options { write_timeout, ..Options::default() }).await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let named = client.headers().map(|(name, value)| format!("{name}: {value}\r\n")).concat();
    let head = site.head("POST", "/mcp") + &named;
    let stuck = send_and_ignore(&site, &head, &request("tools/call", much()).to_string()).await;
    site.until_ended(1).await;
    // The client holds on to its end all the while.
    site.until_quiet().await;
    client.is_served().await;
    drop(stuck);
}

#[tokio::test]
async fn without_a_session() {
    let site = site().await;
    let named = format!("MCP-Protocol-Version: {STATELESS}\r\nMcp-Method: tools/call\r\nMcp-Name: steps\r\n");
    let head = site.head("POST", "/mcp") + &named;
    let stuck = send_and_ignore(&site, &head, &request("tools/call", with_meta(much())).to_string()).await;
    nothing_waits(&site).await;
    drop(stuck);
    site.until_quiet().await;
}

#[tokio::test]
async fn over_two_endpoints() {
    let site = site().await;
    // As much as a client needs to know where to post; then it reads no more.
    let (stream, address) = http_sse::open(&site).await;
    let echo = json!({ "name": "echo", "arguments": { "message": "x".repeat(NOTE) } });
    let echo = request("tools/call", echo).to_string();
    for _ in 0..STEPS {
        // The session ends once messages were dropped.
        let reply = site.send("POST", &address, &[], echo.as_bytes()).await;
        assert!([202, 404].contains(&reply.status), "{}", reply.status);
    }
    let sent = site.metric("refmcp_sent_bytes_total").await;
    assert!(sent < ON_THE_WAY, "{sent}");
    site.serves().await;
    // A client that reads again gets what was sent, and the end: messages are not skipped silently.
    let heard = stream.events().await.len();
    assert!(heard < STEPS, "{heard}");
    site.until_quiet().await;
}
