//! WebSockets that violate the protocol: each is closed with its code, without harm to other clients.

use std::time::Duration;

use refmcp_http::Options;
use refmcp_testkit::paused::PausedTime;
use serde_json::json;

use crate::support::websocket_frames::{
    BINARY, CLOSE, CONTINUED, LAST, PING, PONG, RawSocket, TEXT, frame, handshake, header,
};
use crate::support::{Client, LATEST_SESSION, Site, request};

const LIMIT: usize = 10_000;
/// How long the end of a connection may take at most.
const FAREWELL: Duration = Duration::from_secs(5);

async fn site() -> Site {
    Site::open(Options { max_message_size: LIMIT, ..Options::default() }).await
}

#[tokio::test]
async fn incomplete_handshakes_are_refused() {
    let site = Site::usual().await;
    let good = |path| handshake(&site, path, "");
    for path in ["/mcp", "/mcp/ws"] {
        let good = good(path);
        let without = |line: &str| {
            good.lines().filter(|known| !known.starts_with(line)).collect::<Vec<_>>().join("\r\n") + "\r\n"
        };
        let on_both = if path == "/mcp" { 400 } else { 426 };
        for (sent, status) in [
            (good.clone(), 101),
            (handshake(&site, path, "Origin: http://localhost\r\n"), 101),
            (handshake(&site, path, "Sec-WebSocket-Extensions: permessage-deflate\r\n"), 101),
            (handshake(&site, path, "Sec-WebSocket-Protocol: other, mcp\r\n"), 101),
            (handshake(&site, path, "Origin: https://evil.com\r\n"), 403),
            (handshake(&site, path, "Origin: null\r\n"), 403),
            (handshake(&site, path, "Origin: http://localhost\r\nOrigin: http://localhost\r\n"), 403),
            (good.replace(&format!("{}", site.address), "evil.com"), 403),
            (without("Upgrade:"), on_both),
            (without("Connection:"), 426),
            (without("Sec-WebSocket-Version:"), 400),
            (good.replace("Version: 13", "Version: 8"), 400),
            (without("Sec-WebSocket-Key:"), 400),
            (good.replace("HTTP/1.1", "HTTP/1.0"), 400),
            (good.replace("GET", "DELETE"), if path == "/mcp" { 400 } else { 405 }),
        ] {
            let reply = site.send_raw(&sent).await.unwrap();
            assert_eq!(reply.status, status, "{sent}");
            if status == 101 {
                RawSocket::after(reply).answers_a_ping().await;
            }
        }
    }
    site.serves().await;
    site.until_metric("refmcp_websockets", 0.0).await;
}

impl RawSocket {
    /// It is one: a ping of WebSocket itself is answered.
    async fn answers_a_ping(mut self) {
        self.send(&frame(LAST | PING, b"there?")).await;
        assert_eq!(self.next().await, Some((PONG, b"there?".to_vec())));
    }
}

#[tokio::test]
async fn a_violation_closes_with_its_code() {
    let site = site().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let mut other = RawSocket::open(&site).await;
    let text = |payload: &[u8]| frame(LAST | TEXT, payload);
    let endless = |length| [header(LAST | TEXT, length, true), vec![0; 4]].concat();
    let unmasked = [header(LAST | TEXT, 2, false), b"{}".to_vec()].concat();
    for (what, sent, code) in [
        ("text that is none", text(b"\xff\xfe"), 1007),
        ("half a character", text("\u{fc}".as_bytes().split_last().unwrap().1), 1007),
        ("text that goes on as none", [frame(TEXT, b"a"), frame(LAST | CONTINUED, b"\xff")].concat(), 1007),
        ("binary", frame(LAST | BINARY, b"{}"), 1003),
        ("a long frame", frame(LAST | TEXT, &vec![b' '; LIMIT + 1]), 1009),
        ("a frame that says it is endless", endless(usize::MAX >> 1), 1009),
        ("a length with its first bit set", endless(usize::MAX), 1009),
        ("a long message", [frame(TEXT, &[b' '; LIMIT]), frame(CONTINUED, b" ")].concat(), 1009),
        ("not masked", unmasked, 1002),
        ("a long ping", frame(LAST | PING, &[0; 126]), 1002),
        ("a ping in pieces", frame(PING, b""), 1002),
        ("kind 3", frame(LAST | 3, b""), 1002),
        ("kind 11", frame(LAST | 11, b""), 1002),
        ("compressed", frame(LAST | 0x40 | TEXT, b"{}"), 1002),
        ("reserved", frame(LAST | 0x10 | TEXT, b"{}"), 1002),
        ("continuing nothing", frame(LAST | CONTINUED, b"{}"), 1002),
        ("beginning twice", [frame(TEXT, b"{"), frame(LAST | TEXT, b"}")].concat(), 1002),
        ("HTTP", format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100)).into_bytes(), 1002),
    ] {
        let mut socket = RawSocket::open(&site).await;
        socket.send(&sent).await;
        assert_eq!(socket.closed().await, Some(code), "{what}");
        other.is_served().await;
    }
    client.is_served().await;
    site.serves().await;
}

