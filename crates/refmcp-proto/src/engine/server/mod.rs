//! The server's side of a conversation.
//!
//! | file | what it decides |
//! |---|---|
//! | `routing` | where a message leads |
//! | `answering` | what an answer looks like |
//! | `handshake` | how a session opens |
//! | `per_request` | what a request without a session says about its sender |
//! | `calls` | which requests are in flight, how they end, how they are cancelled |
//! | `batches` | answers to several requests that came as one message |
//! | `rounds` | questions to the client, and running a handler again with the answers |
//! | `state` | what a client carries between two rounds |
//! | `changes` | who hears of what has changed |
//! | `notes` | progress and log messages |
//! | `keepalive` | whether the peer is still there |
//! | `hash` | a quick hash for the tables above |

mod answering;
mod batches;
mod calls;
mod changes;
mod handshake;
mod keepalive;
mod notes;
mod per_request;
mod rounds;
mod routing;
mod state;

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::EngineConfig;
use super::io::{CallId, ExchangeId, Output, ReplayState};
use crate::finding::{Finding, Findings};
use crate::jsonrpc::{DecodeError, Incoming, Message, RequestId, decode};
use crate::model::LogLevel;
use crate::peer::Peer;
use crate::revision::{Revision, Rules};
use crate::time::Timestamp;
use batches::{BatchId, Batches};
use calls::Calls;
use changes::Listener;
use handshake::{Held, Phase};
use keepalive::Keepalive;
pub use per_request::{PeerCache, missing_request_meta, requested_revision};
use rounds::Questions;
use routing::read_params;

/// One conversation with one client, seen from the server.
///
/// In: [`receive`](Self::receive) bytes or [`message`](Self::message), [`finish`](Self::finish) a call,
/// [`progress`](Self::progress), [`log`](Self::log), [`changed`](Self::changed),
/// [`session_changed`](Self::session_changed), [`tick`](Self::tick),
/// [`close_exchange`](Self::close_exchange), [`wind_down`](Self::wind_down).
/// Out: [`poll`](Self::poll) until it is empty, and call [`tick`](Self::tick) at [`deadline`](Self::deadline).
#[derive(Debug)]
pub struct ServerEngine {
    config: Arc<EngineConfig>,
    /// Who was authenticated, if anybody; sealed states are good for nobody else.
    principal: Option<Arc<str>>,
    phase: Phase,
    calls: Calls,
    questions: Questions,
    batches: Batches,
    held: Vec<Held>,
    log_level: LogLevel,
    subscriptions: BTreeSet<String>,
    listeners: Vec<Listener>,
    keepalive: Keepalive,
    findings: Findings,
    outputs: VecDeque<Output>,
    /// The client will say nothing more.
    nobody_answers: bool,
    /// What calls have that have not asked anything.
    no_answers: Arc<ReplayState>,
}

/// Where an answer goes.
#[derive(Debug, Clone, PartialEq)]
struct ReplyTo {
    exchange: ExchangeId,
    id: RequestId,
    batch: Option<BatchId>,
}

impl ServerEngine {
    /// An engine for a peer that has not spoken yet.
    pub fn new(config: Arc<EngineConfig>, principal: Option<Arc<str>>) -> Self {
        Self {
            principal,
            phase: Phase::Fresh,
            calls: Calls::default(),
            questions: Questions::default(),
            batches: Batches::default(),
            held: Vec::new(),
            log_level: config.log_level,
            subscriptions: BTreeSet::new(),
            listeners: Vec::new(),
            keepalive: Keepalive::default(),
            findings: Findings::default(),
            outputs: VecDeque::new(),
            nobody_answers: false,
            no_answers: Arc::default(),
            config,
        }
    }

    /// What to do next; to be called until it gives nothing.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Gives back room that a busier time has left behind; for conversations that are silent for long.
    pub fn shrink(&mut self) {
        self.outputs.shrink_to_fit();
        self.calls.shrink();
        self.held.shrink_to_fit();
    }

    /// When [`tick`](Self::tick) wants to be called, if nothing happens before.
    pub fn deadline(&self) -> Option<Timestamp> {
        let held = self.held.iter().map(|held| held.until).min();
        let pulse = self.keepalive.deadline(&self.config.timeouts);
        [self.questions.deadline(), pulse, held].into_iter().flatten().min()
    }

    /// Lets time pass.
    pub fn tick(&mut self, now: Timestamp) {
        self.expire_questions(now);
        self.expire_held(now);
        self.check_pulse(now);
    }

    /// Takes in the bytes of one message, or of one batch.
    pub fn receive(&mut self, now: Timestamp, exchange: ExchangeId, bytes: &[u8]) {
        let limits = self.config.limits;
        match decode(bytes, &limits) {
            Ok(Incoming::One(message)) => self.message(now, exchange, message),
            Ok(Incoming::Batch(messages)) => self.batch(now, exchange, messages),
            Err(fault) => self.malformed(exchange, &fault),
        }
    }

    /// Takes in a message that was dropped unread because it was too long.
    pub fn receive_too_long(&mut self, exchange: ExchangeId) {
        self.malformed(exchange, &DecodeError::too_long(self.config.limits.message_bytes));
    }

    /// Takes in one message.
    pub fn message(&mut self, now: Timestamp, exchange: ExchangeId, message: Message<'_>) {
        self.keepalive.heard(now, &self.config.timeouts);
        self.note_mistakes(&message);
        match message {
            Message::Request(request) => {
                let to = ReplyTo { exchange, id: request.id.clone(), batch: None };
                self.request(now, &to, &request);
            }
            Message::Notification(notification) => self.notification(now, &notification),
            Message::Response(response) => self.response(response),
        }
    }

    /// The client, once it has introduced itself for the session.
    pub fn peer(&self) -> Option<&Arc<Peer>> {
        self.phase.peer()
    }

    /// Whether a session is open for use.
    pub fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready(_))
    }

    /// The session's log level.
    pub fn log_level(&self) -> LogLevel {
        self.log_level
    }

    /// The resources the session is subscribed to.
    pub fn subscriptions(&self) -> impl Iterator<Item = &str> {
        self.subscriptions.iter().map(String::as_str)
    }

    /// What the peer did wrong so far.
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// How many requests are in flight.
    pub fn in_flight(&self) -> usize {
        self.calls.len()
    }

    /// The rules of the session; before there is one, those of the newest revision.
    fn rules(&self) -> &'static Rules {
        self.phase.peer().map_or(Revision::LATEST.rules(), |peer| peer.rules())
    }

    fn note(&mut self, rule: &'static str, what: impl Into<Cow<'static, str>>) {
        self.record_finding(Finding { rule, what: what.into() });
    }

    /// Notes what the transport saw and no message shows, such as a header that is missing.
    pub fn record_finding(&mut self, finding: Finding) {
        if self.findings.record(&finding) {
            self.outputs.push_back(Output::Finding(finding));
        }
    }

    fn peer_of(&self, call: CallId) -> Option<&Arc<Peer>> {
        self.calls.get(call).map(|entry| &entry.peer)
    }
}
