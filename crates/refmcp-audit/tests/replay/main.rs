//! Recordings replayed as a client and as a server, and compared, without sockets.

mod client;
mod compare;
mod conversations;
mod server;

use refmcp_audit::recording::{Event, EventKind, Side};
use refmcp_audit::replay::{Conversations, RecordedConversation, conversations};
use refmcp_transport::observer::Direction;
use serde_json::Value;

/// Lines of a recording, each `c MESSAGE` or `s MESSAGE`: what the client or the server of one connection sent.
fn recorded(transport: &str, lines: &[&str]) -> Conversations {
    let mut text = opened(transport);
    for line in lines {
        text += &passed(line, None);
    }
    conversations(text.as_bytes()).unwrap()
}

/// The line that opens connection 1.
fn opened(transport: &str) -> String {
    format!(
        "{{\"at\":1,\"event\":\"opened\",\"connection\":1,\"side\":\"client\",\"transport\":\"{transport}\",\"peer\":\"\"}}\n"
    )
}

/// A line of a recording for a message of the client or the server, over HTTP with the number of its request.
fn passed(line: &str, stream: Option<u64>) -> String {
    event(line, stream).to_line()
}

/// What happened: `c MESSAGE`, `s MESSAGE`.
fn event(line: &str, stream: Option<u64>) -> Event {
    let (from, text) = line.split_once(' ').unwrap();
    let direction = if from == "c" { Direction::Sent } else { Direction::Received };
    let kind = EventKind::Message { direction, text: text.to_owned(), event_id: None };
    Event { at: 1, connection: 1, revision: None, stream, kind }
}

/// The one conversation.
fn one(conversations: &Conversations) -> &RecordedConversation {
    assert_eq!(conversations.len(), 1);
    assert_eq!(conversations[0].side, Side::Client);
    &conversations[0]
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}
