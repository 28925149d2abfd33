//! An HTTP/1.1 client that sends exact bytes and shows everything it receives.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use refmcp_proto::frame::{SseDecoder, SseItem};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// No read takes longer than this.
const DEADLINE: Duration = Duration::from_secs(10);

/// Sends a request on a connection of its own and reads the head of the response.
pub(crate) async fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(String, String)],
    body: &[u8],
) -> Reply {
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        head += &format!("Host: {address}\r\n");
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("Content-Length: {}\r\n\r\n", body.len());
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(head.as_bytes()).await.unwrap();
    // A server may refuse a body without having read it.
    let _ = socket.write_all(body).await;
    let mut reply = Reply::read(socket, Vec::new()).await.expect("a status line");
    if method == "HEAD" {
        reply.body = Framing::Done;
    }
    reply
}

/// Sends these very bytes on a connection of its own; nothing when it is closed without a response.
pub(crate) async fn send_raw(address: SocketAddr, bytes: &[u8]) -> Option<Reply> {
    let mut socket = TcpStream::connect(address).await.unwrap();
    // A server may close before all is sent.
    let _ = socket.write_all(bytes).await;
    Reply::read(socket, Vec::new()).await
}

/// A response, whose body is still to be read.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    socket: TcpStream,
    buffer: Vec<u8>,
    body: Framing,
    decoder: SseDecoder,
    items: VecDeque<SseItem>,
}

#[derive(Debug)]
enum Framing {
    Length(usize),
    Chunked,
    Done,
}

impl Reply {
    /// The next response on a connection of which this much was read already; nothing when it is closed.
    pub(crate) async fn read(socket: TcpStream, buffer: Vec<u8>) -> Option<Self> {
        let mut reply = Self {
            status: 0,
            headers: Vec::new(),
            socket,
            buffer,
            body: Framing::Done,
            decoder: SseDecoder::new(16 << 20),
            items: VecDeque::new(),
        };
        let first = reply.line().await?;
        reply.status = first.split(' ').nth(1).unwrap().parse().unwrap();
        while let Some(line) = reply.line().await.filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').unwrap();
            reply.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let length = reply.header("content-length").map(|length| length.parse().unwrap());
        reply.body = match length {
            Some(length) => Framing::Length(length),
            None if reply.header("transfer-encoding") == Some("chunked") => Framing::Chunked,
            None => Framing::Done,
        };
        Some(reply)
    }

    /// Reads this response to its end, then sends these bytes on the same connection and reads what comes to them;
    /// nothing when the connection is closed.
    pub(crate) async fn again(mut self, bytes: &[u8]) -> Option<Self> {
        while self.piece().await.is_some() {}
        let Self { mut socket, buffer, .. } = self;
        let _ = socket.write_all(bytes).await;
        Self::read(socket, buffer).await
    }

    /// The connection, with whatever was read of it and not yet used.
    pub(crate) fn into_socket(self) -> (TcpStream, Vec<u8>) {
        (self.socket, self.buffer)
    }

    /// The names of all headers.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.headers.iter().map(|(name, _)| name.as_str())
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_sse(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }

    /// The whole body.
    pub(crate) async fn text(mut self) -> String {
        let mut whole = Vec::new();
        while let Some(piece) = self.piece().await {
            whole.extend(piece);
        }
        String::from_utf8(whole).unwrap()
    }

    /// The whole body, which is JSON.
    pub(crate) async fn json(self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{}", self.status);
        let text = self.text().await;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// What comes next in a stream of events; `None` at its proper end.
    pub(crate) async fn item(&mut self) -> Option<SseItem> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Some(item);
            }
            let piece = self.piece().await?;
            self.decoder.feed(&piece, &mut self.items).unwrap();
        }
    }

    /// The next message, with its event's id; what is no message is skipped.
    pub(crate) async fn event(&mut self) -> Option<(Option<String>, Value)> {
        loop {
            if let SseItem::Event(event) = self.item().await? {
                return Some((event.id, serde_json::from_str(&event.data).unwrap()));
            }
        }
    }

    /// All messages to the end.
    pub(crate) async fn events(mut self) -> Vec<(Option<String>, Value)> {
        assert!(self.is_sse(), "{} {:?}", self.status, self.headers);
        let mut all = Vec::new();
        while let Some(event) = self.event().await {
            all.push(event);
        }
        all
    }

    /// The answer, as JSON or on a stream.
    pub(crate) async fn answer(self) -> Value {
        if self.is_sse() { self.events().await.pop().expect("an answer").1 } else { self.json().await }
    }

    pub(crate) async fn piece(&mut self) -> Option<Vec<u8>> {
        match self.body {
            Framing::Done | Framing::Length(0) => None,
            Framing::Length(left) => {
                while self.buffer.is_empty() {
                    assert!(self.fill().await, "the body broke off");
                }
                let taken: Vec<u8> = self.buffer.drain(..left.min(self.buffer.len())).collect();
                self.body = Framing::Length(left - taken.len());
                Some(taken)
            }
            Framing::Chunked => {
                let size = self.line().await.expect("a chunk");
                let size = usize::from_str_radix(&size, 16).unwrap();
                while self.buffer.len() < size + 2 {
                    assert!(self.fill().await, "the body broke off");
                }
                let chunk: Vec<u8> = self.buffer.drain(..size + 2).take(size).collect();
                if size == 0 {
                    self.body = Framing::Done;
                    return None;
                }
                Some(chunk)
            }
        }
    }

    async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\r\n") {
                let line = self.buffer.drain(..end + 2).take(end).collect();
                return Some(String::from_utf8(line).unwrap());
            }
            if !self.fill().await {
                return None;
            }
        }
    }

    async fn fill(&mut self) -> bool {
        let read = timeout(DEADLINE, self.socket.read_buf(&mut self.buffer)).await;
        read.expect("nothing came in time").is_ok_and(|count| count > 0)
    }
}