#[tokio::test]
async fn a_close_frame_is_answered() {
    let site = site().await;
    for (what, payload) in [
        ("nothing", &b""[..]),
        ("1000", &[3, 232]),
        ("with a reason", b"\x03\xe8bye"),
        ("our own", &[15, 160]),
        ("a code that may not be sent", &[3, 237]),
        ("999", &[3, 231]),
        ("half a code", &[3]),
        ("a reason that is no text", b"\x03\xe8\xff"),
    ] {
        let mut socket = RawSocket::open(&site).await;
        let (time, began) = (PausedTime::start(), tokio::time::Instant::now());
        socket.send(&frame(LAST | CLOSE, payload)).await;
        for _ in 0..FAREWELL.as_secs() {
            time.advance(Duration::from_secs(1)).await;
        }
        // With which code depends on what was wrong; that it closes does not.
        socket.closed().await;
        while socket.next().await.is_some() {}
        assert_eq!(began.elapsed(), FAREWELL, "{what}");
    }
    site.until_metric("refmcp_websockets", 0.0).await;
    site.serves().await;
}

#[tokio::test]
async fn a_message_may_be_fragmented() {
    let site = Site::open(Options { keep_alive: Duration::from_millis(500), ..Options::default() }).await;
    let mut socket = RawSocket::open(&site).await;
    let message = request("ping", json!({})).to_string();
    let mut pieces = frame(TEXT, b"");
    // Pieces with nothing in them never make a message that is too long, so there may be many.
    for _ in 0..100_000 {
        pieces.extend(frame(CONTINUED, b""));
    }
    for (place, byte) in message.bytes().enumerate() {
        let last = if place + 1 == message.len() { LAST } else { 0 };
        pieces.extend(frame(LAST | PING, b"?"));
        pieces.extend(frame(last | CONTINUED, &[byte]));
    }
    socket.send(&pieces).await;
    loop {
        match socket.next().await.expect("an answer") {
            (TEXT, answer) => break assert!(answer.starts_with(b"{"), "{answer:?}"),
            (kind, _) => assert!([PING, PONG].contains(&kind), "{kind}"),
        }
    }
    // One that never ends, from a client that is gone.
    socket.send(&frame(TEXT, b"{\"jsonrpc\"")).await;
    assert_eq!(socket.closed().await, Some(1008));
    site.serves().await;
    site.until_metric("refmcp_websockets", 0.0).await;
}

#[tokio::test]
async fn an_absent_client_is_closed() {
    let keep_alive = Duration::from_secs(10);
    let site = Site::open(Options { keep_alive, ..Options::default() }).await;
    let (mut silent, mut answering) = (RawSocket::open(&site).await, RawSocket::open(&site).await);
    let time = PausedTime::start();
    // Answers to pings are all it says, and they are enough.
    for _ in 0..10 {
        time.advance(keep_alive + Duration::from_millis(1)).await;
        let Some((PING, payload)) = answering.next().await else { panic!("it is left open, and asked") };
        answering.send(&frame(LAST | PONG, &payload)).await;
    }
    assert_eq!(silent.closed().await, Some(1008));
    answering.is_served().await;
    site.serves().await;
}

#[tokio::test]
async fn a_silent_client_is_closed() {
    let time = PausedTime::start();
    let initialize_within = Duration::from_secs(10);
    let site = Site::open(Options { initialize_within, ..Options::default() }).await;
    let mut socket = RawSocket::begin(&site, "/mcp").await;
    time.advance(initialize_within + Duration::from_millis(1)).await;
    assert_eq!(socket.closed().await, Some(1008));
    // Pings of WebSocket are no messages.
    let mut socket = RawSocket::begin(&site, "/mcp").await;
    for _ in 0..10 {
        assert!(socket.try_send(&frame(LAST | PONG, b"")).await, "it is not left too early");
        time.advance(initialize_within / 10 + Duration::from_millis(1)).await;
    }
    assert_eq!(socket.closed().await, Some(1008));
    drop((socket, time));
    site.until_metric("refmcp_websockets", 0.0).await;
    site.serves().await;
}

#[tokio::test]
async fn open_sockets_are_closed_at_shutdown() {
    let site = Site::usual().await;
    let (mut ready, mut fresh) = (RawSocket::open(&site).await, RawSocket::begin(&site, "/mcp").await);
    ready.is_served().await;
    site.stop.cancel();
    assert_eq!((ready.closed().await, fresh.closed().await), (Some(1001), Some(1001)));
}

#[tokio::test]
async fn the_number_of_sockets_is_limited() {
    let site = Site::open(Options { max_connections: 2, ..Options::default() }).await;
    let mut held = RawSocket::open(&site).await;
    // A WebSocket is not counted as an HTTP connection, so it keeps no other client out.
    site.serves().await;
    let _second = RawSocket::open(&site).await;
    let refused = site.send_raw(handshake(&site, "/mcp", "")).await.unwrap();
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    held.is_served().await;
}
