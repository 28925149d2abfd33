//! The examples as programs: each is started, called over HTTP, and ends when it is told to.

#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// A program that is running; killed when it is dropped.
struct Example {
    child: Child,
    address: String,
}

impl Example {
    /// Starts an example. `cargo test` builds them beside the folder of the tests, unless it is told to build less.
    fn start(name: &str) -> Self {
        let tests = std::env::current_exe().unwrap();
        let path = tests.ancestors().nth(2).unwrap().join("examples").join(name);
        let mut command = Command::new(&path);
        command.arg("127.0.0.1:0").stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| {
            panic!("{}: {error}; `cargo test` without `--test` builds it", path.display())
        });
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").expect("an address").to_owned();
        Self { child, address }
    }

    /// Sends a request.
    fn send(&self, request: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let (address, length) = (&self.address, body.len());
        write!(
            stream,
            "{request} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n\
             Accept: application/json, text/event-stream\r\n{headers}\r\n{body}"
        )
        .unwrap();
        stream
    }

    /// Tells it to stop; it must end well.
    fn end(mut self) {
        let told = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap();
        assert!(told.success());
        let begin = Instant::now();
        while begin.elapsed() < TEST_TIMEOUT {
            if let Some(status) = self.child.try_wait().unwrap() {
                assert!(status.success(), "{status}");
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it did not end");
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn whole(mut stream: TcpStream) -> String {
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn mounted() {
    let example = Example::start("mounted");
    let page = whole(example.send("GET /", "", ""));
    assert!(page.ends_with("\r\n\r\nA page of the application"), "{page}");
    let headers = "Content-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
                   Mcp-Method: tools/call\r\nMcp-Name: greet\r\n";
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet",
        "arguments":{"name":"Ada"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let answer = whole(example.send("POST /mcp", headers, call));
    assert!(answer.contains("Hello, Ada!"), "{answer}");
    // An open stream must not keep it from ending.
    let mut events = example.send("GET /sse", "", "");
    let mut beginning = [0; 12];
    events.read_exact(&mut beginning).unwrap();
    assert_eq!(&beginning, b"HTTP/1.1 200");
    example.end();
}
