//! The relay over HTTP: in front of the reference server, and of servers that write their HTTP by hand.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use refmcp_testkit::ports::free_port;
use serde_json::json;

use crate::Trace;
use crate::support::http::{self, Response, listening, send};
use crate::support::{Client, Exit, Process, Server, TEST_TIMEOUT, Version, program, text_of};

/// A relay that listens.
pub(crate) struct Relay {
    process: Process,
    pub(crate) address: String,
    pub(crate) trace: Trace,
}

impl Relay {
    pub(crate) fn open(url: &str, options: &[&str]) -> Self {
        let trace = Trace::new();
        let path = trace.path();
        let args = ["relay", "--port", "0", "--record", path.to_str().unwrap(), url];
        let process = Process::spawn(program(&[&args, options].concat()));
        let banner = process.next_line().expect("it says where it listens");
        let (_, address) = banner.split_once("http://").unwrap();
        let address = address.split('/').next().unwrap().to_owned();
        Self { process, address, trace }
    }

    fn connect(&self) -> BufReader<TcpStream> {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        BufReader::new(stream)
    }

    /// Calls a tool of the reference server behind it.
    fn call(&self, scheme: &str, path: &str) -> Exit {
        let url = format!("{scheme}://{}{path}", self.address);
        let mut command = program(&["call", &url, "echo", "message=passed on"]);
        command.env("REFMCP_STATE_DIR", self.trace.folder.path().join("state"));
        Process::spawn(command).exit()
    }
}

/// A server that takes each request as it is written, up to the end that the test knows, and answers with this.
pub(crate) fn server_of_bytes(end: &'static str, answer: &'static [u8]) -> (String, Receiver<String>) {
    let (requests, received) = channel();
    let requests = Mutex::new(requests);
    let address = listening(move |mut stream| {
        let mut text = String::new();
        let mut chunk = [0; 4096];
        while !text.ends_with(end) {
            match stream.read(&mut chunk) {
                Ok(count @ 1..) => text += std::str::from_utf8(&chunk[..count]).unwrap(),
                _ => return,
            }
        }
        requests.lock().unwrap().send(text).unwrap();
        stream.write_all(answer).unwrap();
    });
    (format!("http://{address}"), received)
}

#[test]
fn every_transport_passes_and_is_in_the_trace() {
    let server = Server::start(&[]);
    for (scheme, path) in [("http", "/mcp"), ("sse+http", "/sse"), ("ws", "/mcp/ws")] {
        let relay = Relay::open(&format!("http://{}/mcp", server.address), &[]);
        let called = relay.call(scheme, path);
        assert_eq!(called.lines, ["passed on"], "{scheme}: {}", called.errors);
        relay.trace.wait("the call", |line| {
            line["direction"] == "sent" && line["message"]["method"] == "tools/call"
        });
        relay.trace.wait("its result", |line| {
            line["direction"] == "received" && line["message"]["result"]["content"].is_array()
        });
        let lines = relay.trace.lines();
        let heads: Vec<_> = lines.iter().filter(|line| line["event"] == "head").collect();
        assert!(
            heads.iter().any(|head| head["direction"] == "sent" && head["method"].is_string()),
            "{scheme}"
        );
        assert!(
            heads.iter().any(|head| head["direction"] == "received" && head["status"].is_number()),
            "{scheme}"
        );
        relay.process.signal("TERM");
        assert_eq!(relay.process.exit().status.code(), Some(143));
    }
}

