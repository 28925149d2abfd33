//! HTTP by hand, on either side: requests whose responses are read as they come, and servers that answer as a test says.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use serde_json::Value;

use super::TEST_TIMEOUT;

/// Sends a request over a connection of its own, with these lines in its head.
pub(crate) fn start(address: &str, request: &str, head: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let host = if head.contains("Host:") { String::new() } else { format!("Host: {address}\r\n") };
    let length = body.len();
    write!(stream, "{request} HTTP/1.1\r\n{host}{head}Content-Length: {length}\r\n\r\n{body}").unwrap();
    stream
}

/// The same, and waits for the head of the response.
pub(crate) fn send(address: &str, request: &str, headers: &[(&str, &str)], body: &str) -> Response {
    let head: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    Response::read(start(address, request, &head, body))
}

/// A response that is being read.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// The status line and the headers, as they were sent.
    pub(crate) head: String,
    pub(crate) stream: BufReader<TcpStream>,
}

impl Response {
    pub(crate) fn read(stream: TcpStream) -> Self {
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(stream.read_line(&mut head).unwrap(), 0, "it ends within the head: {head}");
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self { status, head, stream }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// Waits for its end; gives what came until then.
    pub(crate) fn text(mut self) -> String {
        let mut text = String::new();
        self.stream.read_to_string(&mut text).expect("the end comes in time");
        text
    }

    /// The message in it, in JSON or at the end of a stream of events.
    pub(crate) fn json(mut self) -> Value {
        if !self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream")) {
            let text = self.text();
            return serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        }
        loop {
            let message = self.event().expect("an answer");
            if message.get("method").is_none() {
                return message;
            }
        }
    }

    /// The message in the next event; nothing at the end.
    pub(crate) fn event(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // Between the lines of events stand those of chunks.
            // The first event of a stream that can be resumed has no data.
            let data = line.strip_prefix("data: ").filter(|data| !data.trim().is_empty());
            if let Some(data) = data {
                return Some(serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {data}")));
            }
        }
    }
}

/// A request that was received.
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Self> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head)? > 0 {}
        let lower = head.to_ascii_lowercase();
        let length = lower.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        stream.read_exact(&mut body)?;
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        Ok(Self { path, head, body: String::from_utf8_lossy(&body).into_owned() })
    }

    /// The message in its body; `null` where there is none.
    pub(crate) fn message(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

/// An answer: status, further lines of the head, body.
pub(crate) struct Answer(pub(crate) &'static str, pub(crate) &'static str, pub(crate) String);

impl Answer {
    pub(crate) fn json(status: &'static str, body: &Value) -> Self {
        Self(status, "Content-Type: application/json\r\n", body.to_string())
    }

    pub(crate) fn empty(status: &'static str) -> Self {
        Self(status, "", String::new())
    }
}

/// Answers every request from now on, each on a connection of its own; gives the origin, `http://127.0.0.1:PORT`. The
/// function is told the request and the origin.
pub(crate) fn answering(answer: impl Fn(&Request, &str) -> Answer + Send + Sync + 'static) -> String {
    let serve = move |stream: TcpStream| {
        let origin = format!("http://{}", stream.local_addr().unwrap());
        let mut stream = BufReader::new(stream);
        // A client that left has no use for the answer.
        let Ok(request) = Request::read(&mut stream) else { return };
        let Answer(status, head, body) = answer(&request, &origin);
        let length = body.len();
        let _ = write!(
            stream.get_mut(),
            "HTTP/1.1 {status}\r\n{head}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
    };
    format!("http://{}", listening(serve))
}

/// Does this with every connection, each in a thread; gives the address.
pub(crate) fn listening(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> String {
    let serve = Arc::new(serve);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = serve.clone();
            thread::spawn(move || serve(stream));
        }
    });
    address
}
