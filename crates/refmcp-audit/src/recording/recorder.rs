//! The observer that writes a recording.

use std::fmt;

use refmcp_proto::finding::Finding;
use refmcp_proto::rule::Rule;
use refmcp_proto::time::Timestamp;
use refmcp_transport::observer::{
    ConnectionId, Direction, EventContext, Head, InvalidInput, MessageEvent, Observer, Refused,
    SseControlEvent, StartLine,
};

use super::event::{Event, EventKind, Header};

/// What is masked before an event leaves a [`Recorder`]. By default nothing is.
pub struct Masks {
    /// The value of a header field, by its name in lower case.
    pub header: fn(&str, &str) -> String,
    /// The path and the query of a request.
    pub target: fn(&str) -> String,
    /// Input that is no message, such as the body of a refusal.
    pub text: fn(&str) -> String,
}

impl Default for Masks {
    fn default() -> Self {
        Self { header: |_, value| value.to_owned(), target: str::to_owned, text: str::to_owned }
    }
}

impl fmt::Debug for Masks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Masks")
    }
}

impl Masks {
    /// What happened, without the secrets in it.
    pub fn masked(&self, mut kind: EventKind) -> EventKind {
        match &mut kind {
            EventKind::Request { target, headers, .. } => {
                *target = (self.target)(target);
                self.mask_headers(headers);
            }
            EventKind::Response { headers, .. } => self.mask_headers(headers),
            EventKind::Invalid { bytes, .. } => {
                if let Ok(text) = std::str::from_utf8(bytes) {
                    *bytes = (self.text)(text).into_bytes();
                }
            }
            EventKind::Sse { name, data, .. } => {
                *data = match name.as_deref() {
                    Some("endpoint") => (self.text)(&(self.target)(data)),
                    _ => (self.text)(data),
                };
            }
            _ => {}
        }
        kind
    }

    fn mask_headers(&self, headers: &mut [Header]) {
        for (name, value) in headers {
            *value = (self.header)(name, value);
        }
    }
}

/// Where a [`Recorder`] passes events on to. A function is one that takes all of them.
pub trait EventSink: Send + Sync + 'static {
    /// Takes an event. It is called on the path of messages and returns soon.
    fn event(&self, event: Event);

    /// As [`Observer::wants_connection`].
    fn wants_connection(&self, _now: Timestamp) -> bool {
        true
    }

    /// As [`Observer::wants_more`].
    fn wants_more(&self, _connection: ConnectionId) -> bool {
        true
    }

    /// Whether it has told a person that the peer of this connection broke a rule.
    fn has_told(&self, _connection: ConnectionId, _rule: &'static Rule) -> bool {
        false
    }
}

impl<F: Fn(Event) + Send + Sync + 'static> EventSink for F {
    fn event(&self, event: Event) {
        self(event);
    }
}

/// Turns what an observer sees into events, masks their secrets, and passes them on.
///
/// ```
/// use std::sync::Mutex;
/// use refmcp_audit::recording::{Masks, Recorder};
///
/// let lines = Mutex::new(String::new());
/// let recorder = Recorder::new(Masks::default(), move |event| lines.lock().unwrap().push_str(&event.to_line()));
/// ```
pub struct Recorder<S> {
    masks: Masks,
    sink: S,
}

impl<F: Fn(Event) + Send + Sync + 'static> Recorder<F> {
    /// Passes each event to a function, which is called on the path of messages and returns soon.
    pub fn new(masks: Masks, write: F) -> Self {
        Self::with_sink(masks, write)
    }
}

impl<S: EventSink> Recorder<S> {
    /// Passes each event to a sink, which may decline connections and leave them.
    pub fn with_sink(masks: Masks, sink: S) -> Self {
        Self { masks, sink }
    }

    fn record(&self, context: &EventContext<'_>, kind: EventKind) {
        self.sink.event(Event {
            at: context.time.as_millis(),
            connection: context.connection.0,
            revision: context.revision,
            stream: context.stream.map(|stream| stream.0),
            kind: self.masks.masked(kind),
        });
    }
}

/// Fields of one name are one field, as HTTP reads them.
fn headers(fields: &[(&str, &[u8])]) -> Vec<Header> {
    let mut headers: Vec<Header> = Vec::new();
    for (name, value) in fields {
        let value = String::from_utf8_lossy(value).into_owned();
        match headers.iter_mut().find(|(known, _)| known == name) {
            Some((_, values)) => *values = format!("{values}, {value}"),
            None => headers.push(((*name).to_owned(), value)),
        }
    }
    headers
}

impl<S> fmt::Debug for Recorder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recorder")
    }
}