#[test]
fn heads_and_bodies_pass_as_they_are() {
    let answer = b"HTTP/1.1 404 Not Found\r\nX-Own: 1\r\nx-own: 2\r\nKeep-Alive: timeout=5\r\nContent-Length: 10\r\n\r\nno \xc3\xa4 such";
    let (url, requests) = server_of_bytes("0\r\n\r\n", answer);
    let relay = Relay::open(&format!("{url}/mcp"), &[]);
    let mut stream = relay.connect();
    let host = &relay.address;
    let request = format!(
        "PATCH /any/path%20here?a=b&c HTTP/1.1\r\nHost: {host}\r\nX-Odd-CASE: kept\r\nCookie: a=1\r\n\
         Connection: keep-alive, X-Mine\r\nX-Mine: gone\r\nTE: trailers\r\nAuthorization: Bearer hush-hush\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n\
         3\r\n{{\"a\r\n4\r\n\":1}}\r\n0\r\n\r\n"
    );
    stream.get_mut().write_all(request.as_bytes()).unwrap();
    let got = requests.recv_timeout(TEST_TIMEOUT).unwrap();
    let (head, body) = got.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("PATCH /any/path%20here?a=b&c HTTP/1.1\r\n"), "{got}");
    let server = url.strip_prefix("http://").unwrap();
    for line in
        [&format!("Host: {server}"), "X-Odd-CASE: kept", "Cookie: a=1", "Authorization: Bearer hush-hush"]
    {
        assert!(head.contains(&format!("\r\n{line}")), "{line}: {got}");
    }
    let lower = head.to_ascii_lowercase();
    for gone in ["x-mine", "\r\nte:", "keep-alive", host] {
        assert!(!lower.contains(gone), "{gone}: {got}");
    }
    // Chunks may be cut elsewhere; what is in them is the same.
    let data: String = body.split("\r\n").skip(1).step_by(2).collect();
    assert_eq!(data, "{\"a\":1}", "{got}");

    let mut response = Vec::new();
    let wanted = "no ä such".as_bytes();
    while !response.ends_with(wanted) {
        assert_ne!(stream.read_until(b'h', &mut response).unwrap(), 0);
    }
    let response = String::from_utf8(response).unwrap();
    assert!(response.starts_with("HTTP/1.1 404 Not Found\r\n"), "{response}");
    for line in ["X-Own: 1", "x-own: 2", "Content-Length: 10"] {
        assert!(
            response.to_ascii_lowercase().contains(&format!("\r\n{}", line.to_ascii_lowercase())),
            "{line}: {response}"
        );
    }
    assert!(!response.to_ascii_lowercase().contains("\r\ndate:"), "{response}");
    relay.trace.wait("the body", |line| line["direction"] == "received" && line["text"] == "no ä such");
    let sent = relay.trace.wait("the head", |line| line["method"] == "PATCH");
    assert_eq!(sent["headers"]["cookie"], "***", "{sent}");
    assert!(!relay.trace.text().contains("hush-hush"), "{}", relay.trace.text());
}

