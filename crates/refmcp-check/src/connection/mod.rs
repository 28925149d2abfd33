//! Connections to a server: exact bytes go out, and everything that comes back is kept and shown to an auditor. There is no
//! engine, so that what a client must not send can be sent too.

mod answer;
mod http;
mod open_sessions;
mod pipe;
mod raw;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use refmcp_audit::Auditor;
use refmcp_audit::auditor::Judgement;
use refmcp_audit::recording::{Direction, Event, EventKind};
use refmcp_proto::revision::{InputMode, Revision};
use serde_json::Value;

pub(crate) use answer::{Answer, Wants};
pub(crate) use http::Http;
pub use http::HttpRequest;
pub(crate) use open_sessions::OpenSessions;
pub(crate) use pipe::Pipe;
pub use raw::RawConnection;

use crate::target::{Target, TargetTransport};

/// Bytes that are kept of what a server sends over one connection or in one response.
pub(crate) const MAX_RECEIVED: usize = 32 << 20;

/// A connection to a server.
#[derive(Debug)]
pub(crate) enum Connection {
    Pipe(Pipe),
    Http(Http),
}

impl Connection {
    /// Opens a connection, and sends nothing. Requests of the server are answered where its revision allows them.
    pub(crate) async fn open(target: &Target, revision: Revision, within: Duration) -> Result<Self, String> {
        let replies = revision.rules().input_mode == InputMode::ServerRequest;
        Ok(match &target.transport {
            TargetTransport::Pipe(connector) | TargetTransport::Sse(connector, _) => {
                Self::Pipe(Pipe::open(&**connector, replies, Audit::new(target.events()), within).await?)
            }
            TargetTransport::Child(child) => {
                Self::Pipe(Pipe::open(child, replies, Audit::new(target.events()), within).await?)
            }
            TargetTransport::Http(http) => {
                Self::Http(Http::new(http.clone(), replies, Audit::new(target.events())))
            }
        })
    }

    fn audit(&self) -> &Audit {
        match self {
            Self::Pipe(pipe) => pipe.audit(),
            Self::Http(http) => http.audit(),
        }
    }

    /// Whether nothing more comes over it. Over HTTP each request may have a connection of its own.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self, Self::Pipe(pipe) if pipe.has_ended())
    }

    /// This revision was negotiated.
    pub(crate) fn set_revision(&self, revision: Revision) {
        *self.audit().revision.lock() = Some(revision);
    }

    /// Closes the connection. What an auditor says of all that passed is returned.
    pub(crate) async fn close(self) -> Audited {
        let audit = self.audit().clone();
        if let Self::Pipe(pipe) = self {
            pipe.close().await;
        }
        audit.finish()
    }
}

/// Gets what passes over connections, with the numbers of the connections. It may have secrets in it.
pub type EventListener = Arc<dyn Fn(&Event) + Send + Sync>;

/// The auditor of one connection.
#[derive(Clone)]
pub(crate) struct Audit {
    auditor: Option<Arc<Mutex<Auditor>>>,
    revision: Arc<Mutex<Option<Revision>>>,
    /// What was sent, to show it beside what came back.
    sent: Arc<Mutex<Sent>>,
    /// The number of the connection.
    number: u64,
    events: Option<EventListener>,
    /// Whether the listener knows that the connection has ended.
    is_closed: Arc<AtomicBool>,
}

/// Bytes of the requests of a connection that are kept, to show them beside their responses.
const MAX_SENT: usize = 4 << 20;

/// The last requests of a connection, and which messages answer them.
#[derive(Debug, Default)]
struct Sent {
    /// The events that the auditor has seen.
    events: u64,
    /// Requests with their ids.
    requests: VecDeque<(Value, String)>,
    size: usize,
    /// The ids of responses, by the numbers of their events.
    answers: BTreeMap<u64, Value>,
}

impl Sent {
    /// Takes note of an event that the auditor sees next.
    fn note(&mut self, event: &EventKind) {
        self.events += 1;
        let EventKind::Message { direction, text, .. } = event else { return };
        let Ok(Value::Object(mut message)) = serde_json::from_str(text) else { return };
        let Some(id) = message.remove("id") else { return };
        match (direction, message.contains_key("method")) {
            (Direction::Sent, true) => self.keep(id, text),
            (Direction::Received, false) if self.answers.len() < MAX_ANSWERS => {
                self.answers.insert(self.events, id);
            }
            _ => {}
        }
    }

    fn keep(&mut self, id: Value, text: &str) {
        self.size += text.len();
        self.requests.push_back((id, text.to_owned()));
        while self.size > MAX_SENT
            && let Some((_, oldest)) = self.requests.pop_front()
        {
            self.size -= oldest.len();
        }
    }
}

/// Responses whose requests can be shown.
const MAX_ANSWERS: usize = 1 << 16;

/// What an auditor says of a connection.
#[derive(Debug)]
pub(crate) struct Audited {
    pub(crate) judgements: Vec<Judgement>,
    sent: Sent,
}

impl Audited {
    /// The request, as it was sent, that the message of this event answers.
    pub(crate) fn request_of(&self, event: u64) -> Option<&str> {
        let id = self.sent.answers.get(&event)?;
        self.sent.requests.iter().rev().find(|(known, _)| known == id).map(|(_, text)| &**text)
    }
}

impl Audit {
    fn new(events: Option<EventListener>) -> Self {
        Self { auditor: Some(Arc::default()), ..Self::unjudged(events) }
    }

    /// Without an auditor: everything goes to the listener alone.
    fn unjudged(events: Option<EventListener>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (revision, sent, is_closed) = (Arc::default(), Arc::default(), Arc::default());
        Self { auditor: None, revision, sent, number, events, is_closed }
    }

    /// Shows an event to the auditor and the listener. There is one connection for each auditor.
    fn observe(&self, mut event: Event) {
        event.connection = self.number;
        event.revision = *self.revision.lock();
        let is_end = matches!(event.kind, EventKind::Closed { .. });
        if let Some(events) = &self.events
            && !(is_end && self.is_closed.swap(true, Ordering::Relaxed))
        {
            events(&event);
        }
        let Some(auditor) = &self.auditor else { return };
        // Events have the same numbers for both.
        let mut auditor = auditor.lock();
        self.sent.lock().note(&event.kind);
        auditor.observe(&event);
    }

    /// Tells the listener alone.
    fn tell(&self, kind: EventKind) {
        Self { auditor: None, ..self.clone() }.happened(None, kind);
    }

    fn happened(&self, stream: Option<u64>, kind: EventKind) {
        let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let at = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
        self.observe(Event { at, connection: 1, revision: None, stream, kind });
    }

    fn finish(&self) -> Audited {
        self.tell(EventKind::Closed { why: "the check has ended it".to_owned() });
        let auditor = self.auditor.as_ref().map(|auditor| std::mem::take(&mut *auditor.lock()));
        let judgements = auditor.unwrap_or_default().finish();
        Audited { judgements, sent: std::mem::take(&mut *self.sent.lock()) }
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit").field("number", &self.number).finish_non_exhaustive()
    }
}
