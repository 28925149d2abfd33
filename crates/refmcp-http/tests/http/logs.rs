//! The log at its most verbose level: without secrets of clients, and without long inputs.

use std::time::Duration;

use refmcp_http::{Endpoint, Options, Rate, Shutdown};
use refmcp_testkit::log::LogBuffer;
use refmcp_testkit::paused::PausedTime;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::http_sse;
use crate::http2::{self, Peer};
use crate::shutdown::{ending_by, until_not_ready};
use crate::support::websocket_frames::{BINARY, LAST, RawSocket, frame};
use crate::support::{
    Client, LATEST_SESSION, SHUTDOWN_TIMEOUT, STATELESS, Site, initialize_params, request, tools,
};

/// The longest line and the longest response that a long input may lead to.
const LONG: usize = 10_000;
const SHORT: usize = 1000;

// Everything of this test runs on one thread, the server too, so the log is this test's alone.
#[tokio::test(flavor = "current_thread")]
async fn secrets_and_long_inputs_are_not_logged() {
    // With a single subscriber, other threads would decide by their own, which they do not have, what is enabled.
    let _second =
        tracing::Dispatch::new(tracing_subscriber::fmt().with_writer(LogBuffer::default()).finish());
    let kept = LogBuffer::default();
    let log = tracing_subscriber::fmt()
        .with_env_filter("refmcp=trace,refmcp_http=trace,refmcp_server=trace,refmcp_transport=trace");
    let _logging = tracing::subscriber::set_default(log.with_ansi(false).with_writer(kept.clone()).finish());
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    client.call(1, "echo", json!({ "message": "what-was-said" })).await.json().await;
    client
        .call_with_progress(2, "steps", json!({ "n": 1, "ms": 1, "note": "what-was-said" }))
        .await
        .events()
        .await;
    let (_stream, address) = http_sse::open(&site).await;
    site.post(
        &[("Authorization", "Bearer the-token"), ("Cookie", "the-cookie")],
        &request("initialize", initialize_params(LATEST_SESSION)),
    )
    .await;

    let long = "y".repeat(LONG);
    for header in [
        "Host",
        "Origin",
        "Accept",
        "Content-Type",
        "Content-Encoding",
        "MCP-Protocol-Version",
        "Mcp-Session-Id",
        "Last-Event-ID",
        "Sec-WebSocket-Key",
    ] {
        for method in ["POST", "GET", "DELETE"] {
            let another = Client::open(&site, LATEST_SESSION).await;
            let named = another.headers().into_iter().filter(|(name, _)| *name != header);
            let headers: Vec<_> = named.chain([(header, &*long)]).collect();
            let ping = request("ping", json!({})).to_string();
            let reply = site.send(method, "/mcp", &headers, ping.as_bytes()).await;
            if reply.status >= 400 {
                let said = reply.text().await;
                assert!(said.len() < SHORT, "{method} {header}: {} bytes", said.len());
            }
        }
    }
    for header in ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"] {
        let echo = json!({ "name": "echo", "arguments": { "message": "m" } });
        let reply = site.stateless("tools/call", echo, &[(header, &long)]).await;
        assert_eq!(reply.status, 400, "{header}");
        let said = reply.text().await;
        assert!(said.len() < SHORT, "{header}: {} bytes", said.len());
    }
    site.send("GET", &format!("/{long}"), &[], b"").await;
    site.send("POST", &format!("/messages?sessionId={long}"), &[], b"{}").await;
    site.send("POST", "/mcp", &[("MCP-Protocol-Version", STATELESS)], long.as_bytes()).await;
    assert_eq!(client.delete().await, 204);

    let log = kept.text();
    assert!(log.contains("refused") && log.contains("answered"), "{log}");
    let http_sse = address.rsplit_once('=').unwrap().1;
    for secret in [&*client.session, http_sse, "the-token", "the-cookie", "what-was-said"] {
        let line = log.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "{secret}");
    }
    for line in log.lines() {
        assert!(line.len() < SHORT, "{} bytes: {}", line.len(), &line[..300]);
    }
}

/// Everything on one thread, with what is logged at this level.
pub(crate) async fn logged(level: &str, doing: impl AsyncFnOnce(&Site)) -> String {
    // See above.
    let _second =
        tracing::Dispatch::new(tracing_subscriber::fmt().with_writer(LogBuffer::default()).finish());
    let kept = LogBuffer::default();
    let log = tracing_subscriber::fmt().with_env_filter(level).with_ansi(false);
    let _logging = tracing::subscriber::set_default(log.with_writer(kept.clone()).finish());
    let site = Site::usual().await;
    doing(&site).await;
    site.stop.cancel();
    site.served.await.unwrap();
    kept.text()
}

