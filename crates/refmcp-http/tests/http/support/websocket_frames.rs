//! WebSocket frames as bytes, valid or not.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::http1::{Reply, send_raw};
use crate::support::{LATEST_SESSION, Site, initialize_params, request};

pub(crate) const CONTINUED: u8 = 0;
pub(crate) const TEXT: u8 = 1;
pub(crate) const BINARY: u8 = 2;
pub(crate) const CLOSE: u8 = 8;
pub(crate) const PING: u8 = 9;
pub(crate) const PONG: u8 = 10;
/// Set in the first byte of a frame that ends its message.
pub(crate) const LAST: u8 = 0x80;

const DEADLINE: Duration = Duration::from_secs(10);

/// The request that begins a WebSocket, with these headers beside the usual ones.
pub(crate) fn handshake(site: &Site, path: &str, more: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n{more}\r\n",
        site.address
    )
}

/// A frame as a client sends it: its first byte, and what it carries, masked with nothing.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = header(first, payload.len(), true);
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes
}

/// The beginning of a frame of this length.
pub(crate) fn header(first: u8, length: usize, masked: bool) -> Vec<u8> {
    let mask = if masked { 0x80 } else { 0 };
    let mut bytes = vec![first];
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(length @ ..=125), _) => bytes.push(mask | length),
        (_, Ok(length)) => {
            bytes.push(mask | 126);
            bytes.extend(length.to_be_bytes());
        }
        _ => {
            bytes.push(mask | 127);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
    bytes
}

/// A WebSocket.
#[derive(Debug)]
pub(crate) struct RawSocket {
    socket: TcpStream,
    buffer: Vec<u8>,
}

impl RawSocket {
    /// Upgrades a connection.
    pub(crate) async fn begin(site: &Site, path: &str) -> Self {
        let reply = send_raw(site.address, handshake(site, path, "").as_bytes()).await;
        Self::after(reply.unwrap())
    }

    pub(crate) fn after(reply: Reply) -> Self {
        assert_eq!(reply.status, 101);
        assert_eq!(reply.header("sec-websocket-extensions"), None, "nothing is compressed");
        let (socket, buffer) = reply.into_socket();
        Self { socket, buffer }
    }

    /// With a session.
    pub(crate) async fn open(site: &Site) -> Self {
        let mut socket = Self::begin(site, "/mcp/ws").await;
        socket.say(&request("initialize", initialize_params(LATEST_SESSION))).await;
        assert_eq!(socket.hear().await["result"]["protocolVersion"], LATEST_SESSION);
        socket.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        socket
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).await.unwrap();
    }

    /// Sends as much of this as is taken.
    pub(crate) async fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.socket.write_all(bytes).await.is_ok()
    }

    pub(crate) async fn say(&mut self, message: &Value) {
        self.send(&frame(LAST | TEXT, message.to_string().as_bytes())).await;
    }

    /// The next message; pings are left unanswered.
    pub(crate) async fn hear(&mut self) -> Value {
        loop {
            let (kind, payload) = self.next().await.expect("a message");
            if kind == TEXT {
                return serde_json::from_slice(&payload).unwrap();
            }
            assert_eq!(kind, PING, "{}", String::from_utf8_lossy(&payload));
        }
    }

    /// Still served.
    pub(crate) async fn is_served(&mut self) {
        self.say(&request("ping", json!({}))).await;
        assert_eq!(self.hear().await["result"], json!({}));
    }

    /// The next frame; nothing when the socket is closed.
    pub(crate) async fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        let short = usize::from(self.byte(1).await? & 0x7f);
        let (head, length) = match short {
            126 => (4, usize::from(self.byte(2).await?) << 8 | usize::from(self.byte(3).await?)),
            127 => {
                let mut length = 0;
                for place in 2..10 {
                    length = length << 8 | usize::from(self.byte(place).await?);
                }
                (10, length)
            }
            short => (2, short),
        };
        while self.buffer.len() < head + length {
            self.fill().await?;
        }
        let payload = self.buffer[head..head + length].to_vec();
        let kind = self.buffer[0] & 0x0f;
        self.buffer.drain(..head + length);
        Some((kind, payload))
    }

    /// The code with which the server closes; nothing when it does so without one.
    pub(crate) async fn closed(&mut self) -> Option<u16> {
        loop {
            match self.next().await? {
                (CLOSE, payload) => return Some(u16::from_be_bytes([*payload.first()?, *payload.get(1)?])),
                (PING | PONG | TEXT, _) => {}
                (kind, _) => panic!("a frame of kind {kind}"),
            }
        }
    }

    async fn byte(&mut self, place: usize) -> Option<u8> {
        while self.buffer.len() <= place {
            self.fill().await?;
        }
        Some(self.buffer[place])
    }

    async fn fill(&mut self) -> Option<()> {
        let read = timeout(DEADLINE, self.socket.read_buf(&mut self.buffer)).await;
        read.expect("nothing came in time").ok().filter(|count| *count > 0).map(|_| ())
    }
}
