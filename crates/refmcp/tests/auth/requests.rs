//! Requests to a server that needs authorization, by hand: forms, sessions, WebSockets.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;

use crate::support::http::{Response, send};

/// Nothing follows on the connection.
pub(crate) const CLOSE: (&str, &str) = ("Connection", "close");

/// Sends a form.
pub(crate) fn form(address: &str, path: &str, body: &str) -> Response {
    let form = [CLOSE, ("Content-Type", "application/x-www-form-urlencoded")];
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
    let params = refmcp_testkit::messages::initialize_params("line", "2025-11-25", json!({}));
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string()
}

/// Begins a session over streamable HTTP.
pub(crate) fn session(address: &str, token: &str) -> Response {
    let bearer = format!("Bearer {token}");
    let headers = [
        CLOSE,
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("Authorization", &bearer),
    ];
    send(address, "POST /mcp", &headers, &initialize())
}

/// A WebSocket, or how it was refused.
pub(crate) fn socket(address: &str, headers: &[(&str, &str)]) -> (Response, Option<Socket>) {
    let upgrade = [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let response = send(address, "GET /mcp/ws", &[&upgrade, headers].concat(), "");
    let stream = (response.status == 101).then(|| response.stream.get_ref().try_clone().unwrap());
    (response, stream.map(Socket))
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
