//! A client of HTTP/1.1 on one connection.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::message::STATELESS_REVISION;

/// How long a response may take; only a server that hangs takes that long.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

/// Where the server is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) port: u16,
}

impl Target {
    pub(super) async fn connect(self) -> Result<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", self.port));
        let stream = timeout(LIMIT, stream).await.context("connecting took too long")??;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// A request with these headers, each with its line's end.
    pub(super) fn request(self, line: &str, headers: &str, body: &str) -> Vec<u8> {
        let (port, length) = (self.port, body.len());
        format!(
            "{line} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }

    /// A POST of a message.
    pub(super) fn post(self, headers: &str, body: &str) -> Vec<u8> {
        let accepts = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
        self.request("POST /mcp", &format!("{accepts}{headers}"), body)
    }

    /// A POST of a call that belongs to no session.
    pub(super) fn post_stateless(self, tool: &str, body: &str) -> Vec<u8> {
        let headers = format!(
            "MCP-Protocol-Version: {STATELESS_REVISION}\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
        );
        self.post(&headers, body)
    }
}

/// The headers of a request in a session.
pub(super) fn in_session(revision: &str, session: &str) -> String {
    format!("MCP-Protocol-Version: {revision}\r\nMcp-Session-Id: {session}\r\n")
}

/// A response; of a stream, all messages up to its end.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) session: Option<String>,
    pub(super) body: Vec<u8>,
    is_stream: bool,
}

impl Response {
    /// Whether the server says that it has no room.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self.status, 429 | 503)
    }

    pub(super) fn messages(&self) -> Result<Vec<Value>> {
        if self.is_stream {
            return messages(&self.body);
        }
        let shown = || format!("status {}: {}", self.status, String::from_utf8_lossy(&self.body));
        Ok(vec![serde_json::from_slice(&self.body).with_context(shown)?])
    }
}

/// The messages of events.
fn messages(events: &[u8]) -> Result<Vec<Value>> {
    let data = std::str::from_utf8(events)?.lines().filter_map(|line| line.strip_prefix("data:"));
    data.map(str::trim).filter(|data| !data.is_empty()).map(|data| Ok(serde_json::from_str(data)?)).collect()
}

enum Framing {
    Length(usize),
    Chunks,
}

/// A connection to the server.
pub(super) struct Connection {
    stream: BufStream<TcpStream>,
    /// Bytes of an event stream that are no whole event yet.
    events: Vec<u8>,
}

impl Connection {
    pub(super) async fn open(target: Target) -> Result<Self> {
        Ok(Self::new(target.connect().await?))
    }

    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream: BufStream::new(stream), events: Vec::new() }
    }

    /// Sends a request and reads its response.
    pub(super) async fn exchange(&mut self, request: &[u8]) -> Result<Response> {
        timeout(LIMIT, async {
            // A server that refuses the connection may have closed it: its response is there to be read.
            let sent = self.send(request).await;
            let response = self.response().await;
            if response.is_err() {
                sent?;
            }
            response
        })
        .await
        .context("the response took too long")?
    }

    pub(super) async fn send(&mut self, request: &[u8]) -> Result<()> {
        self.stream.write_all(request).await?;
        Ok(self.stream.flush().await?)
    }

    async fn response(&mut self) -> Result<Response> {
        let (mut response, framing) = self.head().await?;
        match framing {
            Framing::Length(length) => {
                response.body = vec![0; length];
                self.stream.read_exact(&mut response.body).await?;
            }
            Framing::Chunks => while self.chunk(&mut response.body).await? {},
        }
        Ok(response)
    }

    /// Begins a stream of events; gives the status.
    pub(super) async fn open_events(&mut self, request: &[u8]) -> Result<u16> {
        self.send(request).await?;
        Ok(timeout(LIMIT, self.head()).await.context("the head took too long")??.0.status)
    }

    /// The data of the next event that has some.
    pub(super) async fn event(&mut self) -> Result<String> {
        loop {
            let end = self.events.windows(2).position(|pair| pair == b"\n\n");
            if let Some(end) = end {
                let event = String::from_utf8(self.events.drain(..end + 2).collect())?;
                let data = event.lines().find_map(|line| line.strip_prefix("data:")).map(str::trim);
                if let Some(data) = data.filter(|data| !data.is_empty()) {
                    return Ok(data.to_owned());
                }
                continue;
            }
            let mut bytes = Vec::new();
            if !timeout(LIMIT, self.chunk(&mut bytes)).await.context("no event came")?? {
                bail!("the stream of events ended");
            }
            self.events.extend(bytes);
        }
    }

    async fn head(&mut self) -> Result<(Response, Framing)> {
        let line = self.line().await?;
        let status = line.get(9..12).with_context(|| format!("no status: {line:?}"))?.parse()?;
        let mut response = Response { status, session: None, body: Vec::new(), is_stream: false };
        let mut framing = Framing::Length(0);
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                return Ok((response, framing));
            }
            let (name, value) = line.split_once(": ").with_context(|| format!("no header: {line:?}"))?;
            match name.to_ascii_lowercase().as_str() {
                "content-length" => framing = Framing::Length(value.parse()?),
                "transfer-encoding" => framing = Framing::Chunks,
                "content-type" => response.is_stream = value.starts_with("text/event-stream"),
                "mcp-session-id" => response.session = Some(value.to_owned()),
                _ => {}
            }
        }
    }

    /// Reads a chunk; false if it was the last one.
    async fn chunk(&mut self, into: &mut Vec<u8>) -> Result<bool> {
        let line = self.line().await?;
        let size = usize::from_str_radix(&line, 16).with_context(|| format!("no chunk: {line:?}"))?;
        let begin = into.len();
        into.resize(begin + size + 2, 0);
        self.stream.read_exact(&mut into[begin..]).await?;
        into.truncate(begin + size);
        Ok(size > 0)
    }

    async fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let read = self.stream.read_line(&mut line).await?;
        ensure!(read > 0, "the server closed the connection");
        Ok(line.trim_end().to_owned())
    }
}
