//! A client over any transport that sends bytes as they are, and the servers that it talks to.

use std::collections::{HashMap, VecDeque};
use std::fs::{self, File};
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::sockets::{EventStream, HttpConnection, WebSocket};
use crate::support::{Client, Process, STATELESS, Server, Version, text_of};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio,
    StreamableHttp,
    HttpSse,
    WebSocket,
}

pub(crate) const TRANSPORTS: [Transport; 4] =
    [Transport::Stdio, Transport::StreamableHttp, Transport::HttpSse, Transport::WebSocket];

/// A transport and a revision over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) transport: Transport,
    pub(crate) version: Version,
}

const fn way(transport: Transport, version: Version) -> Way {
    Way { transport, version }
}

/// The ways that every row goes: each transport in both lifecycles where it has both, and revisions with and without
/// batches.
pub(crate) const WAYS: [Way; 9] = [
    way(Transport::Stdio, Version::Session("2025-06-18")),
    way(Transport::Stdio, Version::Session("2025-11-25")),
    way(Transport::Stdio, Version::Stateless),
    way(Transport::StreamableHttp, Version::Session("2025-03-26")),
    way(Transport::StreamableHttp, Version::Session("2025-11-25")),
    way(Transport::StreamableHttp, Version::Stateless),
    way(Transport::HttpSse, Version::Session("2024-11-05")),
    way(Transport::WebSocket, Version::Session("2025-11-25")),
    way(Transport::WebSocket, Version::Stateless),
];

impl Way {
    pub(crate) fn is_stateless(self) -> bool {
        self.version == Version::Stateless
    }

    /// Whether each message has an HTTP response of its own, with a status.
    pub(crate) fn has_status(self) -> bool {
        self.transport == Transport::StreamableHttp
    }

    /// Whether several messages may come in one.
    pub(crate) fn has_batches(self) -> bool {
        self.version == Version::Session("2025-03-26")
    }

    /// Whether wrong arguments are an error of JSON-RPC, and no result of the tool.
    pub(crate) fn has_argument_errors(self) -> bool {
        matches!(self.version, Version::Session(revision) if revision < "2025-11-25")
    }

    /// What stands for an id that cannot be read. New revisions have none, but over HTTP a body has always one.
    pub(crate) fn unreadable_id(self) -> Option<&'static str> {
        let has_null = self.has_status() || self.has_argument_errors();
        has_null.then_some("null")
    }
}

/// What the peers of a test talk to: a process of `refmcp serve` for all over sockets, one of `refmcp stdio` for each over a
/// pipe. Both log everything, and their logs are searched in the end.
pub(crate) struct Site {
    server: Server,
    options: Vec<String>,
    logs: TempDir,
}

impl Site {
    pub(crate) fn start(options: &[&str]) -> Self {
        let logs = tempfile::tempdir().unwrap();
        let options = options.iter().chain(&["--log", "trace"]).map(ToString::to_string);
        let options: Vec<String> = options.collect();
        let log = File::create(logs.path().join("serve")).unwrap();
        let borrowed: Vec<&str> = options.iter().map(String::as_str).collect();
        Self { server: Server::start_logging(&borrowed, log), options, logs }
    }

    fn stdio(&self) -> Process {
        let options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        Process::stdio(&options)
    }

    /// The value of a metric, without labels.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = self.server.get("/metrics");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name}: {text}")).trim().parse().unwrap()
    }

    /// The memory that the server over sockets uses, in KiB.
    pub(crate) fn resident(&self) -> u64 {
        self.server.resident()
    }

    /// What the server over sockets has logged.
    pub(crate) fn log(&self) -> String {
        let path: PathBuf = self.logs.path().join("serve");
        String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()
    }
}

enum Connection {
    Stdio(Process),
    StreamableHttp { posts: HttpConnection, session: Option<String> },
    HttpSse { posts: HttpConnection, path: String, events: EventStream },
    WebSocket(WebSocket),
}

/// A client.
pub(crate) struct Peer {
    pub(crate) way: Way,
    connection: Connection,
    /// The status of the last HTTP response, and the code that a WebSocket was closed with.
    pub(crate) status: Option<u16>,
    heard: VecDeque<String>,
    requests: u64,
}

impl Peer {
    /// Connects, and says nothing.
    pub(crate) fn connect(site: &Site, way: Way) -> Self {
        let address = &site.server.address;
        let connection = match way.transport {
            Transport::Stdio => Connection::Stdio(site.stdio()),
            Transport::StreamableHttp => {
                Connection::StreamableHttp { posts: HttpConnection::new(address), session: None }
            }
            Transport::HttpSse => {
                let mut events = EventStream::open(address, "/sse");
                let path = events.next().expect("where to post");
                Connection::HttpSse { posts: HttpConnection::new(address), path, events }
            }
            Transport::WebSocket => Connection::WebSocket(WebSocket::open(address, "/mcp/ws")),
        };
        Self { way, connection, status: None, heard: VecDeque::new(), requests: 0 }
    }

    /// Connects, and introduces itself where there are sessions.
    pub(crate) fn open(site: &Site, way: Way) -> Self {
        let mut peer = Self::connect(site, way);
        if let Version::Session(revision) = way.version {
            peer.send(Client::initialize(revision).as_bytes());
            let answer = peer.answer_to(&json!("init"));
            assert_eq!(answer["result"]["protocolVersion"], revision, "{answer}");
            peer.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        }
        peer
    }

