//! What is sent: the same calls in each way of speaking.

use std::str::FromStr;

use anyhow::{Result, bail};

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Requests of 2025-11-25 that belong to no session.
    Plain,
    /// A session of 2025-11-25 for each connection.
    Session,
    /// 2026-07-28: every request says for itself who asks.
    Modern,
    /// A session of 2025-11-25 for each connection, in text frames.
    WebSocket,
    /// A session of 2025-11-25 for each connection, which asks for a task that is over in place of calling.
    Task,
}

impl FromStr for Mode {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        Ok(match name {
            "plain" => Self::Plain,
            "session" => Self::Session,
            "modern" => Self::Modern,
            "websocket" => Self::WebSocket,
            "task" => Self::Task,
            _ => bail!("no such mode: {name}"),
        })
    }
}

const REVISION: &str = "2025-11-25";

/// Ids have ten digits, so that one can take the place of another.
pub const FIRST_ID: u64 = 1_000_000_000;

/// About 300 bytes that a server has to remember of a client.
const CLIENT: &str = concat!(
    r#""capabilities":{"roots":{"listChanged":true},"sampling":{"tools":{},"context":{}},"#,
    r#""elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"refmcp-bench","title":"Benchmarks of refmcp","#,
    r#""version":"1.0.0","description":"Calls tools, and waits for their answers","#,
    r#""websiteUrl":"https://example.com/a/client/that/calls/tools"}"#
);

/// The request that opens a session.
pub fn initialize() -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"initialize","params":{{"protocolVersion":"{REVISION}",{CLIENT}}}}}"#
    )
}

pub const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// The text that is sent around.
pub const MESSAGE: &str = "hello world";

/// Who asks, in every request of 2026-07-28.
const META: &str = concat!(
    r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"load","version":"1"},"#,
    r#""io.modelcontextprotocol/clientCapabilities":{}}"#
);

/// A call of a tool with one argument.
pub fn call(tool: &str, argument: &str, value: &str, meta: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"{argument}":"{value}"}}{meta}}}}}"#
    )
}

/// A call of a tool that becomes a task, which is over at once.
pub const TASK: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1000000000,"method":"tools/call","#,
    r#""params":{"name":"slow_compute","arguments":{"seconds":0,"label":"bench"},"task":{}}}"#
);

/// A wish to hear of a resource's changes.
pub fn subscribe(uri: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"resources/subscribe","params":{{"uri":"{uri}"}}}}"#
    )
}

/// Writes the requests of one client.
#[derive(Debug, Clone, Copy)]
pub struct Writer {
    pub port: u16,
    pub mode: Mode,
}

impl Writer {
    /// The body, as an HTTP request.
    pub fn post(self, body: &str, session: Option<&str>) -> Vec<u8> {
        let headers = match self.mode {
            Mode::Modern => {
                "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\n".to_owned()
            }
            _ => version_and_session(session),
        };
        let (port, length) = (self.port, body.len());
        format!(
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }

    /// The request for a session's GET stream.
    pub fn get(self, session: &str) -> Vec<u8> {
        let (port, headers) = (self.port, version_and_session(Some(session)));
        format!("GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: text/event-stream\r\n{headers}\r\n")
            .into_bytes()
    }

    /// The request that turns a connection into a WebSocket.
    pub fn upgrade(self) -> Vec<u8> {
        format!(
            "GET /mcp/ws HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\
             Sec-WebSocket-Protocol: mcp\r\n\r\n",
            self.port
        )
        .into_bytes()
    }

    /// A call of `echo`, as it goes over the wire.
    pub fn echo(self, session: Option<&str>) -> Template {
        let meta = if self.mode == Mode::Modern { META } else { "" };
        let body = call("echo", "message", MESSAGE, meta);
        Template::new(if self.mode == Mode::WebSocket { frame(&body) } else { self.post(&body, session) })
    }

    /// A request for the status of a task.
    pub fn get_task(self, session: Option<&str>, task: &str) -> Template {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"tasks/get","params":{{"taskId":"{task}"}}}}"#
        );
        Template::new(self.post(&body, session))
    }
}

fn version_and_session(session: Option<&str>) -> String {
    let session = session.map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
    format!("MCP-Protocol-Version: {REVISION}\r\n{session}")
}

/// The body, as a text frame.
pub fn frame(body: &str) -> Vec<u8> {
    const FINAL_TEXT: u8 = 0x81;
    const MASKED: u8 = 0x80;
    let mut frame = vec![FINAL_TEXT];
    match u8::try_from(body.len()) {
        Ok(length @ ..126) => frame.push(MASKED | length),
        _ => {
            let length = u16::try_from(body.len()).expect("our messages are short");
            frame.push(MASKED | 126);
            frame.extend(length.to_be_bytes());
        }
    }
    frame.extend([0; 4]); // a mask of zeros changes nothing here, and costs the server what any other does
    frame.extend(body.as_bytes());
    frame
}

/// A request that is sent again and again, each time with another id.
pub struct Template {
    bytes: Vec<u8>,
    id_at: usize,
}

impl Template {
    pub fn new(bytes: Vec<u8>) -> Self {
        let id = FIRST_ID.to_string();
        let id_at = bytes.windows(id.len()).position(|window| window == id.as_bytes()).expect("an id");
        Self { bytes, id_at }
    }

    pub fn with_id(&mut self, mut id: u64) -> &[u8] {
        for digit in self.bytes[self.id_at..self.id_at + 10].iter_mut().rev() {
            *digit = b'0' + (id % 10) as u8;
            id /= 10;
        }
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_changes_nothing_but_the_id() {
        let mut template = Writer { port: 80, mode: Mode::Session }.echo(Some("s1"));
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let first = text(template.with_id(FIRST_ID));
        let other = text(template.with_id(1_234_567_890));
        assert_eq!(first.replace("1000000000", "1234567890"), other);
    }

    #[test]
    fn every_body_is_json() {
        for body in [initialize(), INITIALIZED.to_owned(), call("a", "b", "c", META), subscribe("file:///a")]
        {
            serde_json::from_str::<serde_json::Value>(&body).unwrap();
        }
        assert!((280..340).contains(&CLIENT.len()), "{}", CLIENT.len());
    }
}
