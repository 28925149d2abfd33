//! Hostile clients: each kind holds as much of the server as it can get. They vanish at random, in the middle of anything.

use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::http::{Connection, Target, in_session};
use super::message::{self, SESSION_REVISION, STATELESS_REVISION};
use super::random::Random;
use super::websocket::{Handshake, PING, WebSocket, frame};
use super::{Crowd, http2};

/// The longest result of `big_result`.
const BIG: u64 = 4 << 20;

/// Requests for it that one connection makes.
const BIG_CALLS: u32 = 16;

type Attack = fn(Target, Random) -> Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// What clients do until they vanish, and the milliseconds after which they do.
const KINDS: [(Attack, std::ops::Range<u64>); 12] = [
    (|target, _| Box::pin(unread_pings(target)), 2_000..10_000),
    (|target, random| Box::pin(closed_window(target, random)), 2_000..10_000),
    (|target, _| Box::pin(unread_responses(target)), 2_000..10_000),
    (|target, _| Box::pin(unread_websocket(target)), 2_000..10_000),
    (|target, random| Box::pin(slow_body(target, random)), 2_000..10_000),
    (|target, random| Box::pin(slow_head(target, random)), 2_000..10_000),
    (|target, _| Box::pin(unread_batch(target)), 2_000..10_000),
    (|target, _| Box::pin(large_capabilities(target)), 500..5_000),
    (|target, _| Box::pin(session_flood(target)), 500..5_000),
    (|target, _| Box::pin(abandoned_streams(target)), 500..5_000),
    (|target, _| Box::pin(unread_progress(target)), 2_000..10_000),
    (|target, random| Box::pin(cut_requests(target, random)), 500..5_000),
];

/// Starts them all; they end when the set is dropped.
pub(super) fn start(crowd: Crowd, target: Target, random: &mut Random) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for (attack, life) in KINDS {
        for _ in 0..crowd.hostile {
            tasks.spawn(repeat(attack, life.clone(), target, random.fork()));
        }
    }
    tasks.spawn(hold_one_byte(target, crowd.one_byte));
    tasks.spawn(idle_waves(target, crowd.idle));
    tasks
}

/// One client after the other. What the server does to them is no fault.
async fn repeat(attack: Attack, life: std::ops::Range<u64>, target: Target, mut random: Random) {
    loop {
        let _ = timeout(random.millis(life.clone()), attack(target, random.fork())).await;
        sleep(random.millis(50..500)).await;
    }
}

/// Until the client vanishes.
async fn forever() -> Result<()> {
    std::future::pending().await
}

fn big_call(id: u64) -> String {
    message::stateless_call(id, "big_result", &json!({ "bytes": BIG }))
}

/// A text that is put into a message after it is encoded, which is slow without optimization.
fn long_text(bytes: usize) -> String {
    "x".repeat(bytes)
}

/// Pings whose pongs are not read.
async fn unread_pings(target: Target) -> Result<()> {
    let Handshake::Open(mut socket) = WebSocket::open(target).await? else { return Ok(()) };
    socket.send(&message::initialize(SESSION_REVISION, &json!({}))).await?;
    let pings = frame(PING, &[7; 125]).repeat(100);
    loop {
        socket.stream.write_all(&pings).await?;
    }
}

/// HTTP/2 streams that may carry nothing, or one byte.
async fn closed_window(target: Target, mut random: Random) -> Result<()> {
    let mut stream = target.connect().await?;
    stream.write_all(&http2::preface(random.below(2) as u32)).await?;
    let authority = format!("127.0.0.1:{}", target.port);
    let headers = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/mcp"),
        (":authority", &authority),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", STATELESS_REVISION),
        ("mcp-method", "tools/call"),
        ("mcp-name", "big_result"),
    ];
    for call in 0..BIG_CALLS {
        stream.write_all(&http2::post(2 * call + 1, &headers, &big_call(call.into()))).await?;
    }
    forever().await
}

/// Pipelined requests, and no response is read.
async fn unread_responses(target: Target) -> Result<()> {
    let mut stream = target.connect().await?;
    for call in 0..BIG_CALLS {
        stream.write_all(&target.post_stateless("big_result", &big_call(call.into()))).await?;
    }
    forever().await
}

/// The same over WebSocket.
async fn unread_websocket(target: Target) -> Result<()> {
    let Handshake::Open(mut socket) = WebSocket::open(target).await? else { return Ok(()) };
    socket.send(&message::initialize(SESSION_REVISION, &json!({}))).await?;
    socket.next().await?;
    socket.send(message::INITIALIZED).await?;
    for call in 0..BIG_CALLS {
        socket.send(&message::call(call.into(), "big_result", &json!({ "bytes": BIG }))).await?;
    }
    forever().await
}

