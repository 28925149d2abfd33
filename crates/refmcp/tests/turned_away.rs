//! Requests that are turned away cost nothing, however many there are.

#![cfg(target_os = "linux")]

mod serving;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::thread;

use serving::Server;

const REPEATS: usize = 10_000;
const TOGETHER: usize = 4;
/// What repeating them so often may cost, in KiB.
const ALLOWED: u64 = 1024;

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

fn round(server: &Server) -> u64 {
    thread::scope(|scope| {
        for _ in 0..TOGETHER {
            scope.spawn(|| {
                let refused = refused(&server.address);
                let mut stream = BufReader::new(server.connect());
                for (request, status) in refused.iter().cycle().take(REPEATS / TOGETHER) {
                    assert_eq!(ask(&mut stream, request), *status, "{request}");
                }
            });
        }
    });
    assert!(server.greet().starts_with("HTTP/1.1 200 OK"), "others are served");
    server.resident()
}

#[test]
fn turning_away_costs_nothing() {
    let server = Server::start(&[]);
    let mut sizes = vec![round(&server)];
    // The first rounds fill what is kept anyway; what is lost is lost in each.
    for _ in 0..4 {
        let size = round(&server);
        if size <= sizes.last().unwrap() + ALLOWED {
            return;
        }
        sizes.push(size);
    }
    panic!("it grows with every round, KiB: {sizes:?}");
}
