//! Memory: neither abandoned sessions nor refused requests leave anything behind, however many there are.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::Server;

const SESSIONS: usize = 10_000;
const REPEATS: usize = 10_000;
const CLIENTS: usize = 8;
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Opens a session, begins to listen, and is gone.
fn abandon(server: &Server) {
    let mut stream = server.connect();
    let opened = exchange(&mut stream, &server.opening(""), "}}");
    let session = opened.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    let listen = format!(
        "GET /mcp HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\
         MCP-Protocol-Version: 2025-11-25\r\n\r\n",
        server.address
    );
    let listening = exchange(&mut stream, &listen, "id: ");
    assert!(listening.starts_with("HTTP/1.1 200 OK"), "{listening}");
}

/// Sends a request and reads until its response contains this.
fn exchange(stream: &mut TcpStream, request: &str, end: &str) -> String {
    stream.write_all(request.as_bytes()).unwrap();
    let mut heard = String::new();
    let mut buffer = [0; 4096];
    while !heard.contains(end) {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "it broke off: {heard}");
        heard += std::str::from_utf8(&buffer[..count]).unwrap();
    }
    heard
}

/// Many clients open sessions and leave; gives the memory of the server when it has forgotten them, in KiB.
fn abandon_many(server: &Server) -> u64 {
    let left = AtomicUsize::new(SESSIONS);
    let take = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while take() {
                    abandon(server);
                }
            });
        }
    });
    let began = Instant::now();
    let quiet =
        ["refmcp_sessions{transport=\"streamable\"} 0\n", "refmcp_streams 0\n", "refmcp_connections 1\n"];
    loop {
        let metrics = server.get("/metrics");
        if quiet.iter().all(|line| metrics.contains(line)) {
            return server.resident();
        }
        assert!(began.elapsed() < TEST_TIMEOUT, "{metrics}");
        thread::sleep(Duration::from_millis(100));
    }
}

/// Requests that are refused on a connection that goes on, and with which status.
fn refused(address: &str) -> Vec<(String, u16)> {
    let head = |method: &str, path: &str| {
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n"
        )
    };
    let post = |more: &str, body: &str| {
        format!("{}{more}Content-Length: {}\r\n\r\n{body}", head("POST", "/mcp"), body.len())
    };
    let get = |path: &str, more: &str| format!("{}{more}\r\n", head("GET", path));
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let modern = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    vec![
        (post("", "{"), 400),
        (post("", "[]"), 400),
        (post("", ping), 400),
        (post("Mcp-Session-Id: unknown\r\n", ping), 404),
        (post("Content-Encoding: gzip\r\n", ping), 415),
        (post("Origin: https://evil.com\r\n", ping), 403),
        (post("MCP-Protocol-Version: 1999-01-01\r\n", ping), 400),
        (post("", modern), 400),
        (get("/nothing", ""), 404),
        (get("/mcp", ""), 400),
        (get("/mcp", "Mcp-Session-Id: unknown\r\nLast-Event-ID: 1.1\r\n"), 404),
        (get("/mcp/ws", "Upgrade: websocket\r\nConnection: upgrade\r\n"), 400),
        (get("/messages", ""), 405),
        (format!("{}\r\n", head("DELETE", "/mcp")), 400),
    ]
}

/// Sends a request and reads the response; gives its status.
fn ask(stream: &mut BufReader<TcpStream>, request: &str) -> u16 {
    stream.get_mut().write_all(request.as_bytes()).unwrap();
    let (mut status, mut length) = (0, 0);
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).unwrap() > 0, "closed after {request}");
        let line = line.trim().to_ascii_lowercase();
        if let Some(rest) = line.strip_prefix("http/1.1 ") {
            status = rest[..3].parse().unwrap();
        } else if let Some(rest) = line.strip_prefix("content-length: ") {
            length = rest.parse().unwrap();
        } else if line.is_empty() {
            stream.read_exact(&mut vec![0; length]).unwrap();
            return status;
        }
    }
}

fn refuse_many(server: &Server) -> u64 {
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let refused = refused(&server.address);
                let mut stream = BufReader::new(server.connect());
                for (request, status) in refused.iter().cycle().take(REPEATS / CLIENTS) {
                    assert_eq!(ask(&mut stream, request), *status, "{request}");
                }
            });
        }
    });
    assert!(server.greet().starts_with("HTTP/1.1 200 OK"), "others are served");
    server.resident()
}

/// Repeats a round until the server is no larger than allowed after the rounds before. The first rounds fill what is kept
/// anyway, and the allocator holds back a little; a leak shows in every round.
fn stops_growing(round: impl Fn() -> u64, allowed: impl Fn(&[u64]) -> u64) {
    let mut sizes = vec![round()];
    for _ in 0..4 {
        let size = round();
        if size <= allowed(&sizes) {
            return;
        }
        sizes.push(size);
    }
    panic!("it grows with every round, KiB: {sizes:?}");
}

#[test]
fn abandoned_sessions_leave_nothing_behind() {
    let server = Server::start(&["--session-timeout", "2", "--retention", "1"]);
    stops_growing(|| abandon_many(&server), |sizes| sizes.iter().max().unwrap() * 11 / 10);
}

#[test]
fn refused_requests_leave_nothing_behind() {
    let server = Server::start(&[]);
    stops_growing(|| refuse_many(&server), |sizes| sizes.last().unwrap() + 1024);
}
