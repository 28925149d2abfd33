//! The engine of a server.
//!
//! | file | what it decides |
//! |---|---|
//! | `routing` | where a message goes, by kind, method and lifecycle |
//! | `responses` | how results and errors are written |
//! | `handshake` | how a session opens |
//! | `facts` | what is agreed on and set in a session, as data that another engine goes on from |
//! | `request_meta` | which client sends a stateless request |
//! | `calls` | requests in flight: start, end, cancellation |
//! | `kept_bytes` | how much a client can make the engine keep |
//! | `batches` | responses to requests that came as one array |
//! | `detached` | calls that outlive their exchange, as data |
//! | `input_rounds` | input requests to the client, and running a handler again |
//! | `client_tasks` | requests to the client that it runs as tasks |
//! | `session_requests` | requests to the client that belong to no call |
//! | `request_state` | what a client carries between two rounds |
//! | `subscriptions` | notifications of changes |
//! | `call_notifications` | progress and log messages |
//! | `keepalive` | pings |

mod batches;
mod call_notifications;
mod calls;
mod client_tasks;
mod detached;
mod facts;
mod handshake;
mod input_rounds;
mod keepalive;
mod kept_bytes;
mod request_meta;
mod request_state;
mod responses;
mod routing;
mod session_requests;
mod subscriptions;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::EngineConfig;
use super::io::{CallId, ExchangeId, Output, RequestContext, SharedOutput};
use super::report::ReportFindings;
use crate::finding::{Finding, Findings};
use crate::jsonrpc::{DecodeError, Incoming, Message, RequestId, RpcError, decode};
use crate::model::LogLevel;
use crate::peer::Peer;
use crate::revision::{Resumption, Revision, Rules};
use crate::rule::Rule;
use crate::time::Timestamp;
use batches::{BatchId, Batches};
use calls::Calls;
pub use detached::{DetachedCall, DetachedOutcome, ParkedCall};
pub use facts::{FactsChange, ResumeError, SessionFacts};
use handshake::{EarlyRequest, Phase};
use input_rounds::ServerRequests;
use keepalive::Keepalive;
pub(crate) use request_meta::requested_revision;
pub use request_meta::{PeerCache, missing_request_meta};
use routing::read_params;
use subscriptions::Listener;

/// One connection or session with a client.
///
/// In: [`receive`](Self::receive) bytes or [`message`](Self::message), [`finish`](Self::finish) a call,
/// [`call_notifications`](Self::progress), [`log`](Self::log), [`changed`](Self::changed),
/// [`request_client`](Self::request_client),
/// [`session_changed`](Self::session_changed), [`tick`](Self::tick),
/// [`close_exchange`](Self::close_exchange), [`wind_down`](Self::wind_down).
/// Where other processes serve the same session: [`resume`](Self::resume), [`adopt`](Self::adopt) facts,
/// [`deliver`](Self::deliver) a response, [`cancel_request`](Self::cancel_request), [`run_claimed`](Self::run_claimed),
/// [`abandon`](Self::abandon) or [`resume_call`](Self::resume_call) a call that waited for input.
/// Out: [`poll`](Self::poll) until it is empty, and call [`tick`](Self::tick) at [`deadline`](Self::deadline).
#[derive(Debug)]
pub struct ServerEngine {
    config: Arc<EngineConfig>,
    /// The authenticated principal, if any; sealed states are bound to it.
    principal: Option<Arc<str>>,
    /// Clients that were described lately.
    peers: Option<Arc<PeerCache>>,
    phase: Phase,
    calls: Calls,
    server_requests: ServerRequests,
    batches: Batches,
    /// Requests that came before `initialized` and wait for it.
    early_requests: Vec<EarlyRequest>,
    log_level: LogLevel,
    /// The URIs of `resources/subscribe`.
    subscriptions: BTreeSet<String>,
    listeners: Vec<Listener>,
    keepalive: Keepalive,
    /// Whether the message that is received names its revision itself.
    stateless_message: bool,
    /// What the transport knows of the message that is received.
    context: Option<RequestContext>,
    findings: Findings,
    outputs: VecDeque<Output>,
    /// The client sends nothing more.
    input_closed: bool,
}

/// Where a response goes.
#[derive(Debug, Clone, Copy)]
struct ReplyTo<'a> {
    exchange: ExchangeId,
    id: &'a RequestId,
    batch: Option<BatchId>,
}

impl ServerEngine {
    /// An engine for a client that has sent nothing yet.
    pub fn new(config: Arc<EngineConfig>, principal: Option<Arc<str>>) -> Self {
        Self {
            principal,
            peers: None,
            phase: Phase::Fresh,
            calls: Calls::default(),
            server_requests: ServerRequests::default(),
            batches: Batches::default(),
            early_requests: Vec::new(),
            log_level: config.log_level,
            subscriptions: BTreeSet::new(),
            listeners: Vec::new(),
            keepalive: Keepalive::default(),
            stateless_message: false,
            context: None,
            findings: Findings::default(),
            outputs: VecDeque::new(),
            input_closed: false,
            config,
        }
    }

    /// Uses the descriptions of clients that other engines of the endpoint have read.
    #[must_use]
    pub fn with_peers(self, peers: Arc<PeerCache>) -> Self {
        Self { peers: Some(peers), ..self }
    }

    fn peers(&mut self) -> &PeerCache {
        self.peers.get_or_insert_default()
    }

    /// The next thing to do; call it until it returns `None`.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Frees memory that a busier time has left behind; for connections that are idle for long.
    pub fn shrink(&mut self) {
        self.outputs.shrink_to_fit();
        self.calls.shrink();
        self.early_requests.shrink_to_fit();
    }