#[tokio::test(flavor = "current_thread")]
async fn operators_see_the_start_the_stop_and_every_refusal() {
    let log = logged("info", async |site| {
        site.send("GET", "/nothing?sessionId=session-of-another", &[], b"").await;
        site.send("GET", "/mcp", &[("Host", "evil.example")], b"").await;
        site.send("GET", "/mcp", &[("Origin", "https://evil.example")], b"").await;
        site.send("GET", "/mcp", &[("Mcp-Session-Id", "session-of-another")], b"").await;
        site.send("POST", "/mcp", &[], b"{").await;
        site.send("POST", "/mcp", &[], br#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#).await;
        site.post(&[], &request("initialize", json!({}))).await;
        site.post(&[("MCP-Protocol-Version", "1999-01-01")], &request("ping", json!({}))).await;
    })
    .await;
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines[0].contains("INFO refmcp::http: listening address=127.0.0.1:"), "{log}");
    assert!(lines[lines.len() - 2].contains("INFO refmcp::http: stopping connections="), "{log}");
    assert!(lines[lines.len() - 1].contains("INFO refmcp::http: stopped"), "{log}");
    let refused: Vec<&&str> = lines.iter().filter(|line| line.contains(": refused ")).collect();
    for (line, wanted) in refused.iter().zip([
        &["path=\"/nothing\"", "status=404", "reason=\"path\""][..],
        &["path=\"/mcp\"", "reason=\"host\"", "--allow-host", "detail=\"evil.example\""],
        &["reason=\"origin\"", "--allow-origin", "detail=\"https://evil.example\""],
        &["method=\"GET\"", "path=\"/mcp\"", "status=404", "reason=\"session\"", "no such session"],
        &["method=\"POST\"", "path=\"/mcp\"", "status=400", "reason=\"message\"", "not JSON"],
        &["status=400", "reason=\"message\"", "jsonrpc"],
        &["status=200", "reason=\"message\"", "protocolVersion is missing"],
        &["status=400", "reason=\"revision\"", "unsupported MCP-Protocol-Version"],
    ]) {
        assert!(line.contains("INFO refmcp::http: refused address=127.0.0.1 "), "{line}");
        assert!(wanted.iter().all(|wanted| line.contains(wanted)), "{line}: {wanted:?}");
    }
    assert_eq!(refused.len(), 8, "{log}");
    assert!(!log.contains("session-of-another"), "{log}");
}

#[tokio::test(flavor = "current_thread")]
async fn that_the_server_is_not_ready_is_an_answer_and_no_refusal() {
    let log = logged("info", async |_| {
        let shutdown = Shutdown::new(Duration::from_secs(10)).drain(Duration::from_secs(30));
        let site = ending_by(&shutdown).await;
        shutdown.trigger();
        until_not_ready(&site).await;
        assert_eq!(site.metric("refmcp_rejections_total{reason=\"stopping\"}").await, 0.0);
        shutdown.trigger();
        site.served.await.unwrap();
    })
    .await;
    assert!(!log.contains("refused"), "{log}");
}

/// The lines of refusals.
pub(crate) fn refusals(log: &str) -> Vec<&str> {
    log.lines().filter(|line| line.contains("INFO refmcp::http: refused address=127.0.0.1 ")).collect()
}

#[tokio::test(flavor = "current_thread")]
async fn what_is_no_http_is_logged_without_what_it_says() {
    let log = logged("info", async |site| {
        let long = format!("GET /mcp HTTP/1.1\r\nX: {}\r\n\r\n", "the-secret".repeat(20_000));
        for (sent, status) in [
            ("the-secret\r\n\r\n".to_owned(), 400),
            ("POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: the-secret\r\n\r\n".to_owned(), 400),
            (long, 431),
            ("\u{16}\u{3}\u{1}the-secret\r\n\r\n".to_owned(), 400),
        ] {
            assert_eq!(site.send_raw(sent).await.unwrap().status, status);
        }
        // A client that only connects is not refused.
        drop(tokio::net::TcpStream::connect(site.address).await.unwrap());
        site.until_metric("refmcp_rejections_total{reason=\"malformed\"}", 4.0).await;
    })
    .await;
    let refused = refusals(&log);
    let wanted = ["status=400", "status=400", "status=431", "TLS, where plain HTTP is served"];
    for (line, wanted) in refused.iter().zip(wanted) {
        assert!(line.contains(wanted) && line.contains("reason=\"malformed\" why=\""), "{line}");
    }
    assert_eq!(refused.len(), 4, "{log}");
    assert!(!log.contains("the-secret"), "{log}");
}

