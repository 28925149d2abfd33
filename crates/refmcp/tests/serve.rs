//! `refmcp serve` as a process: it says where it listens, outlives whoever reads that, and ends when it is told to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// A running server; killed when it is dropped.
struct Server {
    child: Child,
    output: Option<BufReader<ChildStdout>>,
    address: String,
}

impl Server {
    fn start() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_refmcp"));
        command.args(["serve", "--port", "0"]).env_remove("REFMCP_LOG").env_remove("PORT");
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::with_capacity(16, child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("/mcp") {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "it did not say where it listens");
        }
        let address = line.trim().strip_prefix("streamable HTTP").unwrap().trim();
        let address = address.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned();
        Self { child, output: Some(output), address }
    }

    /// Opens a session; gives the whole response.
    fn greet(&self) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn it_serves_where_it_says() {
    let response = Server::start().greet();
    assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
    assert!(response.contains("RefMCP-TestServer"), "{response}");
}

#[test]
fn it_outlives_whoever_read_its_banner() {
    for _ in 0..5 {
        let mut server = Server::start();
        drop(server.output.take());
        assert!(server.greet().starts_with("HTTP/1.1 200 OK"));
    }
}

#[test]
fn it_ends_when_it_is_told_to() {
    let mut server = Server::start();
    assert!(server.greet().starts_with("HTTP/1.1 200 OK"));
    let told = Command::new("kill").args(["-TERM", &server.child.id().to_string()]).status().unwrap();
    assert!(told.success());
    let begin = Instant::now();
    loop {
        if let Some(status) = server.child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "it did not end");
        thread::sleep(Duration::from_millis(10));
    }
}
