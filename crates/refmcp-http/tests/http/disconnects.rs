//! Connections that are closed or reset after any byte, sent or read: the server goes on, and nothing is left of them.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use refmcp_http::Options;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::http_sse;
use crate::support::websocket_frames::{LAST, TEXT, frame, handshake};
use crate::support::{Client, LATEST_SESSION, STATELESS, Site, initialize_params, request, with_meta};

/// Connections at once.
const TOGETHER: usize = 16;
/// After such a silence nothing more is expected.
const SILENCE: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Copy)]
enum Break {
    /// Closed normally.
    Close,
    /// Reset.
    Reset,
}

#[derive(Debug, Clone, Copy)]
enum After {
    Sending(usize),
    Reading(usize),
}

/// Sends so many bytes, reads so many of the response, and disconnects.
async fn break_off(site: &Site, bytes: &[u8], after: After, how: Break) {
    let mut socket = TcpStream::connect(site.address).await.unwrap();
    let (sent, read) = match after {
        After::Sending(count) => (&bytes[..count], 0),
        After::Reading(count) => (bytes, count),
    };
    socket.write_all(sent).await.unwrap();
    // There may be less than was there the last time.
    let _ = timeout(SILENCE * 10, socket.read_exact(&mut vec![0; read])).await;
    match how {
        Break::Close => {
            let _ = socket.shutdown().await;
        }
        Break::Reset => socket.set_zero_linger().unwrap(),
    }
}

/// How many bytes are answered to this.
async fn length_of_answer(site: &Site, bytes: &[u8]) -> usize {
    let mut socket = TcpStream::connect(site.address).await.unwrap();
    socket.write_all(bytes).await.unwrap();
    let mut heard = Vec::new();
    socket.read_buf(&mut heard).await.unwrap();
    while timeout(SILENCE, socket.read_buf(&mut heard))
        .await
        .is_ok_and(|read| read.is_ok_and(|count| count > 0))
    {}
    assert!(heard.starts_with(b"HTTP/1.1 "), "{}", String::from_utf8_lossy(&heard));
    heard.len()
}

/// Disconnects after every byte of an exchange. Attempts differ only in their number.
async fn everywhere(site: &Site, exchange: impl Fn(usize) -> Vec<u8>) {
    let bytes = exchange(0);
    let answer = length_of_answer(site, &bytes).await;
    let sending = (0..=bytes.len()).map(After::Sending);
    let places = sending.chain((1..=answer).map(After::Reading));
    let breaks = places.flat_map(|place| [(place, Break::Close), (place, Break::Reset)]);
    let attempts = breaks.enumerate().map(|(number, (place, how))| {
        let bytes = exchange(number + 1);
        async move { break_off(site, &bytes, place, how).await }
    });
    stream::iter(attempts).buffer_unordered(TOGETHER).collect::<Vec<()>>().await;
    site.serves().await;
}

fn whole(head: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// A request whose id has always as many digits.
fn numbered(number: usize, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 100_000 + number, "method": method, "params": params })
}

fn named(client: &Client<'_>) -> String {
    client.headers().map(|(name, value)| format!("{name}: {value}\r\n")).concat()
}

fn echo() -> Value {
    json!({ "name": "echo", "arguments": { "message": "m" } })
}

fn steps() -> Value {
    json!({ "name": "steps", "arguments": { "n": 2, "ms": 1 }, "_meta": { "progressToken": 1 } })
}

/// Waits until all is as it was before.
async fn left_alone(site: &Site) {
    site.until_quiet().await;
    for transport in ["streamable", "http+sse"] {
        site.until_metric(&format!("refmcp_sessions{{transport=\"{transport}\"}}"), 0.0).await;
    }
    site.serves().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_survive_their_connections() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let head = site.head("POST", "/mcp") + &named(&client);
    everywhere(&site, |number| whole(&head, &numbered(number, "tools/call", &echo()))).await;
    everywhere(&site, |number| whole(&head, &numbered(number, "tools/call", &steps()))).await;
    client.is_served().await;
    let get = format!("{}{}\r\n", site.head("GET", "/mcp"), named(&client)).into_bytes();
    everywhere(&site, |_| get.clone()).await;
    client.is_served().await;
    assert_eq!(client.delete().await, 204);
    left_alone(&site).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_are_never_used_end() {
    let initialize_within = Duration::from_millis(500);
    let site = Site::open(Options { initialize_within, ..Options::default() }).await;
    let initialize = request("initialize", initialize_params(LATEST_SESSION));
    let head = site.head("POST", "/mcp");
    everywhere(&site, |_| whole(&head, &initialize)).await;
    left_alone(&site).await;
    // A session that is to be ended must not end before.
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let delete = format!("{}{}\r\n", site.head("DELETE", "/mcp"), named(&client)).into_bytes();
    // The first attempt to see how it is answered ends the session; whatever follows finds none.
    everywhere(&site, |_| delete.clone()).await;
    left_alone(&site).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stateless_requests_leave_nothing() {
    let site = Site::usual().await;
    for (name, params) in [("echo", echo()), ("steps", steps())] {
        let head = site.head("POST", "/mcp")
            + &format!("MCP-Protocol-Version: {STATELESS}\r\nMcp-Method: tools/call\r\nMcp-Name: {name}\r\n");
        everywhere(&site, |number| whole(&head, &numbered(number, "tools/call", &with_meta(params.clone()))))
            .await;
    }
    left_alone(&site).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_sse_leaves_nothing() {
    let site = Site::usual().await;
    let get = format!("{}\r\n", site.head("GET", "/sse")).into_bytes();
    everywhere(&site, |_| get.clone()).await;
    let (mut stream, address) = http_sse::open(&site).await;
    let head = site.head("POST", &address);
    everywhere(&site, |number| whole(&head, &numbered(number, "tools/call", &echo()))).await;
    // What was sent whole was answered, here.
    let (_, answer) = stream.event().await.unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "m");
    drop(stream);
    left_alone(&site).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn websockets_leave_nothing() {
    let site = Site::usual().await;
    let text = |message: &Value| frame(LAST | TEXT, message.to_string().as_bytes());
    let begin = handshake(&site, "/mcp", "").into_bytes();
    let open = text(&request("initialize", initialize_params(LATEST_SESSION)));
    let ready = text(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let call = text(&numbered(0, "tools/call", &steps()));
    let all = [begin, open, ready, call].concat();
    everywhere(&site, |_| all.clone()).await;
    left_alone(&site).await;
}
