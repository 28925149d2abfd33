//! Limits of the size and the time of heads and bodies.

use std::time::Duration;

use futures_util::future::join_all;
use refmcp_http::{Endpoint, Options};
use refmcp_proto::frame::SseItem;
use refmcp_testkit::paused::PausedTime;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::http1::Reply;
use crate::support::{Client, LATEST_SESSION, Site, initialize_params, request};
use crate::{http_sse, websocket};

const LIMIT: usize = 2000;
const SHORT: Duration = Duration::from_millis(300);

/// Longer than a connection is still read after a refusal.
const LINGERS: Duration = Duration::from_secs(3);

/// Every path that reads a body, with the headers that are needed for that.
async fn places(site: &Site) -> (Vec<String>, Vec<Reply>) {
    let client = Client::open(site, LATEST_SESSION).await;
    let (mut places, mut kept) = (Vec::new(), Vec::new());
    for route in Endpoint::routes().iter().filter(|route| route.methods.contains(&"POST")) {
        let mut path = route.path.to_owned();
        if path == "/messages" {
            let (stream, address) = http_sse::open(site).await;
            kept.push(stream);
            path = address;
        }
        let named =
            format!("Mcp-Session-Id: {}\r\nMCP-Protocol-Version: {LATEST_SESSION}\r\n", client.session);
        places.push(site.head("POST", &path) + &named);
    }
    (places, kept)
}

/// Lets the limit be reached, and the connection be closed after that.
async fn passing(time: &PausedTime) {
    time.advance(SHORT + Duration::from_millis(1)).await;
    time.advance(LINGERS).await;
}

/// A message of just this length.
fn message(length: usize) -> String {
    format!("{:length$}", request("ping", json!({})).to_string())
}

fn whole(place: &str, length: usize) -> String {
    format!("{place}Content-Length: {length}\r\n\r\n{}", message(length))
}

fn chunked(place: &str, length: usize) -> String {
    let message = message(length);
    format!("{place}Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{message}\r\n0\r\n\r\n")
}

#[tokio::test]
async fn the_size_of_a_body_is_limited() {
    let site = Site::open(Options { max_message_size: LIMIT, ..Options::default() }).await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let (places, _kept) = places(&site).await;
    for place in &places {
        for written in [whole, chunked] {
            let reply = site.send_raw(written(place, LIMIT)).await.unwrap();
            assert!((200..=202).contains(&reply.status), "{} {place}", reply.status);
            let reply = reply.again(written(place, LIMIT + 1).as_bytes()).await.unwrap();
            assert_eq!(reply.status, 413, "{place}");
            // What is left of the body is not taken for a request.
            assert!(reply.again(b"").await.is_none(), "{place}");
            client.is_served().await;
        }
        // A body that announces its length is refused before it is sent.
        let reply = site.send_raw(format!("{place}Content-Length: 18446744073709551615\r\n\r\n")).await;
        assert!([413, 431].contains(&reply.unwrap().status), "{place}");
        let reply = site.send_raw(format!("{place}Content-Length: {}\r\n\r\n", LIMIT + 1)).await.unwrap();
        assert_eq!(reply.status, 413, "{place}");
        for coding in ["gzip", "br", "identity", "gzip, gzip"] {
            let sent = whole(&format!("{place}Content-Encoding: {coding}\r\n"), 100);
            assert_eq!(site.send_raw(sent).await.unwrap().status, 415, "{place} {coding}");
        }
    }
    client.is_served().await;
    site.serves().await;
}

#[tokio::test]
async fn an_endless_body_is_cut() {
    let time = PausedTime::start();
    let site = Site::open(Options { max_message_size: LIMIT, ..Options::default() }).await;
    let (places, _kept) = places(&site).await;
    for place in &places {
        let socket = TcpStream::connect(site.address).await.unwrap();
        let (mut from, mut to) = socket.into_split();
        let sending = tokio::spawn({
            let head = format!("{place}Transfer-Encoding: chunked\r\n\r\n");
            async move {
                to.write_all(head.as_bytes()).await.unwrap();
                let mut sent = 0;
                while to.write_all(b"4\r\n    \r\n").await.is_ok() {
                    sent += 1;
                    tokio::task::yield_now().await;
                }
                sent
            }
        });
        let mut heard = Vec::new();
        let _ = tokio::join!(from.read_to_end(&mut heard), time.advance(LINGERS));
        // The reset that follows may overtake the response; being cut is enough.
        assert!(
            heard.is_empty() || heard.starts_with(b"HTTP/1.1 413 "),
            "{}",
            String::from_utf8_lossy(&heard)
        );
        drop(from);
        sending.await.expect("nothing more is taken");
    }
    site.serves().await;
}

