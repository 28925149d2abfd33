//! A bridge that listens, and a client that writes its HTTP by hand.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::serving::PATIENCE;
use crate::support::{Process, program};

/// A bridge that listens.
pub(crate) struct Door {
    pub(crate) process: Process,
    /// Where it listens, as it says.
    pub(crate) url: String,
    /// The same without scheme and path.
    pub(crate) address: String,
}

impl Door {
    pub(crate) fn open(from: &str, to: &[impl AsRef<str>]) -> Self {
        let to = to.iter().map(AsRef::as_ref);
        let args: Vec<&str> = ["bridge", "--from", from].into_iter().chain(to).collect();
        let process = Process::spawn(program(&args));
        let banner = process.next_line().expect("it says where it listens");
        let url = banner.rsplit(' ').next().unwrap().to_owned();
        let address = url.split("://").nth(1).unwrap().split('/').next().unwrap().to_owned();
        Self { process, url, address }
    }

    /// Sends a request, with these lines in its head, and waits for the head of the response.
    pub(crate) fn send(&self, method: &str, head: &[String], body: &str) -> Response {
        self.start(method, head, body).response()
    }

    /// Sends a request, with these lines in its head.
    pub(crate) fn start(&self, method: &str, head: &[String], body: &str) -> Started {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let lines: String = head.iter().map(|line| format!("{line}\r\n")).collect();
        let host =
            if lines.contains("Host:") { String::new() } else { format!("Host: {}\r\n", self.address) };
        let path = &self.url[self.url.find(&self.address).unwrap() + self.address.len()..];
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{host}{lines}Accept: application/json, text/event-stream\r\n\
             Content-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        Started(stream)
    }

    /// Opens a session; gives the line that names it.
    pub(crate) fn session(&self, revision: &str) -> String {
        let response = self.send("POST", &[], &crate::support::Client::initialize(revision));
        assert_eq!(response.status, 200, "{}", response.head);
        let id = response.header("mcp-session-id").expect("a session");
        let session = format!("Mcp-Session-Id: {id}");
        let answer = response.json();
        assert_eq!(answer["result"]["protocolVersion"], revision, "{answer}");
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(self.send("POST", std::slice::from_ref(&session), ready).status, 202);
        session
    }
}

/// A request that was sent.
pub(crate) struct Started(TcpStream);

impl Started {
    pub(crate) fn response(self) -> Response {
        Response::begin(self.0)
    }
}

/// A response that is being read.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    body: BufReader<TcpStream>,
}

impl Response {
    fn begin(stream: TcpStream) -> Self {
        let mut body = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(body.read_line(&mut head).unwrap() > 0, "it ended within its head: {head}");
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self { status, head, body }
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
    }

    /// The rest of it.
    pub(crate) fn text(mut self) -> String {
        let mut text = String::new();
        self.body.read_to_string(&mut text).unwrap();
        text
    }

    /// The message in it, whichever kind of response it is.
    pub(crate) fn json(mut self) -> Value {
        if self.header("content-type").is_some_and(|kind| kind.starts_with("application/json")) {
            let text = self.text();
            return serde_json::from_str(&text).unwrap_or_else(|fault| panic!("{fault}: {text}"));
        }
        loop {
            let message = self.event().expect("an answer");
            if message.get("method").is_none() {
                return message;
            }
        }
    }

    /// The next event; nothing at the end.
    pub(crate) fn event(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.body.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // Between the lines of events stand those of chunks.
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(serde_json::from_str(data).unwrap_or_else(|fault| panic!("{fault}: {data}")));
            }
        }
    }
}
