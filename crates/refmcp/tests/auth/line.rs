//! A connection to a server, byte by byte: requests of HTTP, streams that stay open, WebSockets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

/// How long anything may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(12);

/// What came back, as far as it has come.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// The status line and the headers, as they were sent.
    pub(crate) head: String,
    rest: BufReader<TcpStream>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// Waits for its end; gives what came until then.
    pub(crate) fn body(mut self) -> String {
        let mut body = Vec::new();
        self.rest.read_to_end(&mut body).expect("the end comes in time");
        String::from_utf8(body).unwrap()
    }

    pub(crate) fn json(self) -> Value {
        let body = self.body();
        serde_json::from_str(&body).unwrap_or_else(|_| panic!("no JSON: {body}"))
    }
}

/// Sends a request that nothing follows on its connection.
pub(crate) fn send(address: &str, request: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    let headers = [&[("Connection", "close")], headers].concat();
    open(address, request, &headers, body)
}

fn open(address: &str, request: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut head = format!("{request} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
    let mut rest = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(rest.read_line(&mut head).unwrap(), 0, "it ends within the head: {head}");
    }
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Reply { status, head, rest }
}

/// Sends a form.
pub(crate) fn form(address: &str, path: &str, body: &str) -> Reply {
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    send(address, &format!("POST {path}"), &form, body)
}

/// A token of the issuer there for a resource, for a client that it knows by `robot:hush`.
pub(crate) fn token(issuer: &str, resource: &str) -> String {
    let resource = resource.replace(':', "%3A").replace('/', "%2F");
    let robot = "grant_type=client_credentials&client_id=robot&client_secret=hush";
    let given = form(issuer, "/token", &format!("{robot}&resource={resource}")).json();
    given["access_token"].as_str().unwrap_or_else(|| panic!("no token: {given}")).to_owned()
}

/// The first message of a session.
pub(crate) fn initialize() -> String {
    let client = json!({ "name": "line", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string()
}

/// Begins a session over streamable HTTP.
pub(crate) fn session(address: &str, token: &str) -> Reply {
    let bearer = format!("Bearer {token}");
    let headers = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("Authorization", &bearer),
    ];
    send(address, "POST /mcp", &headers, &initialize())
}

/// A WebSocket, or how it was refused.
pub(crate) fn socket(address: &str, headers: &[(&str, &str)]) -> (Reply, Option<Socket>) {
    let upgrade = [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let reply = open(address, "GET /mcp/ws", &[&upgrade, headers].concat(), "");
    let stream = (reply.status == 101).then(|| reply.rest.get_ref().try_clone().unwrap());
    (reply, stream.map(Socket))
}

/// A WebSocket that is open.
pub(crate) struct Socket(TcpStream);

impl Socket {
    /// Says something short, masked as clients have to: by nothing.
    pub(crate) fn say(&mut self, text: &str) {
        let length = u16::try_from(text.len()).unwrap();
        assert!(length >= 126);
        let head = [&[0x81, 0x80 | 126], &length.to_be_bytes()[..], &[0; 4]].concat();
        self.0.write_all(&[&head, text.as_bytes()].concat()).unwrap();
    }

    /// The next thing that it says, or with which code it takes its leave.
    pub(crate) fn heard(&mut self) -> Result<String, u16> {
        let [kind, length] = self.read();
        let length = match length {
            127 => panic!("a very long frame"),
            126 => usize::from(u16::from_be_bytes(self.read())),
            short => usize::from(short),
        };
        let mut said = vec![0; length];
        self.0.read_exact(&mut said).unwrap();
        match kind & 0xf {
            1 => Ok(String::from_utf8(said).unwrap()),
            8 => Err(u16::from_be_bytes([said[0], said[1]])),
            other => panic!("a frame of kind {other}"),
        }
    }

    fn read(&mut self) -> [u8; 2] {
        let mut two = [0; 2];
        self.0.read_exact(&mut two).expect("it says something in time");
        two
    }
}
