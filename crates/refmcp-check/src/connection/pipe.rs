//! A connection with one stream each way: a child process, a WebSocket, HTTP+SSE, memory.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use refmcp_audit::recording::{EventKind, Masks, Recorder, Side};
use refmcp_client::transport::{
    ClientMessage, ClientMessageKind, Connector, ExchangeId, MessageSink, Transport, TransportError,
};
use refmcp_transport::Observed;
use refmcp_transport::clock::Clock;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use super::answer::{is_request, reply_to};
use super::{Answer, Audit, MAX_RECEIVED, Wants};

/// Messages that wait to be read.
const MAX_WAITING: usize = 4096;

pub(crate) struct Pipe {
    transport: Arc<dyn Transport>,
    received: mpsc::Receiver<Received>,
    next: AtomicU64,
    audit: Audit,
    /// Why nothing more comes.
    ended: Option<String>,
    /// Whether requests of the server are answered.
    replies: bool,
}

enum Received {
    Message(Vec<u8>),
    /// Input that is no message.
    Junk(String),
    /// A message could not be sent.
    Failed(String),
    Closed(String),
}

impl Pipe {
    pub(super) async fn open(
        connector: &dyn Connector,
        replies: bool,
        audit: Audit,
        within: Duration,
    ) -> Result<Self, String> {
        let (sender, received) = mpsc::channel(MAX_WAITING);
        let recorder = Recorder::new(Masks::default(), {
            let audit = audit.clone();
            move |event| audit.observe(event)
        });
        let observed = Observed::open(
            Arc::new(recorder),
            Side::Client,
            connector.transport(),
            connector.name(),
            Clock::new(),
        );
        let sink =
            Arc::new(Sink { sender, left: AtomicUsize::new(MAX_RECEIVED), observed, audit: audit.clone() });
        let transport = match timeout(within, connector.connect(sink)).await {
            Ok(connected) => connected.map_err(|error| error.to_string())?,
            Err(_) => return Err(format!("no connection within {within:?}")),
        };
        Ok(Self { transport, received, next: AtomicU64::new(1), audit, ended: None, replies })
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    pub(super) fn audit(&self) -> &Audit {
        &self.audit
    }

    /// Sends a line or a frame.
    pub(crate) fn write(&self, text: &str) {
        let exchange = ExchangeId(self.next.fetch_add(1, Ordering::Relaxed));
        // Over HTTP+SSE a request would wait for its response; these are all sent as they are.
        let kind = ClientMessageKind::Response;
        let message = ClientMessage { exchange, kind, json: text.as_bytes().to_vec(), rules: None };
        Arc::clone(&self.transport).send(message);
    }

    /// Sends messages, one after the other, and reads what comes until what is wanted has come.
    pub(crate) async fn exchange(&mut self, texts: &[&str], wants: &Wants, within: Duration) -> Answer {
        for text in texts {
            self.write(text);
        }
        let mut answer = self.read(wants, within).await;
        answer.exchange.set_request(&texts.join("\n"));
        answer
    }

    /// Reads what comes until what is wanted has come.
    async fn read(&mut self, wants: &Wants, within: Duration) -> Answer {
        let deadline = Instant::now() + within;
        let mut answer = Answer { ended: self.ended.clone(), ..Answer::default() };
        while answer.ended.is_none() && !answer.has(wants) {
            match timeout_at(deadline, self.received.recv()).await {
                Ok(Some(received)) => self.take(received, &mut answer),
                Ok(None) => answer.ended = Some("the connection ended".to_owned()),
                Err(_) => {
                    answer.late = true;
                    break;
                }
            }
        }
        self.ended.clone_from(&answer.ended);
        answer
    }

    fn take(&self, received: Received, answer: &mut Answer) {
        match received {
            Received::Message(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                answer.exchange.add_answer(&text);
                match serde_json::from_slice::<Value>(&bytes) {
                    Ok(value) => {
                        if self.replies && is_request(&value) {
                            self.write(&reply_to(&value).to_string());
                        }
                        answer.take(value);
                    }
                    Err(_) => answer.junk.push(text.into_owned()),
                }
            }
            Received::Junk(text) => {
                answer.exchange.add_answer(&text);
                answer.junk.push(text);
            }
            Received::Failed(why) => answer.exchange.add_answer(&format!("({why})")),
            Received::Closed(why) => {
                answer.exchange.add_answer(&format!("({why})"));
                answer.ended = Some(why);
            }
        }
    }

    pub(crate) async fn close(self) {
        self.end().await;
    }

    /// Ends the connection in order.
    pub(super) async fn end(&self) {
        Arc::clone(&self.transport).close().await;
    }
}

impl fmt::Debug for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipe").field("ended", &self.ended).finish_non_exhaustive()
    }
}

struct Sink {
    sender: mpsc::Sender<Received>,
    /// Bytes that may still be received.
    left: AtomicUsize,
    observed: Observed,
    audit: Audit,
}

impl Sink {
    /// Passes something on. What does not fit any more is dropped: the reader waits in vain, within its time.
    fn pass(&self, received: Received, size: usize) {
        let room =
            self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(size));
        if room.is_ok() {
            // The reader may be gone.
            let _ = self.sender.try_send(received);
        }
    }
}

impl MessageSink for Sink {
    fn message(&self, _: Option<ExchangeId>, json: &[u8]) {
        self.pass(Received::Message(json.to_vec()), json.len());
    }

    fn too_long(&self, _: Option<ExchangeId>, limit: usize) {
        self.pass(Received::Junk(format!("(a message of more than {limit} bytes)")), 0);
    }

    fn ended(&self, _: ExchangeId, why: TransportError) {
        self.audit.tell(EventKind::Failed { why: why.to_string() });
        self.pass(Received::Failed(why.to_string()), 0);
    }

    fn closed(&self, why: TransportError) {
        self.audit.tell(EventKind::Closed { why: why.to_string() });
        self.pass(Received::Closed(why.to_string()), 0);
    }

    fn ignored_input(&self, what: &str) {
        self.pass(Received::Junk(what.to_owned()), what.len());
    }

    fn observed(&self) -> Observed {
        self.observed.clone()
    }
}