#[tokio::test(flavor = "current_thread")]
async fn heads_that_are_too_large_are_logged_over_both_versions() {
    let long = "the-secret".repeat(8 << 10);
    let log = logged("info", async |site| {
        let head = site.head("POST", "/mcp");
        let reply = site.send_raw(format!("{head}X: {long}\r\nContent-Length: 0\r\n\r\n")).await.unwrap();
        assert_eq!(reply.status, 431);
        let peer = Peer::connect(site).await;
        assert_eq!(peer.status("POST", "/mcp", &[("x", &long)]).await, 431);
        // h2 answers these by itself, and resets the stream of the second one.
        let longer = "the-secret".repeat(20 << 10);
        for _ in 0..2 {
            assert_eq!(peer.status("POST", "/mcp", &[("x", &longer)]).await, 431);
        }
        assert_eq!(peer.send("POST", "/mcp", &[("x", &longer)], "{}").await.unwrap().status(), 431);
        peer.is_served().await;
        site.until_metric("refmcp_rejections_total{reason=\"head_size\"}", 4.0).await;
    })
    .await;
    let refused = refusals(&log);
    assert_eq!(refused.len(), 5, "{log}");
    assert!(refused.iter().all(|line| line.contains("status=431 ")), "{log}");
    assert!(refused[1].contains("reason=\"head_size\" why=\"a head of 8"), "{log}");
    for line in &refused[2..] {
        assert!(line.contains("reason=\"head_size\" why=\"a head of more than 131072 bytes\""), "{log}");
    }
    assert!(!log.contains("the-secret"), "{log}");
}

#[tokio::test(flavor = "current_thread")]
async fn broken_http2_is_logged() {
    let log = logged("info", async |site| {
        let mut socket = TcpStream::connect(site.address).await.unwrap();
        let sent = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &b"the-secret"[..], &[0xff; 100]].concat();
        socket.write_all(&sent).await.unwrap();
        let _ = socket.read_to_end(&mut Vec::new()).await;
        site.until_metric("refmcp_rejections_total{reason=\"malformed\"}", 1.0).await;
        // A client that leaves is not refused.
        let mut socket = TcpStream::connect(site.address).await.unwrap();
        socket.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        drop(socket);
        site.until_metric("refmcp_connections", 1.0).await;
    })
    .await;
    let refused = refusals(&log);
    assert_eq!(refused.len(), 1, "{log}");
    assert!(refused[0].contains("status=400 reason=\"malformed\" why=\"HTTP/2: "), "{log}");
    assert!(!log.contains("the-secret"), "{log}");
}

/// h2 answers these by itself.
#[tokio::test(flavor = "current_thread")]
async fn streams_that_http2_resets_are_logged() {
    let log = logged("info", async |site| {
        let peer = Peer::connect(site).await;
        // The header block is `connection: the-secret`, which HTTP/2 does not have.
        let head =
            [&[0x82, 0x84, 0x86, 0x41, 1, b'a', 0, 10][..], b"connection", &[10], b"the-secret"].concat();
        let begun = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &http2::frame(4, 0, 0, &[])[..]].concat();
        let mut socket = TcpStream::connect(site.address).await.unwrap();
        socket.write_all(&[begun, http2::frame(1, 5, 1, &head)].concat()).await.unwrap();
        site.until_metric("refmcp_rejections_total{reason=\"malformed\"}", 1.0).await;
        // A client that resets its own stream, and one whose request is answered early, are not refused.
        peer.send("POST", "/mcp", &[], &"x".repeat(5 << 20)).await.map(drop).unwrap_or_default();
        peer.is_served().await;
    })
    .await;
    let malformed: Vec<_> =
        refusals(&log).into_iter().filter(|line| line.contains("\"malformed\"")).collect();
    assert_eq!(malformed.len(), 1, "{log}");
    for line in malformed {
        let why = "reason=\"malformed\" why=\"HTTP/2 stream: PROTOCOL_ERROR\"";
        assert!(line.contains("address=127.0.0.1") && line.contains(why), "{log}");
    }
    assert!(!log.contains("the-secret"), "{log}");
}