/// Most of a long body at once, and the rest byte by byte.
async fn slow_body(target: Target, mut random: Random) -> Result<()> {
    let mut stream = target.connect().await?;
    let body =
        message::stateless_call(1, "echo", &json!({ "message": "@" })).replace('@', &long_text(3 << 20));
    let request = target.post_stateless("echo", &body);
    let (first, rest) = request.split_at(random.below(request.len()));
    stream.write_all(first).await?;
    trickle(&mut stream, rest).await
}

/// A head that does not end.
async fn slow_head(target: Target, mut random: Random) -> Result<()> {
    let mut stream = target.connect().await?;
    let head =
        format!("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: {}", "x".repeat(random.below(60 << 10)));
    stream.write_all(head.as_bytes()).await?;
    trickle(&mut stream, &[b'x'; 1000]).await
}

async fn trickle(stream: &mut TcpStream, bytes: &[u8]) -> Result<()> {
    for byte in bytes {
        stream.write_all(&[*byte]).await?;
        sleep(Duration::from_millis(200)).await;
    }
    forever().await
}

/// A session, on a connection of its own.
async fn open_session(target: Target, revision: &str) -> Result<(Connection, String)> {
    let mut connection = Connection::open(target).await?;
    let opened = connection.exchange(&target.post("", &message::initialize(revision, &json!({})))).await?;
    let headers = in_session(revision, &opened.session.context("no session")?);
    connection.exchange(&target.post(&headers, message::INITIALIZED)).await?;
    Ok((connection, headers))
}

/// A batch of calls with long results.
async fn unread_batch(target: Target) -> Result<()> {
    let revision = "2025-03-26";
    let (mut connection, headers) = open_session(target, revision).await?;
    let calls: Vec<String> = (0..u64::from(BIG_CALLS))
        .map(|id| message::call(id, "big_result", &json!({ "bytes": BIG })))
        .collect();
    connection.send(&target.post(&headers, &format!("[{}]", calls.join(",")))).await?;
    forever().await
}

/// Sessions whose clients have much to say of themselves.
async fn large_capabilities(target: Target) -> Result<()> {
    let capabilities = json!({ "experimental": { "large": { "text": "@" } } });
    let initialize = message::initialize(SESSION_REVISION, &capabilities).replace('@', &long_text(1 << 20));
    loop {
        Connection::open(target).await?.exchange(&target.post("", &initialize)).await?;
        sleep(Duration::from_millis(200)).await;
    }
}

/// Sessions that are not ended.
async fn session_flood(target: Target) -> Result<()> {
    let mut connection = Connection::open(target).await?;
    let initialize = target.post("", &message::initialize(SESSION_REVISION, &json!({})));
    loop {
        connection.exchange(&initialize).await?;
        sleep(Duration::from_millis(50)).await;
    }
}

/// GET streams that are opened and left.
async fn abandoned_streams(target: Target) -> Result<()> {
    let (_connection, headers) = open_session(target, SESSION_REVISION).await?;
    loop {
        let get = target.request("GET /mcp", &format!("Accept: text/event-stream\r\n{headers}"), "");
        Connection::open(target).await?.open_events(&get).await?;
        sleep(Duration::from_millis(50)).await;
    }
}

/// Notifications that are not read, in streams that can be resumed.
async fn unread_progress(target: Target) -> Result<()> {
    let (mut connection, headers) = open_session(target, SESSION_REVISION).await?;
    for id in 1..=4 {
        connection.send(&target.post(&headers, &message::long_task(id, 5_000, 5))).await?;
    }
    forever().await
}

/// Requests that end, or go wrong, at any byte.
async fn cut_requests(target: Target, mut random: Random) -> Result<()> {
    loop {
        let call = message::stateless_call(1, "echo", &json!({ "message": "cut" }));
        let mut request = target.post_stateless("echo", &call);
        if random.below(2) == 0 {
            let at = random.below(request.len());
            request[at] = random.next() as u8;
        }
        let mut stream = target.connect().await?;
        stream.write_all(&request[..random.below(request.len())]).await?;
        sleep(random.millis(0..200)).await;
    }
}

/// Many connections with the first byte of a request.
async fn hold_one_byte(target: Target, number: usize) {
    let mut held = Vec::with_capacity(number);
    loop {
        while held.len() < number {
            let Ok(mut stream) = target.connect().await else { break };
            if stream.write_all(b"P").await.is_ok() {
                held.push(stream);
            }
        }
        sleep(Duration::from_secs(10)).await;
        held.clear();
    }
}

/// Every few seconds many connections that say nothing, which are all dropped at once.
async fn idle_waves(target: Target, number: usize) {
    loop {
        let mut wave = Vec::with_capacity(number);
        while wave.len() < number {
            let Ok(stream) = target.connect().await else { break };
            wave.push(stream);
        }
        sleep(Duration::from_secs(1)).await;
        drop(wave);
        sleep(Duration::from_secs(3)).await;
    }
}
