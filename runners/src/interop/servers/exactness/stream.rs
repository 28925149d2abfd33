//! A session over streamable HTTP whose streams are read, left and resumed: each request is a `curl` of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// The newest revision whose streams can be resumed.
const REVISION: &str = "2025-11-25";

/// How long one event is waited for, and a whole stream.
const EVENT_LIMIT: Duration = Duration::from_secs(10);
const STREAM_LIMIT: &str = "60";

/// An event of a stream, or the body of a response that is none.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) id: Option<String>,
    /// Null where it has no message.
    pub(super) message: Value,
}

#[derive(Debug)]
enum Part {
    Head { status: u16, session: Option<String> },
    Event(Event),
}

/// A response that is being read; dropped, its connection is closed.
pub(super) struct Stream {
    curl: Child,
    parts: Receiver<Part>,
    pub(super) status: u16,
    session: Option<String>,
}

/// A session.
pub(super) struct Session {
    url: String,
    id: Option<String>,
}

impl Session {
    pub(super) fn open(url: &str) -> Result<Self> {
        let mut session = Self { url: url.to_owned(), id: None };
        let params = json!({
            "protocolVersion": REVISION, "capabilities": {},
            "clientInfo": { "name": "refmcp-exactness", "version": "0.0.0" },
        });
        let opening = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let mut stream = session.post(&opening)?;
        let events = stream.rest(EVENT_LIMIT);
        let agreed = events.iter().find_map(|event| event.message.pointer("/result/protocolVersion"));
        ensure!(agreed == Some(&json!(REVISION)), "initialize is answered with {events:?}");
        session.id = stream.session.take();
        session.post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(session)
    }

    pub(super) fn post(&self, message: &Value) -> Result<Stream> {
        self.post_late(message, Duration::ZERO)
    }

    /// The same, for a reader that reads nothing for a while.
    pub(super) fn post_late(&self, message: &Value, pause: Duration) -> Result<Stream> {
        let mut curl = self.curl();
        curl.args([
            "-H",
            "Content-Type: application/json",
            "-H",
            "Accept: application/json, text/event-stream",
        ]);
        curl.arg("--data-binary").arg(message.to_string());
        Stream::open(&mut curl, pause)
    }

    /// Resumes the stream of an event.
    pub(super) fn resume(&self, event: &str) -> Result<Stream> {
        let mut curl = self.curl();
        curl.args(["-H", "Accept: text/event-stream", "-H", &format!("Last-Event-ID: {event}")]);
        Stream::open(&mut curl, Duration::ZERO)
    }

    fn curl(&self) -> Command {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--no-buffer", "--include", "--max-time", STREAM_LIMIT, &self.url]);
        if let Some(id) = &self.id {
            let version = format!("MCP-Protocol-Version: {REVISION}");
            curl.args(["-H", &format!("Mcp-Session-Id: {id}"), "-H", &version]);
        }
        curl
    }
}

impl Stream {
    fn open(curl: &mut Command, pause: Duration) -> Result<Self> {
        let mut curl =
            curl.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("curl cannot be started")?;
        let output = curl.stdout.take().context("curl has no output")?;
        let (sender, parts) = mpsc::channel();
        thread::spawn(move || {
            thread::sleep(pause);
            // Whether the receiver is there or not, the output ends with the process.
            let _ = read(BufReader::new(output), |part| sender.send(part).is_ok());
        });
        let mut stream = Self { curl, parts, status: 0, session: None };
        if let Ok(Part::Head { status, session }) = stream.parts.recv_timeout(pause + EVENT_LIMIT) {
            (stream.status, stream.session) = (status, session);
        }
        Ok(stream)
    }

    /// The events until there are so many with a message, or nothing more comes.
    pub(super) fn take(&self, messages: usize) -> Vec<Event> {
        let mut events: Vec<Event> = Vec::new();
        while events.iter().filter(|event| !event.message.is_null()).count() < messages {
            let Ok(part) = self.parts.recv_timeout(EVENT_LIMIT) else { break };
            events.extend(part.event());
        }
        events
    }

