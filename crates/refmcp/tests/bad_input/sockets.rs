//! HTTP/1.1 and WebSocket by hand, which wait for each response.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use crate::support::TEST_TIMEOUT;

fn connect(address: &str) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_nodelay(true).unwrap();
    socket.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    socket
}

/// What came back for a request.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    pub(crate) messages: Vec<String>,
}

/// A connection that is used again until the server closes it.
pub(crate) struct HttpConnection {
    address: String,
    socket: Option<BufReader<TcpStream>>,
}

impl HttpConnection {
    pub(crate) fn new(address: &str) -> Self {
        Self { address: address.to_owned(), socket: None }
    }

    pub(crate) fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: &[u8],
    ) -> Response {
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n",
            self.address,
            body.len()
        );
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += "\r\n";
        let bytes = [request.as_bytes(), body].concat();
        let used = self.socket.take().and_then(|socket| exchange(socket, &bytes));
        // The server may have closed a connection that was not used for a while.
        let answered = used.or_else(|| exchange(BufReader::new(connect(&self.address)), &bytes));
        let (head, mut socket) = answered.expect("a response");
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let is_stream = header(&head, "content-type").is_some_and(|kind| kind == "text/event-stream");
        let session = header(&head, "mcp-session-id").map(str::to_owned);
        let closes = header(&head, "connection").is_some_and(|value| value == "close");
        let mut body = Vec::new();
        let text = if is_chunked(&head) {
            let mut chunks = Chunks::new(socket);
            chunks.read_to_end(&mut body).unwrap();
            socket = chunks.socket;
            String::from_utf8(body).unwrap()
        } else {
            let length = header(&head, "content-length").map_or(0, |length| length.parse().unwrap());
            body.resize(length, 0);
            socket.read_exact(&mut body).unwrap();
            String::from_utf8(body).unwrap()
        };
        if !closes {
            self.socket = Some(socket);
        }
        let messages = match is_stream {
            true => text.lines().filter_map(event_data).collect(),
            false => Some(text).filter(|text| !text.is_empty()).into_iter().collect(),
        };
        Response { status, session, messages }
    }
}

/// Sends a request and waits for the head of its response; nothing where the connection has ended.
fn exchange(mut socket: BufReader<TcpStream>, request: &[u8]) -> Option<(String, BufReader<TcpStream>)> {
    // A server that refuses the head reads no body.
    let _ = socket.get_mut().write_all(request);
    let head = read_head(&mut socket).ok()?;
    Some((head, socket))
}

fn read_head(socket: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if socket.read_line(&mut head)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(head)
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

fn is_chunked(head: &str) -> bool {
    header(head, "transfer-encoding").is_some_and(|coding| coding == "chunked")
}

/// The message or URI of an event; the first event of a stream that can be resumed has none.
fn event_data(line: &str) -> Option<String> {
    line.strip_prefix("data: ").map(str::trim_end).filter(|data| !data.is_empty()).map(str::to_owned)
}

/// A body in chunks.
struct Chunks {
    socket: BufReader<TcpStream>,
    /// What is left of the chunk.
    left: usize,
    ended: bool,
}

impl Chunks {
    fn new(socket: BufReader<TcpStream>) -> Self {
        Self { socket, left: 0, ended: false }
    }
}

impl Read for Chunks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !self.ended {
            let mut line = String::new();
            self.socket.read_line(&mut line)?;
            self.left = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
            if self.left == 0 {
                self.ended = true;
                self.socket.read_line(&mut line)?;
            }
        }
        if self.ended {
            return Ok(0);
        }
        let most = buffer.len().min(self.left);
        let count = self.socket.read(&mut buffer[..most])?;
        self.left -= count;
        if self.left == 0 && count > 0 {
            self.socket.read_exact(&mut [0; 2])?;
        }
        Ok(count)
    }
}

/// The stream of HTTP+SSE.
pub(crate) struct EventStream(BufReader<Chunks>);

impl EventStream {
    pub(crate) fn open(address: &str, path: &str) -> Self {
        let mut socket = BufReader::new(connect(address));
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n");
        socket.get_mut().write_all(request.as_bytes()).unwrap();
        let head = read_head(&mut socket).unwrap();
        assert!(head.starts_with("HTTP/1.1 200 ") && is_chunked(&head), "{head}");
        Self(BufReader::new(Chunks::new(socket)))
    }

    /// The data of the next event; nothing at the end.
    pub(crate) fn next(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(data) = event_data(&line) {
                return Some(data);
            }
        }
    }
}

/// A WebSocket.
pub(crate) struct WebSocket(BufReader<TcpStream>);

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const LAST: u8 = 0x80;
const MASKED: u8 = 0x80;

impl WebSocket {
    pub(crate) fn open(address: &str, path: &str) -> Self {
        let mut socket = BufReader::new(connect(address));
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        );
        socket.get_mut().write_all(request.as_bytes()).unwrap();
        let head = read_head(&mut socket).unwrap();
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        Self(socket)
    }

    /// Sends a text message, whether its bytes are text or not, masked with nothing.
    pub(crate) fn send(&mut self, message: &[u8]) {
        let mut frame = vec![LAST | TEXT];
        match (u8::try_from(message.len()), u16::try_from(message.len())) {
            (Ok(length @ ..=125), _) => frame.push(MASKED | length),
            (_, Ok(length)) => {
                frame.push(MASKED | 126);
                frame.extend(length.to_be_bytes());
            }
            _ => {
                frame.push(MASKED | 127);
                frame.extend((message.len() as u64).to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(message);
        self.0.get_mut().write_all(&frame).unwrap();
    }

    /// The next message, or the code that the socket is closed with.
    pub(crate) fn next(&mut self) -> Result<String, Option<u16>> {
        loop {
            let (kind, payload) = self.frame().map_err(|_| None)?;
            match kind {
                TEXT => return Ok(String::from_utf8(payload).unwrap()),
                CLOSE => return Err(payload.first_chunk().map(|code| u16::from_be_bytes(*code))),
                _ => {}
            }
        }
    }

    fn frame(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let [first, short]: [u8; 2] = self.bytes()?;
        let length = match short & 0x7f {
            126 => u64::from(u16::from_be_bytes(self.bytes()?)),
            127 => u64::from_be_bytes(self.bytes()?),
            short => u64::from(short),
        };
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.0.read_exact(&mut payload)?;
        Ok((first & 0x0f, payload))
    }

    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}
