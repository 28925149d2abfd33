//! Clients that open a session, begin to listen and are never heard of again: the server forgets them, and gives back
//! what they cost.

#![cfg(target_os = "linux")]

mod serving;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serving::Server;

const SESSIONS: usize = 10_000;
const TOGETHER: usize = 8;
const PATIENCE: Duration = Duration::from_secs(60);

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

/// A crowd comes and goes; gives what the server keeps when it has forgotten them, in KiB.
fn round(server: &Server) -> u64 {
    let left = AtomicUsize::new(SESSIONS);
    let take = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
    thread::scope(|scope| {
        for _ in 0..TOGETHER {
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
        assert!(began.elapsed() < PATIENCE, "{metrics}");
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_crowd_that_has_left_costs_nothing() {
    let server = Server::start(&["--session-timeout", "2", "--retention", "1"]);
    // What a server of this size keeps for itself is known after the first crowd.
    let mut sizes = vec![round(&server)];
    // How much the allocator holds back varies a little from crowd to crowd; what is lost is lost with each of them.
    for _ in 0..3 {
        let size = round(&server);
        if size <= sizes.iter().max().unwrap() * 11 / 10 {
            return;
        }
        sizes.push(size);
    }
    panic!("it grows with every crowd, KiB: {sizes:?}");
}