    /// When [`tick`](Self::tick) is due, if nothing happens before.
    pub fn deadline(&self) -> Option<Timestamp> {
        let early = self.early_requests.iter().map(|early| early.until).min();
        let keepalive = self.keepalive.deadline(&self.config.timeouts);
        [self.server_requests.deadline(), keepalive, early].into_iter().flatten().min()
    }

    /// Does what is due at this time.
    pub fn tick(&mut self, now: Timestamp) {
        self.expire_server_requests(now);
        self.expire_early_requests(now);
        self.check_keepalive(now);
    }

    /// Takes in the bytes of one message, or of one batch.
    pub fn receive(&mut self, now: Timestamp, exchange: ExchangeId, bytes: &[u8]) {
        let limits = self.config.limits;
        // By reference: a message is large, and moving it out is a copy.
        match &decode(bytes, &limits) {
            Ok(incoming) => self.incoming(now, exchange, incoming),
            Err(error) => self.malformed(exchange, error),
        }
    }

    /// Takes in one message, or one batch.
    #[inline]
    pub fn incoming(&mut self, now: Timestamp, exchange: ExchangeId, incoming: &Incoming<'_>) {
        match incoming {
            Incoming::One(message) => self.message(now, exchange, message),
            Incoming::Batch(messages) => self.batch(now, exchange, messages),
        }
    }

    /// The same with what the transport knows of the message; it belongs to the calls that begin here.
    pub fn incoming_with(
        &mut self,
        now: Timestamp,
        exchange: ExchangeId,
        incoming: &Incoming<'_>,
        context: RequestContext,
    ) {
        self.context = Some(context);
        self.incoming(now, exchange, incoming);
        self.context = None;
    }

    /// Takes in a message that was dropped unread because it was too long.
    pub fn receive_too_long(&mut self, exchange: ExchangeId) {
        self.malformed(exchange, &DecodeError::too_long(self.config.limits.max_message_size));
    }

    /// Takes in one message.
    #[inline]
    pub fn message(&mut self, now: Timestamp, exchange: ExchangeId, message: &Message<'_>) {
        self.keepalive.message_received(now, &self.config.timeouts);
        let outer = self.begin_message(message);
        match message {
            Message::Request(request) => {
                let to = ReplyTo { exchange, id: &request.id, batch: None };
                self.request(now, &to, request);
            }
            Message::Notification(notification) => self.notification(now, notification),
            Message::Response(response) => self.response(now, response),
        }
        self.stateless_message = outer;
    }

    /// The client, once it has sent `initialize`.
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

    /// The URIs that the session is subscribed to (`resources/subscribe`).
    pub fn subscriptions(&self) -> impl Iterator<Item = &str> {
        self.subscriptions.iter().map(String::as_str)
    }

    /// The findings about the peer so far.
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// Whether a request with this id is in flight.
    pub fn has_request(&self, id: &RequestId) -> bool {
        self.calls.has(id)
    }

    /// The client's id of a call in flight.
    pub fn request_id(&self, call: CallId) -> Option<&RequestId> {
        self.calls.get(call).map(|call| &call.id)
    }

    /// How many requests are in flight.
    pub fn in_flight(&self) -> usize {
        self.calls.len()
    }

    /// Whether a call has had no response yet.
    pub fn is_in_flight(&self, call: CallId) -> bool {
        self.calls.get(call).is_some()
    }

    /// Which run of its handler a call in flight is in, or waits after.
    pub fn round_of(&self, call: CallId) -> Option<u32> {
        self.calls.get(call).map(|call| call.round)
    }

    /// The exchange of a call, if its client comes back for the rest when the connection is closed before the response.
    pub fn polled_exchange(&self, call: CallId) -> Option<ExchangeId> {
        let call = self.calls.get(call)?;
        (call.peer.rules().resumption == Resumption::Polling).then_some(call.exchange)
    }

    /// The rules of the session; before there is one, those of the newest revision.
    fn rules(&self) -> &'static Rules {
        self.phase.peer().map_or(Revision::LATEST.rules(), |peer| peer.rules())
    }

    /// Reports the fault of the client that an error answers.
    fn refuse(&mut self, rule: &'static Rule, error: RpcError, expected: &'static str) -> RpcError {
        self.report(rule, error.message.clone(), expected);
        error
    }

    /// Records a finding of the transport, such as a missing header, if the revision of the session has its rule.
    pub fn record_finding(&mut self, finding: Finding) {
        self.report_if_ruled(finding);
    }

    /// Tells the other processes of the session, where there are any.
    fn share(&mut self, output: SharedOutput) {
        if self.config.shares_sessions() {
            self.outputs.push_back(Output::Shared(output));
        }
    }

    /// The same of facts that have changed.
    fn share_change(&mut self, change: impl FnOnce() -> FactsChange) {
        if self.config.shares_sessions() {
            self.share(SharedOutput::Facts(change()));
        }
    }

    fn peer_of(&self, call: CallId) -> Option<&Arc<Peer>> {
        self.calls.get(call).map(|entry| &entry.peer)
    }
}

impl ReportFindings for ServerEngine {
    type Output = Output;

    /// That of the message that is received where it names one, else that of the session.
    fn peer_revision(&self) -> Option<Revision> {
        if self.stateless_message {
            return Some(Revision::LATEST);
        }
        self.phase.peer().map(|peer| peer.revision)
    }

    fn reported(&mut self) -> (&mut Findings, &mut VecDeque<Output>) {
        (&mut self.findings, &mut self.outputs)
    }
}