    /// What comes until the stream ends, a response has come, or nothing has come for so long.
    pub(super) fn rest(&self, patience: Duration) -> Vec<Event> {
        let mut events: Vec<Event> = Vec::new();
        let mut until = Instant::now() + patience;
        loop {
            match self.parts.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(part) => {
                    let event = part.event();
                    // A second response would come at once.
                    let is_last = event.as_ref().is_some_and(|event| is_response(&event.message));
                    until = Instant::now() + if is_last { Duration::from_millis(500) } else { patience };
                    events.extend(event);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return events,
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.curl.kill(); // it may have ended by itself
        let _ = self.curl.wait();
    }
}

impl Part {
    fn event(self) -> Option<Event> {
        match self {
            Self::Event(event) => Some(event),
            Self::Head { .. } => None,
        }
    }
}

pub(super) fn is_response(message: &Value) -> bool {
    message.get("method").is_none() && message.get("id").is_some()
}

/// Reads what curl prints: the head, then events, or one body.
fn read(mut output: impl BufRead, pass: impl Fn(Part) -> bool) -> std::io::Result<()> {
    let (mut line, mut status, mut session, mut is_stream) = (String::new(), 0, None, false);
    while output.read_line(&mut line)? > 0 {
        let text = line.trim();
        if let Some((name, value)) = text.split_once(':') {
            let value = value.trim();
            match &*name.to_ascii_lowercase() {
                "mcp-session-id" => session = Some(value.to_owned()),
                "content-type" => is_stream = value.starts_with("text/event-stream"),
                _ => {}
            }
        } else if let Some(code) = text.strip_prefix("HTTP/").and_then(|rest| rest.split(' ').nth(1)) {
            status = code.parse().unwrap_or(0);
        } else if text.is_empty() {
            break;
        }
        line.clear();
    }
    if !pass(Part::Head { status, session }) {
        return Ok(());
    }
    let (mut id, mut data) = (None, None::<String>);
    loop {
        line.clear();
        if output.read_line(&mut line)? == 0 {
            break;
        }
        let text = line.trim_end_matches(['\r', '\n']);
        if !is_stream {
            data.get_or_insert_default().push_str(text);
        } else if let Some(value) = text.strip_prefix("id:") {
            id = Some(value.trim().to_owned());
        } else if let Some(value) = text.strip_prefix("data:") {
            data.get_or_insert_default().push_str(value.trim());
        } else if text.is_empty()
            && (id.is_some() || data.is_some())
            && !pass(Part::Event(event(id.take(), data.take())))
        {
            return Ok(());
        }
    }
    if !is_stream && data.is_some() {
        pass(Part::Event(event(None, data)));
    }
    Ok(())
}

fn event(id: Option<String>, data: Option<String>) -> Event {
    Event { id, message: serde_json::from_str(&data.unwrap_or_default()).unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn parts(text: &str) -> Vec<Part> {
        let parts = RefCell::new(Vec::new());
        read(text.as_bytes(), |part| {
            parts.borrow_mut().push(part);
            true
        })
        .unwrap();
        parts.into_inner()
    }

    #[test]
    fn events_and_bodies_are_read() {
        let head = "HTTP/1.1 200 OK\r\nMcp-Session-Id: s\r\nContent-Type: text/event-stream\r\n\r\n";
        let read = parts(&format!("{head}id: 1\ndata:\n\n: comment\n\nid: 2\ndata: {{\"id\":5}}\n\n"));
        let [Part::Head { status: 200, session: Some(_) }, Part::Event(first), Part::Event(second)] =
            &read[..]
        else {
            panic!("{read:?}")
        };
        assert_eq!((first.id.as_deref(), &first.message), (Some("1"), &Value::Null));
        assert!(second.id.as_deref() == Some("2") && is_response(&second.message));
        let read = parts("HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\n\r\n{\"id\":1}");
        assert!(matches!(&read[..], [Part::Head { status: 404, .. }, Part::Event(_)]), "{read:?}");
    }
}
