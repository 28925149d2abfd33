//! The part of the recordings that a page shows: events in short, of limited number and size.

use std::collections::HashMap;

use refmcp_transport::observer::{Direction, Side};
use serde_json::Value;

use crate::recording::{Event, EventKind, Header};
use crate::verdict::Role;

/// The first events of recordings, each cut to a limited size. A page shows these, and the evidence of every violation.
#[derive(Debug, Default)]
pub struct Excerpt {
    pub(super) entries: Vec<Entry>,
    /// Events in all.
    pub(super) events: u64,
    bytes: usize,
    /// The side of the process that recorded, by connection.
    sides: HashMap<u64, Side>,
}

/// An event in short.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The number of the event.
    pub(super) event: u64,
    /// When, in milliseconds since the Unix epoch.
    pub(super) at: u64,
    pub(super) connection: u64,
    pub(super) stream: Option<u64>,
    /// The sender; none of what both or neither sent.
    pub(super) from: Option<Role>,
    /// What it is, on one line.
    pub(super) title: String,
    /// The message, the head or what it says, cut to [`MAX_TEXT`] bytes.
    pub(super) text: String,
}

/// Events of an excerpt.
const MAX_EVENTS: usize = 4000;

/// Bytes of all events of an excerpt.
const MAX_BYTES: usize = 8 << 20;

/// Bytes of one event.
const MAX_TEXT: usize = 4096;

impl Excerpt {
    /// Takes an event as it passes, for a page of what is no recording.
    pub fn add(&mut self, event: &Event) {
        self.observe(self.events + 1, 0, event);
    }

    /// Takes the next event, which has this number; the recording numbers its connection lower by `offset`.
    pub(super) fn observe(&mut self, number: u64, offset: u64, event: &Event) {
        self.events = number;
        if self.entries.len() >= MAX_EVENTS || self.bytes >= MAX_BYTES {
            return;
        }
        if let EventKind::Opened { side, .. } = event.kind {
            self.sides.insert(event.connection, side);
        }
        let (direction, title, text) = described(&event.kind);
        let side = self.sides.get(&event.connection);
        let from = direction.zip(side).map(|(direction, side)| Role::sender(*side, direction));
        let text = cut(text);
        self.bytes += title.len() + text.len();
        let Event { at, connection, stream, .. } = *event;
        let connection = connection.saturating_sub(offset);
        self.entries.push(Entry { event: number, at, connection, stream, from, title, text });
    }
}

/// Which way an event went, what it is, and what it says.
fn described(kind: &EventKind) -> (Option<Direction>, String, String) {
    match kind {
        EventKind::Opened { side, transport, peer } => {
            let side = if *side == Side::Client { "client" } else { "server" };
            let peer = if peer.is_empty() { String::new() } else { format!(", peer {peer}") };
            (None, format!("opened: {transport}, recorded by the {side}{peer}"), String::new())
        }
        EventKind::Message { direction, text, .. } => (Some(*direction), message_title(text), text.clone()),
        EventKind::Invalid { direction, bytes, why } => {
            (Some(*direction), format!("no message: {why}"), String::from_utf8_lossy(bytes).into_owned())
        }
        EventKind::Request { direction, method, target, headers } => {
            (Some(*direction), format!("{method} {target}"), fields(headers))
        }
        EventKind::Response { direction, status, headers } => {
            (Some(*direction), format!("HTTP status {status}"), fields(headers))
        }
        EventKind::Sse { direction, name, event_id, retry, data } => {
            let parts = [
                name.as_ref().map(|name| format!("event: {name}")),
                event_id.as_ref().map(|id| format!("id: {id}")),
                retry.map(|delay| format!("retry: {delay}")),
                (!data.is_empty()).then(|| format!("data: {data}")),
            ];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            (Some(*direction), "SSE event without a message".to_owned(), parts.join("\n"))
        }
        EventKind::Ended { direction } => {
            (Some(*direction), "the response has ended".to_owned(), String::new())
        }
        EventKind::Refused { status, reason, why } => {
            (None, format!("the server refuses with {status} ({reason})"), why.clone())
        }
        EventKind::Failed { why } => (None, "failed".to_owned(), why.clone()),
        EventKind::Finding { rule, what, expected } => (
            None,
            format!("finding of the recording process: {rule}"),
            format!("{what}\nexpected: {expected}"),
        ),
        EventKind::Stderr { bytes } => {
            (None, "standard error of the server".to_owned(), String::from_utf8_lossy(bytes).into_owned())
        }
        EventKind::Closed { why } => (None, format!("closed: {why}"), String::new()),
    }
}