impl<S: EventSink> Observer for Recorder<S> {
    fn wants_connection(&self, now: Timestamp) -> bool {
        self.sink.wants_connection(now)
    }

    fn wants_more(&self, connection: ConnectionId) -> bool {
        self.sink.wants_more(connection)
    }

    fn opened(&self, context: &EventContext<'_>) {
        let (transport, peer) = (context.transport.to_owned(), context.peer.to_owned());
        self.record(context, EventKind::Opened { side: context.side, transport, peer });
    }

    fn message(&self, context: &EventContext<'_>, message: &MessageEvent<'_>) {
        // Line breaks stand between the members of a JSON text, never within one.
        let text = String::from_utf8_lossy(message.bytes).replace(['\n', '\r'], " ");
        let (direction, event_id) = (message.direction, message.event_id.map(str::to_owned));
        self.record(context, EventKind::Message { direction, text, event_id });
    }

    fn invalid_input(&self, context: &EventContext<'_>, input: &InvalidInput<'_>) {
        let (direction, bytes, why) = (input.direction, input.bytes.to_owned(), input.why.to_owned());
        self.record(context, EventKind::Invalid { direction, bytes, why });
    }

    fn head(&self, context: &EventContext<'_>, head: &Head<'_>) {
        let (direction, headers) = (head.direction, headers(head.fields));
        let kind = match head.start {
            StartLine::Request { method, target } => {
                let (method, target) = (method.to_owned(), target.to_owned());
                EventKind::Request { direction, method, target, headers }
            }
            StartLine::Response { status } => EventKind::Response { direction, status, headers },
        };
        self.record(context, kind);
    }

    fn sse_event(&self, context: &EventContext<'_>, event: &SseControlEvent<'_>) {
        let SseControlEvent { direction, name, id, retry, data, .. } = *event;
        let (name, event_id, data) = (name.map(str::to_owned), id.map(str::to_owned), data.to_owned());
        self.record(context, EventKind::Sse { direction, name, event_id, retry, data });
    }

    fn stream_ended(&self, context: &EventContext<'_>, direction: Direction) {
        self.record(context, EventKind::Ended { direction });
    }

    fn refused(&self, context: &EventContext<'_>, refusal: &Refused<'_>) {
        let (status, reason) = (refusal.status, refusal.reason.to_owned());
        self.record(context, EventKind::Refused { status, reason, why: refusal.why.to_owned() });
    }

    fn stream_failed(&self, context: &EventContext<'_>, why: &str) {
        self.record(context, EventKind::Failed { why: why.to_owned() });
    }

    fn finding(&self, context: &EventContext<'_>, finding: &Finding, _: Option<&[u8]>) -> bool {
        let (what, expected) = (finding.what.to_string(), finding.expected.to_string());
        self.record(context, EventKind::Finding { rule: finding.rule.id.to_owned(), what, expected });
        self.sink.has_told(context.connection, finding.rule)
    }

    fn stderr(&self, context: &EventContext<'_>, bytes: &[u8]) {
        self.record(context, EventKind::Stderr { bytes: bytes.to_owned() });
    }

    fn closed(&self, context: &EventContext<'_>, why: &str) {
        self.record(context, EventKind::Closed { why: why.to_owned() });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use refmcp_transport::clock::Clock;
    use refmcp_transport::observer::{Observed, Side};

    use super::*;

    #[test]
    fn events_and_the_end_of_a_stream_are_recorded_and_masked() {
        let lines = Arc::new(Mutex::new(String::new()));
        let written = lines.clone();
        let masks = Masks { target: |target| target.replace("hush", "***"), ..Masks::default() };
        let recorder = Recorder::new(masks, move |event| written.lock().push_str(&event.to_line()));
        let observed = Observed::open(Arc::new(recorder), Side::Server, "http+sse", "", Clock::new());
        let stream = observed.stream(refmcp_transport::observer::StreamId::GET);
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let events = format!("event: endpoint\ndata: /m?id=hush\n\nretry: 5\n\nid: 7\ndata: {ping}\n\n");
        stream.sse_events(Direction::Sent, events.as_bytes());
        stream.stream_ended(Direction::Received);
        let lines = lines.lock().clone();
        for part in [
            r#""event":"sse","connection""#,
            r#""direction":"sent","name":"endpoint","text":"/m?id=***"}"#,
            r#""direction":"sent","retry":5}"#,
            r#""event_id":"7","direction""#,
            r#""event":"ended""#,
        ] {
            assert!(lines.contains(part), "{part} in {lines}");
        }
        assert!(!lines.contains("hush"));
    }
}