#[test]
fn events_pass_as_they_come_and_a_stream_is_resumed() {
    let (go_on, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let address = listening(move |mut stream| {
        let mut head = String::new();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap_or(0) > 0 {}
        let last =
            head.lines().find_map(|line| line.strip_prefix("Last-Event-ID: ")).unwrap_or("none").to_owned();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n").unwrap();
        // In one piece each: the reader of this test knows no chunks.
        let first = format!("id: 7\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"after/{last}\"}}\n\n");
        stream.write_all(first.as_bytes()).unwrap();
        // The second event comes only when the first has been read.
        if wait.lock().unwrap().recv_timeout(TEST_TIMEOUT).is_ok() {
            stream.write_all(b"data: {\"jsonrpc\":\"2.0\",\"method\":\"second\"}\n\n").unwrap();
        }
    });
    let relay = Relay::open(&format!("http://{address}/mcp"), &[]);
    let mut events = send(&relay.address, "GET /mcp", &[("Accept", "text/event-stream")], "");
    assert_eq!(events.event().unwrap()["method"], "after/none");
    go_on.send(()).unwrap();
    assert_eq!(events.event().unwrap()["method"], "second");
    let again = [("Last-Event-ID", "7"), ("Connection", "close")];
    let mut events = send(&relay.address, "GET /mcp", &again, "");
    assert_eq!(events.event().unwrap()["method"], "after/7");
    go_on.send(()).unwrap();
    assert_eq!(events.event().unwrap()["method"], "second");
    assert_eq!(events.event(), None);
    relay.trace.wait("the events", |line| line["message"]["method"] == "after/7");
}

#[test]
fn a_stream_of_the_reference_server_is_resumed() {
    let server = Server::start(&[]);
    let relay = Relay::open(&format!("http://{}/mcp", server.address), &[]);
    let accept = [("Accept", "application/json, text/event-stream"), ("Content-Type", "application/json")];
    let post = |more: &[(&str, &str)], body: &str| {
        send(&relay.address, "POST /mcp", &[&accept, more].concat(), body)
    };
    let opened = post(&[("Connection", "close")], &Client::initialize("2025-11-25"));
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let own = [
        ("Mcp-Session-Id", session.as_str()),
        ("MCP-Protocol-Version", "2025-11-25"),
        ("Connection", "close"),
    ];
    assert_eq!(post(&own, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).status, 202);
    let params = json!({
        "name": "long_task", "arguments": { "steps": 20, "step_ms": 20 }, "_meta": { "progressToken": 1 },
    });
    let mut stream = post(&own, &Version::Session("").request(5, "tools/call", &params));
    let id = loop {
        let mut line = String::new();
        stream.stream.read_line(&mut line).unwrap();
        if let Some(id) = line.strip_prefix("id: ") {
            break id.trim().to_owned();
        }
    };
    drop(stream);
    let resumed = send(
        &relay.address,
        "GET /mcp",
        &[&accept[..1], &own, &[("Last-Event-ID", id.as_str())]].concat(),
        "",
    );
    assert_eq!(resumed.status, 200, "{}", resumed.head);
    let done = resumed.json();
    assert!(done["id"] == 5 && done["result"].is_object(), "{done}");
    assert!(!relay.trace.text().contains(&session), "a session's id is a secret");
}

#[test]
fn a_connection_is_used_again_and_a_client_that_leaves_closes_it() {
    let (ended, end) = channel();
    let (ended, connections) = (Mutex::new(ended), Arc::new(Mutex::new(0)));
    let count = connections.clone();
    let address = listening(move |stream| {
        *count.lock().unwrap() += 1;
        let mut stream = BufReader::new(stream);
        while let Ok(request) = http::Request::read(&mut stream) {
            if request.path.is_empty() {
                break;
            }
            // The third request gets no answer.
            if request.path != "/3" {
                stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
            }
        }
        ended.lock().unwrap().send(()).unwrap();
    });
    let relay = Relay::open(&format!("http://{address}"), &[]);
    let mut stream = relay.connect();
    for path in ["/1", "/2"] {
        write!(stream.get_mut(), "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut body = Vec::new();
        stream.read_until(b'}', &mut body).unwrap();
        assert!(body.ends_with(b"{}"));
    }
    write!(stream.get_mut(), "GET /3 HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    relay.trace.wait("the third request", |line| line["target"] == "/3");
    assert_eq!(*connections.lock().unwrap(), 1);
    drop(stream);
    end.recv_timeout(TEST_TIMEOUT).expect("the connection to the server ends");
}

#[test]
fn foreign_pages_and_names_are_refused_before_the_server() {
    let (url, requests) = server_of_bytes("\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let relay =
        Relay::open(&url, &["--allow-origin", "https://known.example", "--allow-host", "named.example"]);
    for head in [[("Origin", "https://evil.example")], [("Host", "evil.example")]] {
        assert_eq!(send(&relay.address, "GET /", &head, "").status, 403, "{head:?}");
    }
    assert!(requests.try_recv().is_err());
    for head in [[("Origin", "https://known.example")], [("Host", "named.example")]] {
        assert_eq!(send(&relay.address, "GET /", &head, "").status, 200, "{head:?}");
    }
    assert_eq!(requests.try_iter().count(), 2);
}

#[test]
fn a_server_that_is_not_there_is_a_bad_gateway() {
    let relay = Relay::open(&format!("http://127.0.0.1:{}", free_port()), &[]);
    let response = send(&relay.address, "POST /mcp", &[("Connection", "close")], "{}");
    assert_eq!(response.status, 502);
    let text = response.text();
    assert!(text.starts_with("refmcp relay: ") && text.contains("refused"), "{text}");
    relay.trace.wait("the failure", |line| line["event"] == "failed");
}

#[test]
fn a_server_with_tls_is_trusted_by_its_certificate() {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (chain, key) = (folder.path().join("chain.pem"), folder.path().join("key.pem"));
    fs::write(&chain, cert.pem()).unwrap();
    fs::write(&key, signing_key.serialize_pem()).unwrap();
    let (chain, key) = (chain.to_str().unwrap(), key.to_str().unwrap());
    let server = Server::start(&["--tls-cert", chain, "--tls-key", key]);
    let url = format!("https://{}/mcp", server.address);
    let trusting = Relay::open(&url, &["--cacert", chain]);
    let called = trusting.call("http", "/mcp");
    assert_eq!(called.lines, ["passed on"], "{}", called.errors);
    let wary = Relay::open(&url, &[]);
    let response = send(&wary.address, "POST /mcp", &[("Connection", "close")], "{}");
    assert_eq!(response.status, 502);
    assert!(response.text().contains("certificate"));
}

#[test]
fn two_clients_of_one_relay_are_apart() {
    let server = Server::start(&[]);
    let relay = Relay::open(&format!("http://{}/mcp", server.address), &[]);
    let accept = [
        ("Accept", "application/json, text/event-stream"),
        ("Content-Type", "application/json"),
        ("Connection", "close"),
    ];
    let calls: Vec<(String, Response)> = (0..8)
        .map(|client| {
            let word = format!("client {client}");
            let call = Version::Stateless.call(1, "echo", &json!({ "message": word }));
            let own =
                [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "echo")];
            (word, send(&relay.address, "POST /mcp", &[&accept[..], &own].concat(), &call))
        })
        .collect();
    for (word, response) in calls {
        assert_eq!(text_of(&response.json()), word);
    }
}