#[tokio::test]
async fn the_time_of_a_body_is_limited() {
    let time = PausedTime::start();
    let site = Site::open(Options { body_timeout: SHORT, ..Options::default() }).await;
    let (places, _kept) = places(&site).await;
    let sent: Vec<String> = places
        .iter()
        .flat_map(|place| {
            [
                format!("{place}Content-Length: 100\r\n\r\n"),
                format!("{place}Content-Length: 100\r\n\r\n{{\"jsonrpc\""),
                format!("{place}Transfer-Encoding: chunked\r\n\r\n"),
                format!("{place}Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n"),
            ]
        })
        .collect();
    let limited = join_all(sent.into_iter().map(async |sent| {
        let reply = site.send_raw(&sent).await.unwrap();
        assert_eq!(reply.status, 408, "{sent}");
        assert!(reply.again(b"").await.is_none(), "{sent}");
    }));
    tokio::join!(limited, passing(&time));
    // A byte now and then does not buy more of it.
    for place in &places {
        let mut socket = TcpStream::connect(site.address).await.unwrap();
        socket.write_all(format!("{place}Content-Length: 1000\r\n\r\n").as_bytes()).await.unwrap();
        time.advance(SHORT * 2 / 3).await;
        socket.write_all(b" ").await.unwrap();
        time.advance(SHORT * 2 / 3).await;
        let mut heard = vec![0; 12];
        socket.read_exact(&mut heard).await.unwrap();
        assert_eq!(heard, b"HTTP/1.1 408");
    }
    site.serves().await;
}

#[tokio::test]
async fn the_time_of_a_head_is_limited() {
    let time = PausedTime::start();
    let site = Site::open(Options { head_timeout: SHORT, ..Options::default() }).await;
    let head = site.head("POST", "/mcp");
    let mut slow = Vec::new();
    for sent in [0, 1, 3, 4, 20, head.len() - 1, head.len()] {
        let mut socket = TcpStream::connect(site.address).await.unwrap();
        socket.write_all(&head.as_bytes()[..sent]).await.unwrap();
        slow.push(socket);
    }
    // So has the pause between two requests.
    let idle = site.send_raw("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let (idle, ()) = tokio::join!(idle.again(b""), passing(&time));
    assert!(idle.is_none());
    for mut socket in slow {
        let mut heard = Vec::new();
        // Whether with a reset or without.
        let _ = socket.read_to_end(&mut heard).await;
        let heard = String::from_utf8_lossy(&heard);
        assert!(heard.is_empty() || heard.starts_with("HTTP/1.1 408 "), "{heard}");
    }
    // A byte now and then does not buy more of it.
    let mut socket = TcpStream::connect(site.address).await.unwrap();
    for part in head.as_bytes().chunks(head.len() / 2 + 1) {
        socket.write_all(part).await.unwrap();
        time.advance(SHORT * 2 / 3).await;
    }
    let mut heard = Vec::new();
    let _ = tokio::join!(socket.read_to_end(&mut heard), time.advance(LINGERS));
    assert!(heard.is_empty() || heard.starts_with(b"HTTP/1.1 408 "));
    site.until_quiet().await;
    site.serves().await;
}

#[tokio::test]
async fn the_size_of_a_head_is_limited() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let head = site.head("POST", "/mcp");
    let many = |count: usize| (0..count).map(|number| format!("X-{number}: 1\r\n")).collect::<String>();
    for sent in [
        format!("{head}X: {}\r\n\r\n", "x".repeat(70 << 10)),
        format!("{head}X: {}\r\n\r\n", "x".repeat(1 << 20)),
        format!("{head}{}: x\r\n\r\n", "x".repeat(1 << 20)),
        format!("{head}{}\r\n", many(200)),
        format!("{head}{}\r\n", many(10_000)),
        format!("POST /{} HTTP/1.1\r\n\r\n", "x".repeat(1 << 20)),
        "x".repeat(1 << 20),
    ] {
        // The reset that follows may overtake the response.
        if let Some(reply) = site.send_raw(&sent).await {
            assert!([400, 414, 431].contains(&reply.status), "{} {sent:.200}", reply.status);
        }
        client.is_served().await;
    }
    let reply = site.send_raw(format!("{head}{}\r\n", many(101))).await.unwrap();
    assert_eq!(reply.status, 431);
    let fits = format!("{head}X: {}\r\nContent-Length: 0\r\n\r\n", "x".repeat(30 << 10));
    assert_eq!(site.send_raw(fits).await.unwrap().status, 400, "the body is empty; the head is fine");
    site.serves().await;
}

#[tokio::test]
async fn what_a_client_says_of_itself_is_limited_on_every_transport() {
    let site = Site::usual().await;
    let mut params = initialize_params(LATEST_SESSION);
    params["clientInfo"]["description"] = "x".repeat(100_000).into();
    let open = request("initialize", params);
    let is_refused = |answer: &Value| {
        let (code, why) = (&answer["error"]["code"], &answer["error"]["message"]);
        let why = why.as_str().unwrap();
        assert!(
            *code == -32602 && why.contains("params.clientInfo") && why.contains("65536"),
            "{answer:.300}"
        );
    };
    let refused = site.post(&[], &open).await;
    assert_eq!((refused.status, refused.header("mcp-session-id")), (200, None));
    is_refused(&refused.json().await);
    assert_eq!(site.metric("refmcp_sessions_opened_total").await, 0.0);

    let mut stream = site.send("GET", "/sse", &[], b"").await;
    let Some(SseItem::Event(event)) = stream.item().await else { panic!("no event") };
    http_sse::post(&site, &event.data, &open).await;
    is_refused(&stream.event().await.unwrap().1);

    let mut socket = websocket::connect(&site, "/mcp/ws", &[]).await.unwrap();
    websocket::say(&mut socket, &open).await;
    is_refused(&websocket::hear(&mut socket).await);

    let name = json!({ "name": "x".repeat(100_000), "version": "1" });
    let params = json!({ "_meta": { "io.modelcontextprotocol/clientInfo": name } });
    let answer = site.stateless("tools/list", params, &[]).await.json().await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("65536"), "{answer:.300}");
}
