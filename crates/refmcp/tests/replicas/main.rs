//! Two processes of `refmcp serve` on one Redis: clients whose requests go to either see one server, also while one of the three
//! is killed, stopped or away.

#![cfg(unix)]

mod deploy;
mod outages;
mod sessions;
#[path = "../support/mod.rs"]
mod support;

use std::cell::Cell;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use refmcp_testkit::redis::RedisServer;
use serde_json::{Value, json};

use support::http::{self, Response};
use support::{Server, wait_for};

/// The newest revision that has sessions.
const SESSION: &str = "2025-11-25";
/// The one that has none.
const STATELESS: &str = "2026-07-28";
/// Each response ends with its connection.
const CLOSE: (&str, &str) = ("Connection", "close");
const BOTH: &str = "application/json, text/event-stream";

/// Two processes and their Redis.
struct Replicas {
    // Dropped first: they say goodbye to Redis.
    servers: [Server; 2],
    redis: RedisServer,
    turn: Cell<usize>,
}

impl Replicas {
    fn start() -> Self {
        let redis = RedisServer::start();
        let servers = [Self::server(&redis), Self::server(&redis)];
        Self { servers, redis, turn: Cell::new(0) }
    }

    /// One more process on this Redis.
    fn server(redis: &RedisServer) -> Server {
        let key = redis.folder().join("state.key");
        fs::write(&key, "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n").unwrap();
        Server::start(&["--backplane", &redis.address(""), "--state-key-file", key.to_str().unwrap()])
    }

    fn address(&self, number: usize) -> &str {
        &self.servers[number].address
    }

    /// The process whose turn it is.
    fn next(&self) -> usize {
        self.turn.replace(1 - self.turn.get())
    }

    /// Posts a request without a session to this process.
    fn post_stateless(&self, number: usize, method: &str, name: &str, mut params: Value) -> Response {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
        });
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let id = COUNT.fetch_add(1, Ordering::Relaxed);
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let headers = [
            CLOSE,
            ("Content-Type", "application/json"),
            ("Accept", BOTH),
            ("MCP-Protocol-Version", STATELESS),
            ("Mcp-Method", method),
            ("Mcp-Name", name),
        ];
        http::send(self.address(number), "POST /mcp", &headers, &body.to_string())
    }

    /// Waits until this process is ready, or is not.
    fn wait_until_ready(&self, number: usize, ready: bool) -> String {
        wait_for("readiness", || {
            let response = http::send(self.address(number), "GET /readyz", &[CLOSE], "");
            ((response.status == 200) == ready).then(|| response.text())
        })
    }
}

/// A client whose requests go to the processes in turn, unless it says to which.
struct Client<'a> {
    replicas: &'a Replicas,
    session: String,
}

impl<'a> Client<'a> {
    fn open(replicas: &'a Replicas) -> Self {
        let params = json!({
            "protocolVersion": SESSION,
            "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "replicas", "version": "1" },
        });
        let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let headers = [CLOSE, ("Content-Type", "application/json"), ("Accept", BOTH)];
        let response =
            http::send(replicas.address(replicas.next()), "POST /mcp", &headers, &body.to_string());
        let session = response.header("mcp-session-id").expect("a session").to_owned();
        let client = Self { replicas, session };
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(client.post(&ready).status, 202);
        client
    }

    fn headers(&self) -> [(&str, &str); 5] {
        [
            CLOSE,
            ("Content-Type", "application/json"),
            ("Accept", BOTH),
            ("Mcp-Session-Id", &self.session),
            ("MCP-Protocol-Version", SESSION),
        ]
    }

    fn post_to(&self, number: usize, body: &Value) -> Response {
        http::send(self.replicas.address(number), "POST /mcp", &self.headers(), &body.to_string())
    }

    fn post(&self, body: &Value) -> Response {
        self.post_to(self.replicas.next(), body)
    }

    fn call_at(&self, number: usize, id: u64, tool: &str, arguments: &Value) -> Response {
        self.post_to(number, &call(id, tool, arguments))
    }

    fn call(&self, id: u64, tool: &str, arguments: &Value) -> Response {
        self.post(&call(id, tool, arguments))
    }

    /// Reads on behind this event.
    fn resume_at(&self, number: usize, after: &str) -> Response {
        let mut headers = self.headers().to_vec();
        headers.push(("Last-Event-ID", after));
        http::send(self.replicas.address(number), "GET /mcp", &headers, "")
    }

    /// The GET stream of the session.
    fn get_stream(&self, number: usize) -> Response {
        let stream = http::send(self.replicas.address(number), "GET /mcp", &self.headers(), "");
        assert_eq!(stream.status, 200);
        stream
    }

    fn delete_at(&self, number: usize) -> u16 {
        http::send(self.replicas.address(number), "DELETE /mcp", &self.headers(), "").status
    }

    /// Calls a tool at each process.
    fn works(&self) {
        for number in 0..2 {
            self.works_at(number);
        }
    }

    fn works_at(&self, number: usize) {
        let answer = self.call_at(number, 99, "sum", &json!({ "a": 1, "b": 2 })).json();
        assert_eq!(answer["result"]["structuredContent"]["total"], 3, "{answer}");
    }
}

fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": id } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

fn cancel(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
}

/// The response to a question of ask_user.
fn accept(question: &Value) -> Value {
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let result = json!({ "action": "accept", "content": { "confirm": true } });
    json!({ "jsonrpc": "2.0", "id": question["id"], "result": result })
}

/// The next event with its id: the first one of a stream has no message.
fn next_event(stream: &mut Response) -> Option<(String, Option<Value>)> {
    use std::io::BufRead as _;
    let (mut id, mut data) = (String::new(), None);
    loop {
        let mut line = String::new();
        if stream.stream.read_line(&mut line).unwrap() == 0 {
            return None;
        }
        let line = line.trim_end();
        if let Some(text) = line.strip_prefix("id: ") {
            text.clone_into(&mut id);
        } else if let Some(text) = line.strip_prefix("data:") {
            data = serde_json::from_str(text.trim()).ok();
        } else if line.is_empty() && !id.is_empty() {
            return Some((id, data));
        }
    }
}

/// The next message with the id of its event.
fn next_message(stream: &mut Response) -> (String, Value) {
    loop {
        let (id, message) = next_event(stream).expect("the stream goes on");
        if let Some(message) = message {
            return (id, message);
        }
    }
}

/// The messages until the end of a stream.
fn rest(mut stream: Response) -> Vec<Value> {
    std::iter::from_fn(|| next_event(&mut stream)).filter_map(|(_, message)| message).collect()
}