#[tokio::test(flavor = "current_thread")]
async fn heads_that_take_too_long_are_logged_and_idle_connections_are_not() {
    let log = logged("info", async |_| {
        let time = PausedTime::start();
        let site = Site::open(Options { head_timeout: Duration::from_secs(5), ..Options::default() }).await;
        let mut sockets = Vec::new();
        let whole = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", site.address);
        for sent in ["", "PRI", "GET /the-secret", &whole, &format!("{whole}GET /the-secret")] {
            let mut socket = TcpStream::connect(site.address).await.unwrap();
            // The second request comes later: a buffer that has both is not looked into.
            for part in sent.split_inclusive("\r\n\r\n") {
                socket.write_all(part.as_bytes()).await.unwrap();
                time.settle().await;
            }
            sockets.push(socket);
        }
        time.advance(Duration::from_secs(6)).await;
        time.advance(Duration::from_secs(2)).await;
        site.until_metric("refmcp_rejections_total{reason=\"head_timeout\"}", 4.0).await;
    })
    .await;
    let refused = refusals(&log);
    assert_eq!(refused.len(), 4, "{log}");
    for line in &refused {
        assert!(line.contains("reason=\"head_timeout\" why=\"the head took too long\""), "{line}");
    }
    assert!(!log.contains("the-secret") && !log.contains("status="), "{log}");
}

#[tokio::test(flavor = "current_thread")]
async fn broken_websockets_are_logged() {
    let log = logged("info", async |site| {
        let mut socket = RawSocket::open(site).await;
        socket.send(&frame(LAST | BINARY, b"the-secret")).await;
        assert_eq!(socket.closed().await, Some(1003));
        site.until_metric("refmcp_rejections_total{reason=\"websocket\"}", 1.0).await;
        // A client that leaves is not refused.
        drop(RawSocket::open(site).await);
        site.until_metric("refmcp_websockets", 0.0).await;
    })
    .await;
    let refused = refusals(&log);
    assert_eq!(refused.len(), 1, "{log}");
    assert!(
        refused[0].contains("method=\"GET\" path=\"/mcp/ws\" reason=\"websocket\" why=\"messages are text\""),
        "{log}"
    );
    assert!(!log.contains("the-secret"), "{log}");
}

/// Each way in which a request can be refused has a line with the address, the path and the reason.
#[tokio::test(flavor = "current_thread")]
async fn every_refusal_has_a_line() {
    let log = logged("info", async |_| {
        let options = Options {
            max_message_size: 1000,
            max_sessions: 1,
            rate: Some(Rate { per_second: 1, burst: 20 }),
            rate_on_loopback: true,
            ..Options::default()
        };
        let site = Site::open(options).await;
        let client = Client::open(&site, LATEST_SESSION).await;
        let named = client.headers();
        let unknown = [("Mcp-Session-Id", "the-secret")];
        let ping = request("ping", json!({}));
        let sent = async |method: &str, path: &str, headers: &[(&str, &str)], body: &str| {
            site.send(method, path, headers, body.as_bytes()).await.status
        };
        let text = ping.to_string();
        assert_eq!(sent("POST", "/mcp", &named, &"x".repeat(2000)).await, 413);
        assert_eq!(sent("POST", "/mcp", &[("Content-Type", "text/plain")], &text).await, 415);
        assert_eq!(sent("POST", "/mcp", &[("Accept", "text/html")], &text).await, 406);
        assert_eq!(sent("PUT", "/mcp", &named, "").await, 405);
        assert_eq!(sent("POST", "/mcp", &unknown, &text).await, 404);
        assert_eq!(sent("DELETE", "/mcp", &unknown, "").await, 404);
        assert_eq!(sent("POST", "/messages?sessionId=the-secret", &[], &text).await, 404);
        assert_eq!(sent("POST", "/messages", &[], &text).await, 400);
        assert_eq!(sent("POST", "/sse", &[], &text).await, 405);
        assert_eq!(sent("GET", "/mcp/ws", &[], "").await, 426);
        let again = request("initialize", initialize_params(LATEST_SESSION));
        let stream = client.get(None).await;
        assert_eq!(site.post(&[], &again).await.status, 429, "its only session is in use");
        drop(stream);
        let last = [named[0], named[1], ("Last-Event-ID", "the-secret")];
        assert_eq!(sent("GET", "/mcp", &last, "").await, 400);
        while sent("GET", "/healthz", &[], "").await != 429 {}
    })
    .await;
    let refused = refusals(&log);
    for (path, reason) in [
        ("/mcp", "body_size"),
        ("/mcp", "content_type"),
        ("/mcp", "accept"),
        ("/mcp", "method"),
        ("/mcp", "session"),
        ("/messages", "session"),
        ("/sse", "method"),
        ("/mcp/ws", "upgrade"),
        ("/mcp", "client_sessions"),
        ("/mcp", "event_id"),
        ("/healthz", "rate"),
    ] {
        let (path, reason) = (format!(" path=\"{path}\" status="), format!(" reason=\"{reason}\" why=\""));
        let line = refused.iter().find(|line| line.contains(&path) && line.contains(&reason));
        assert!(line.is_some(), "no {path} with {reason} in {log}");
    }
    assert_eq!(refused.len(), 13, "{log}");
    assert!(!log.contains("the-secret"), "{log}");
}