    /// Sends a message, with the headers that HTTP wants for it.
    pub(crate) fn send(&mut self, message: &[u8]) {
        let named;
        let headers = match (&self.connection, self.way.version) {
            (Connection::StreamableHttp { .. }, Version::Stateless) => {
                named = mirrored_headers(message);
                &named[..]
            }
            (Connection::StreamableHttp { session: Some(session), .. }, Version::Session(revision)) => {
                named =
                    vec![("Mcp-Session-Id", session.clone()), ("MCP-Protocol-Version", revision.to_owned())];
                &named[..]
            }
            _ => &[],
        };
        self.status = None;
        match &mut self.connection {
            Connection::Stdio(process) => process.send_line(message),
            Connection::WebSocket(socket) => socket.send(message),
            Connection::HttpSse { posts, path, .. } => {
                let response = posts.send("POST", path, headers, message);
                self.status = Some(response.status);
                self.heard.extend(response.messages);
            }
            Connection::StreamableHttp { posts, session } => {
                let response = posts.send("POST", "/mcp", headers, message);
                self.status = Some(response.status);
                self.heard.extend(response.messages);
                *session = response.session.or(session.take());
            }
        }
    }

    /// The next message; nothing where the connection is closed, or the HTTP response has none.
    pub(crate) fn next(&mut self) -> Option<String> {
        if let Some(message) = self.heard.pop_front() {
            return Some(message);
        }
        match &mut self.connection {
            Connection::Stdio(process) => process.next_line(),
            Connection::StreamableHttp { .. } => None,
            Connection::HttpSse { events, .. } => events.next(),
            Connection::WebSocket(socket) => match socket.next() {
                Ok(message) => Some(message),
                Err(code) => {
                    self.status = code;
                    None
                }
            },
        }
    }

    /// The next message, read.
    pub(crate) fn message(&mut self) -> Value {
        let text = self.next().unwrap_or_else(|| panic!("{:?}: nothing, {:?}", self.way, self.status));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("not JSON ({error}): {text}"))
    }

    /// The response to a request; what comes before it is kept.
    pub(crate) fn answer_to(&mut self, id: &Value) -> Value {
        let mut before = VecDeque::new();
        loop {
            let message = self.message();
            if message["id"] == *id && message.get("method").is_none() {
                before.append(&mut self.heard);
                self.heard = before;
                return message;
            }
            before.push_back(message.to_string());
        }
    }

    /// Sends a request with an id of its own, and waits for the response.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.requests += 1;
        let id = json!(format!("ask-{}", self.requests));
        self.send(self.way.version.request(id.clone(), method, params).as_bytes());
        self.answer_to(&id)
    }

    /// Calls a tool, and waits for the response.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    /// Still served, and nothing else was said since.
    pub(crate) fn hears_nothing(&mut self, why: &str) {
        let word = format!("still here {}", self.requests);
        let answer = self.call("echo", &json!({ "message": word }));
        assert_eq!(text_of(&answer), word, "{:?}, {why}: {answer}", self.way);
        assert!(self.heard.is_empty(), "{:?}, {why}: {:?}", self.way, self.heard);
    }

    /// Ends its session, where that does not end with the connection.
    pub(crate) fn close(mut self) {
        let Version::Session(revision) = self.way.version else { return };
        if let Connection::StreamableHttp { posts, session: Some(session) } = &mut self.connection {
            let headers =
                [("Mcp-Session-Id", session.clone()), ("MCP-Protocol-Version", revision.to_owned())];
            assert_eq!(posts.send("DELETE", "/mcp", &headers, b"").status, 204);
        }
    }

    /// What it has logged, where it has a process of its own.
    pub(crate) fn log(&self) -> Option<String> {
        match &self.connection {
            Connection::Stdio(process) => Some(process.errors()),
            _ => None,
        }
    }

    /// The memory of its process in KiB, where it has one of its own.
    pub(crate) fn resident(&self) -> Option<u64> {
        match &self.connection {
            Connection::Stdio(process) => Some((process.memory("VmRSS") * 1024.0) as u64),
            _ => None,
        }
    }
}

/// The headers that repeat a message without a session, or those of another message where this one is none.
fn mirrored_headers(message: &[u8]) -> Vec<(&'static str, String)> {
    let members = members(message);
    let params = members.get("params").map(|params| self::members(params.get().as_bytes()));
    let params = params.unwrap_or_default();
    let meta = params.get("_meta").map(|meta| self::members(meta.get().as_bytes())).unwrap_or_default();
    let version = text_of_member(&meta, "io.modelcontextprotocol/protocolVersion");
    let method = text_of_member(&members, "method");
    let mut headers = vec![
        ("MCP-Protocol-Version", encoded(version.as_deref().unwrap_or(STATELESS))),
        ("Mcp-Method", encoded(method.as_deref().unwrap_or("tools/list"))),
    ];
    let name = text_of_member(&params, "name").or(text_of_member(&params, "uri"));
    headers.extend(name.map(|name| ("Mcp-Name", encoded(&name))));
    headers
}

/// The members of an object, whatever numbers are in them.
fn members(json: &[u8]) -> HashMap<String, &RawValue> {
    serde_json::from_slice(json).unwrap_or_default()
}

fn text_of_member(members: &HashMap<String, &RawValue>, name: &str) -> Option<String> {
    serde_json::from_str(members.get(name)?.get()).ok()
}

/// A value as a header has it.
fn encoded(value: &str) -> String {
    let plain = |byte: u8| (0x20..0x7f).contains(&byte);
    if value.bytes().all(plain) && value.trim() == value && !value.starts_with("=?") {
        value.to_owned()
    } else {
        format!("=?base64?{}?=", STANDARD.encode(value))
    }
}
