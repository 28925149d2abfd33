//! An observer that records what passes, as lines of text.

use parking_lot::Mutex;
use refmcp_proto::finding::Finding;
use refmcp_server::transport::observer::{
    Direction, EventContext, Head, InvalidInput, MessageEvent, Observer, Refused, Side, SseControlEvent,
    StartLine,
};
use tokio::sync::Notify;

/// Records every event of every connection: `sent {"jsonrpc":…}`, `closed: the connection is closed`. Over HTTP the line
/// begins with the number of the stream, as in `#1 received status 200`.
#[derive(Debug, Default)]
pub struct RecordingObserver {
    events: Mutex<Vec<RecordedEvent>>,
    more: Notify,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedEvent {
    /// The number of the connection.
    pub connection: u64,
    /// Which side of it this process is.
    pub side: Side,
    /// What happened.
    pub line: String,
    /// The id of the SSE event around a message; empty where there is none.
    pub event_id: String,
    /// The fields of an HTTP head.
    pub fields: Vec<(String, String)>,
}

impl RecordingObserver {
    /// All events so far.
    pub fn events(&self) -> Vec<RecordedEvent> {
        self.events.lock().clone()
    }

    /// The lines of all events so far.
    pub fn lines(&self) -> Vec<String> {
        self.events.lock().iter().map(|event| event.line.clone()).collect()
    }

    /// The messages so far that went this way, in their order.
    pub fn messages(&self, direction: Direction) -> Vec<String> {
        let word = format!("{} {{", word(direction));
        let message = |line: &String| {
            let line =
                line.split_once(' ').filter(|_| line.starts_with('#')).map_or(&**line, |(_, line)| line);
            line.starts_with(&word).then(|| line[word.len() - 1..].to_owned())
        };
        self.lines().iter().filter_map(message).collect()
    }

    /// Waits until a line begins so, and returns the lines up to it.
    pub async fn until(&self, beginning: &str) -> Vec<String> {
        loop {
            let more = self.more.notified();
            let mut lines = self.lines();
            if let Some(found) = lines.iter().position(|line| line.starts_with(beginning)) {
                lines.truncate(found + 1);
                return lines;
            }
            more.await;
        }
    }

    fn record(&self, context: &EventContext<'_>, event: &str, fields: Vec<(String, String)>) {
        self.push(RecordedEvent { fields, ..recorded(context, event) });
    }

    fn push(&self, event: RecordedEvent) {
        self.events.lock().push(event);
        self.more.notify_waiters();
    }
}

fn recorded(context: &EventContext<'_>, event: &str) -> RecordedEvent {
    let line = match context.stream {
        Some(stream) => format!("#{} {event}", stream.0),
        None => event.to_owned(),
    };
    let (connection, side) = (context.connection.0, context.side);
    RecordedEvent { connection, side, line, event_id: String::new(), fields: Vec::new() }
}

fn word(direction: Direction) -> &'static str {
    if direction == Direction::Sent { "sent" } else { "received" }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Observer for RecordingObserver {
    fn opened(&self, context: &EventContext<'_>) {
        self.record(context, &format!("opened {} {}", context.transport, context.peer), Vec::new());
    }

    fn message(&self, context: &EventContext<'_>, message: &MessageEvent<'_>) {
        let line = format!("{} {}", word(message.direction), text(message.bytes));
        let event_id = message.event_id.unwrap_or_default().to_owned();
        self.push(RecordedEvent { event_id, ..recorded(context, &line) });
    }

    fn invalid_input(&self, context: &EventContext<'_>, input: &InvalidInput<'_>) {
        let (word, bytes) = (word(input.direction), text(input.bytes));
        self.record(context, &format!("{word} invalid {bytes:?}: {}", input.why), Vec::new());
    }

    fn head(&self, context: &EventContext<'_>, head: &Head<'_>) {
        let word = word(head.direction);
        let line = match head.start {
            StartLine::Request { method, target } => format!("{word} {method} {target}"),
            StartLine::Response { status } => format!("{word} status {status}"),
        };
        let fields = head.fields.iter().map(|(name, value)| ((*name).to_owned(), text(value)));
        self.record(context, &line, fields.collect());
    }

    fn sse_event(&self, context: &EventContext<'_>, event: &SseControlEvent<'_>) {
        let mut line = format!("{} event", word(event.direction));
        line.extend(event.name.map(|name| format!(" {name}")));
        line.extend(event.id.map(|id| format!(" id {id}")));
        line.extend(event.retry.map(|retry| format!(" retry {retry}")));
        line.extend(Some(event.data).filter(|data| !data.is_empty()).map(|data| format!(" {data:?}")));
        self.record(context, &line, Vec::new());
    }

    fn stream_ended(&self, context: &EventContext<'_>, direction: Direction) {
        self.record(context, &format!("{} end", word(direction)), Vec::new());
    }

    fn refused(&self, context: &EventContext<'_>, refusal: &Refused<'_>) {
        let Refused { status, reason, why } = refusal;
        self.record(context, &format!("refused {status} {reason}: {why}"), Vec::new());
    }

    fn stream_failed(&self, context: &EventContext<'_>, why: &str) {
        self.record(context, &format!("failed: {why}"), Vec::new());
    }

    fn finding(&self, context: &EventContext<'_>, finding: &Finding, message: Option<&[u8]>) -> bool {
        let message = message.map(text).unwrap_or_default();
        self.record(context, &format!("finding {} in {message}", finding.rule), Vec::new());
        false
    }

    fn stderr(&self, context: &EventContext<'_>, bytes: &[u8]) {
        self.record(context, &format!("stderr {:?}", text(bytes)), Vec::new());
    }

    fn closed(&self, context: &EventContext<'_>, why: &str) {
        self.record(context, &format!("closed: {why}"), Vec::new());
    }
}