#[cfg(unix)]
#[tokio::test(flavor = "current_thread")]
async fn the_start_line_names_the_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcp.sock");
    let log = logged("info", async |_| {
        let socket = refmcp_http::UnixSocket::bind(&path, 0o600).await.unwrap();
        let stop = CancellationToken::new();
        stop.cancel();
        Endpoint::builder(tools::server().0).build().serve(socket, stop, SHUTDOWN_TIMEOUT).await;
    })
    .await;
    assert!(log.contains(&format!("listening on a Unix socket path={}", path.display())), "{log}");
}

#[tokio::test(flavor = "current_thread")]
async fn warnings_alone_have_no_refusals() {
    let log = logged("warn", async |site| {
        site.serves().await;
        site.send("GET", "/nothing", &[], b"").await;
        site.send("GET", "/mcp", &[("Host", "evil.example")], b"").await;
    })
    .await;
    assert_eq!(log, "");
}

#[tokio::test(flavor = "current_thread")]
async fn errors_are_logged_at_debug() {
    let log = logged("refmcp::http=debug", async |site| {
        site.send("POST", "/mcp", &[], b"{").await;
        let client = Client::open(site, LATEST_SESSION).await;
        client.call(1, "no such tool", json!({})).await.json().await;
        client.post(&request("no/such/method", json!({}))).await.json().await;
        client.post(&request("resources/read", json!({ "uri": "x://y?the-secret" }))).await.json().await;
        client.post(&request("completion/complete", json!({ "ref": "the-secret" }))).await.json().await;
        let values = json!({ "name": "p", "arguments": { "a": ["the-secret"], "b": "the-secret" } });
        client.post(&request("prompts/get", values)).await.json().await;
        let batch = [
            request("no/such/one", json!({})),
            json!({ "jsonrpc": "2.0", "id": 2, "method": "no/such/other" }),
        ];
        let older = Client::open(site, "2025-03-26").await;
        older.post(&json!(batch)).await.json().await;
    })
    .await;
    assert!(!log.contains("the-secret"), "{log}");
    for wanted in [
        "code=-32700 why=\"not JSON",
        "code=-32602 why=\"unknown tool: no such tool\"",
        "code=-32601 why=\"",
        "no/such/other",
    ] {
        let line = log.lines().find(|line| line.contains(wanted) && line.contains("answered with an error"));
        assert!(line.is_some_and(|line| line.contains("DEBUG ")), "{wanted} is not in {log}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_flood_of_refusals_is_logged_in_part_and_counted() {
    let log = logged("info", async |site| {
        let time = PausedTime::start();
        for _ in 0..200 {
            site.send("GET", "/nothing", &[], b"").await;
        }
        site.send("GET", "/mcp", &[("Host", "evil.example")], b"").await;
        // A line later says how many there were.
        time.advance(Duration::from_secs(1)).await;
        site.send("GET", "/nothing", &[], b"").await;
    })
    .await;
    let numbers =
        log.lines().filter_map(|line| line.split_once("left_out=")?.1.split(' ').next()?.parse::<u32>().ok());
    let said: u32 = numbers.sum();
    let written =
        log.lines().filter(|line| line.contains(": refused ") && line.contains("reason=\"path\"")).count();
    assert!((20..40).contains(&written), "{log}");
    assert_eq!(said as usize + written, 201, "{log}");
    assert!(log.contains("reason=\"host\""), "a flood hides no other kind: {log}");
}