fn fields(headers: &[Header]) -> String {
    let lines: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    lines.join("\n")
}

/// What a message is: its method, or what it answers.
fn message_title(text: &str) -> String {
    let Ok(message) = serde_json::from_str::<Value>(text) else { return "message".to_owned() };
    if let Value::Array(batch) = &message {
        return format!("batch of {}", batch.len());
    }
    let id = message.get("id").map(|id| format!(", id {id}")).unwrap_or_default();
    let title = match (message.get("method").and_then(Value::as_str), message.get("error")) {
        (Some(method), _) => format!("{method}{id}"),
        (None, Some(_)) => format!("error{id}"),
        (None, None) => format!("result{id}"),
    };
    shortened(&title, 120)
}

/// At most [`MAX_TEXT`] bytes of a text; what is cut says how long it was.
fn cut(text: String) -> String {
    match text.len() {
        0..=MAX_TEXT => text,
        whole => format!("{} ({whole} bytes in all)", shortened(&text, MAX_TEXT)),
    }
}

/// At most so many bytes of a text; `…` stands for the rest.
fn shortened(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    format!("{}…", text.get(..text.floor_char_boundary(bytes)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Event {
        let kind =
            EventKind::Message { direction: Direction::Received, text: text.to_owned(), event_id: None };
        Event { at: 1, connection: 7, revision: None, stream: None, kind }
    }

    #[test]
    fn messages_are_named_by_their_method_or_what_they_answer() {
        for (text, title) in [
            (r#"{"method":"ping","id":"a"}"#, "ping, id \"a\""),
            (r#"{"method":"notifications/progress"}"#, "notifications/progress"),
            (r#"{"id":3,"result":{}}"#, "result, id 3"),
            (r#"{"id":3,"error":{}}"#, "error, id 3"),
            ("[1,2]", "batch of 2"),
        ] {
            assert_eq!(message_title(text), title);
        }
        let long = format!("{{\"method\":\"{}\"}}", "ä".repeat(1000));
        assert!(message_title(&long).len() < 130);
    }

    #[test]
    fn the_sender_follows_from_the_side_that_recorded() {
        let mut excerpt = Excerpt::default();
        excerpt.observe(1, 0, &message("{}"));
        let (transport, peer) = ("stdio".to_owned(), String::new());
        let opened = EventKind::Opened { side: Side::Server, transport, peer };
        excerpt.observe(2, 0, &Event { kind: opened, ..message("") });
        excerpt.observe(3, 0, &message("{}"));
        let from: Vec<_> = excerpt.entries.iter().map(|entry| entry.from).collect();
        assert_eq!(from, [None, None, Some(Role::Client)]);
    }

    #[test]
    fn events_and_their_sizes_are_limited() {
        let mut excerpt = Excerpt::default();
        let long = format!("\"{}\"", "x".repeat(5000));
        for number in 1..=3000 {
            excerpt.observe(number, 0, &message(&long));
        }
        assert_eq!(excerpt.events, 3000);
        assert!(excerpt.entries.len() < 3000 && excerpt.bytes < MAX_BYTES + 2 * MAX_TEXT);
        assert!(excerpt.entries[0].text.ends_with("… (5002 bytes in all)"));
    }
}
