//! Connections to a server: exact bytes go out, and everything that comes back is kept and shown to an auditor. There is no
//! engine, so that what a client must not send can be sent too.

mod answer;
mod http;
mod pipe;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use refmcp_audit::Auditor;
use refmcp_audit::auditor::Judgement;
use refmcp_audit::recording::{Direction, Event, EventKind};
use refmcp_proto::revision::{InputMode, Revision};
use serde_json::Value;

pub(crate) use answer::{Answer, Wants};
pub(crate) use http::{Http, HttpRequest};
pub(crate) use pipe::Pipe;

use crate::target::{Kind, Target};

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
        Ok(match &target.kind {
            Kind::Pipe(connector) | Kind::Sse(connector, _) => {
                Self::Pipe(Pipe::open(&**connector, replies, within).await?)
            }
            Kind::Child(child) => Self::Pipe(Pipe::open(child, replies, within).await?),
            Kind::Http(http) => Self::Http(Http::new(http.clone(), replies)),
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

/// The auditor of one connection.
#[derive(Debug, Clone)]
pub(crate) struct Audit {
    auditor: Arc<Mutex<Auditor>>,
    revision: Arc<Mutex<Option<Revision>>>,
    /// The last requests that were sent.
    sent: Arc<Mutex<VecDeque<Value>>>,
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
    fn new() -> Self {
        Self { auditor: Arc::default(), revision: Arc::default(), sent: Arc::default() }
    }

    /// Shows an event to the auditor. There is one connection for each auditor.
    fn observe(&self, mut event: Event) {
        event.connection = 1;
        event.revision = *self.revision.lock();
        if let EventKind::Message { direction: Direction::Sent, text, .. } = &event.kind {
            self.keep(text);
        }
        self.auditor.lock().observe(&event);
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
        let judgements = std::mem::take(&mut *self.auditor.lock()).finish();
        Audited { judgements, sent: std::mem::take(&mut *self.sent.lock()) }
    }
}
