//! A bridge that listens, and a client that writes its HTTP by hand.

use std::net::TcpStream;

use crate::support::http::{self, Response};
use crate::support::{Process, program};

/// A bridge that listens.
pub(crate) struct Listener {
    pub(crate) process: Process,
    /// Where it listens, as it says.
    pub(crate) url: String,
    /// The same without scheme and path.
    pub(crate) address: String,
}

impl Listener {
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
        Response::read(self.start(method, head, body))
    }

    /// Sends a request, with these lines in its head.
    pub(crate) fn start(&self, method: &str, head: &[String], body: &str) -> TcpStream {
        let path = &self.url[self.url.find(&self.address).unwrap() + self.address.len()..];
        let lines: String = head.iter().map(|line| format!("{line}\r\n")).collect();
        let head = format!(
            "{lines}Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\nConnection: close\r\n"
        );
        http::start(&self.address, &format!("{method} {path}"), &head, body)
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
