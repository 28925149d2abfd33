//! Rows of bad input: what is sent, and what must come back.

use std::collections::HashMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::peer::{Peer, Site, Transport, Way};

/// Text that must not turn up in the log, whatever is made of it.
pub(crate) fn long(bytes: usize) -> String {
    "x".repeat(bytes)
}

/// One row of the table.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    name: String,
    sent: Vec<u8>,
    expected: Expected,
    /// The HTTP status, where it is not that of the error's code.
    status: Option<u16>,
}

#[derive(Debug, Clone, Copy)]
enum Expected {
    /// A JSON-RPC error with this code, a message that contains this word, and this id.
    Error(i64, &'static str, Id),
    /// A tool's result that tells of an error and contains this word.
    ToolError(&'static str),
    /// A result with this id.
    Served(&'static str),
    Nothing,
    /// The end of the connection: a WebSocket's code.
    Closed(u16),
    /// An HTTP response of this status, without a message.
    Refused(u16),
}

#[derive(Debug, Clone, Copy)]
enum Id {
    /// The request's own, as JSON.
    Is(&'static str),
    /// What stands for an id that cannot be read.
    Unreadable,
}

pub(crate) fn row(name: impl Into<String>, sent: impl Into<Vec<u8>>) -> Row {
    Row { name: name.into(), sent: sent.into(), expected: Expected::Nothing, status: None }
}

impl Row {
    /// An error that answers a request of id 7.
    pub(crate) fn error(self, code: i64, word: &'static str) -> Self {
        Self { expected: Expected::Error(code, word, Id::Is("7")), ..self }
    }

    /// An error that answers something without a readable id.
    pub(crate) fn unreadable(self, code: i64, word: &'static str) -> Self {
        Self { expected: Expected::Error(code, word, Id::Unreadable), ..self }
    }

    /// A result for a request of id 7.
    pub(crate) fn served(self) -> Self {
        self.served_as("7")
    }

    /// A result for a request of this id.
    pub(crate) fn served_as(self, id: &'static str) -> Self {
        Self { expected: Expected::Served(id), ..self }
    }

    /// The error for arguments that do not fit: a JSON-RPC error in old revisions, a result in new ones.
    pub(crate) fn bad_arguments(self, way: Way, word: &'static str) -> Self {
        if way.has_argument_errors() {
            return self.error(-32602, word);
        }
        Self { expected: Expected::ToolError(word), ..self }
    }

    /// Bytes that are no UTF-8: the protocol of WebSocket itself ends such a connection.
    pub(crate) fn no_text(self, way: Way) -> Self {
        match way.transport {
            Transport::WebSocket => Self { expected: Expected::Closed(1007), ..self },
            _ => self.unreadable(-32700, "UTF-8"),
        }
    }

    /// What is too long for a header that must repeat it.
    pub(crate) fn too_long_for_headers(self, way: Way) -> Self {
        if way.has_status() && way.is_stateless() {
            return Self { expected: Expected::Refused(431), ..self };
        }
        self
    }

    /// An error that over HTTP is found before the message belongs to a session or call.
    pub(crate) fn bad_request(self) -> Self {
        Self { status: Some(400), ..self }
    }

    /// Over HTTP, what would be ignored elsewhere is refused with this error.
    pub(crate) fn refused_over_http(self, way: Way, code: i64, word: &'static str) -> Self {
        if way.has_status() { self.unreadable(code, word) } else { self }
    }

    /// Sends it, and checks what comes back.
    pub(crate) fn check(&self, site: &Site, peer: &mut Peer) {
        let (way, name) = (peer.way, &self.name);
        peer.send(&self.sent);
        let status = |code: Option<i64>| self.status.unwrap_or_else(|| status_of(way, code));
        let line = match self.expected {
            Expected::Nothing => {
                if let Some(status) = peer.status {
                    assert_eq!(status, 202, "{way:?}, {name}: {:?}", peer.next());
                }
                return peer.hears_nothing(name);
            }
            Expected::Closed(code) => {
                assert_eq!((peer.next(), peer.status), (None, Some(code)), "{way:?}, {name}");
                *peer = Peer::open(site, way);
                return peer.hears_nothing(name);
            }
            Expected::Refused(status) => {
                assert_eq!(peer.status, Some(status), "{way:?}, {name}");
                while peer.next().is_some() {}
                return peer.hears_nothing(name);
            }
            _ => peer.next().unwrap_or_else(|| panic!("{way:?}, {name}: no answer, {:?}", peer.status)),
        };
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        let place = format!("{way:?}, {name}: {}", line.chars().take(500).collect::<String>());
        // Read as text: an id may have more digits than any number.
        let id_text = id_of(&line);
        let word = match self.expected {
            Expected::Error(code, word, id) => {
                assert_eq!(answer["error"]["code"], code, "{place}");
                let id = match id {
                    Id::Is(id) => Some(id),
                    Id::Unreadable => way.unreadable_id(),
                };
                assert_eq!(id_text, id, "{place}");
                if way.has_status() {
                    assert_eq!(peer.status, Some(status(Some(code))), "{place}");
                }
                word
            }
            Expected::ToolError(word) => {
                assert_eq!(answer["result"]["isError"], true, "{place}");
                word
            }
            Expected::Served(id) => {
                assert!(answer["result"].is_object(), "{place}");
                assert_eq!(id_text, Some(id), "{place}");
                if way.has_status() {
                    assert_eq!(peer.status, Some(200), "{place}");
                }
                ""
            }
            Expected::Nothing | Expected::Closed(_) | Expected::Refused(_) => "",
        };
        assert!(line.contains(word), "{place} does not say {word}");
        if answer["result"]["isError"] == true || answer.get("error").is_some() {
            let message =
                answer["error"]["message"].as_str().or(answer["result"]["content"][0]["text"].as_str());
            assert!(message.is_some_and(|message| message.len() < 2000), "{place} is too long");
        }
        peer.hears_nothing(name);
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// The HTTP status of a response with this error. In a session a request that was understood has 200.
fn status_of(way: Way, code: Option<i64>) -> u16 {
    match (way.is_stateless(), code) {
        (_, Some(-32700 | -32600)) | (true, Some(-32022..=-32020)) => 400,
        (true, Some(-32601)) => 404,
        _ => 200,
    }
}

fn id_of(line: &str) -> Option<&str> {
    let members: HashMap<&str, &RawValue> = serde_json::from_str(line).expect("an object");
    members.get("id").map(|id| id.get())
}

/// A request of id 7.
pub(crate) fn request(way: Way, method: &str, params: &Value) -> String {
    way.version.request(7, method, params)
}

/// A tool call of id 7.
pub(crate) fn call(way: Way, tool: &str, arguments: &Value) -> String {
    way.version.call(7, tool, arguments)
}

/// A good request of id 7, one of its parts replaced.
pub(crate) fn altered(way: Way, part: &str, by: &str) -> String {
    let good = request(way, "tools/list", &json!({}));
    assert!(good.contains(part), "{part} is not in {good}");
    good.replacen(part, by, 1)
}
