//! Connections to a server: exact bytes go out, and everything that comes back is kept and shown to an auditor. There is no
//! engine, so that what a client must not send can be sent too.

mod answer;
mod http;
mod open_sessions;
mod pipe;
mod raw;

use std::collections::VecDeque;
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
    /// The last requests that were sent.
    sent: Arc<Mutex<VecDeque<Value>>>,
    /// The number of the connection.
    number: u64,
    events: Option<EventListener>,
    /// Whether the listener knows that the connection has ended.
    is_closed: Arc<AtomicBool>,
}

/// Requests that are kept, to show them beside their responses, and the bytes of the longest.
const MAX_SENT: (usize, usize) = (256, 4 << 10);

/// What an auditor says of a connection.
#[derive(Debug)]
pub(crate) struct Audited {
    pub(crate) judgements: Vec<Judgement>,
    sent: VecDeque<Value>,
}

impl Audited {
    /// The request that a message answers.
    pub(crate) fn request_of(&self, text: &str) -> Option<String> {
        let message: Value = serde_json::from_str(text).ok()?;
        let id = message.get("id").filter(|_| message.get("method").is_none())?;
        self.sent.iter().rev().find(|request| request.get("id") == Some(id)).map(Value::to_string)
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
        if let EventKind::Message { direction: Direction::Sent, text, .. } = &event.kind {
            self.keep(text);
        }
        auditor.lock().observe(&event);
    }

    /// Tells the listener alone.
    fn tell(&self, kind: EventKind) {
        Self { auditor: None, ..self.clone() }.happened(None, kind);
    }

    fn keep(&self, text: &str) {
        let (count, size) = MAX_SENT;
        let Some(request) =
            Some(text).filter(|it| it.len() <= size).and_then(|it| serde_json::from_str(it).ok())
        else {
            return;
        };
        let mut sent = self.sent.lock();
        sent.push_back(request);
        if sent.len() > count {
            sent.pop_front();
        }
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
