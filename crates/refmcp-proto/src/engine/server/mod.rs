//! The server's side of a conversation.
//!
//! | file | what it decides |
//! |---|---|
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

mod batches;
mod calls;
mod changes;
mod handshake;
mod keepalive;
mod notes;
mod per_request;
mod rounds;
mod state;

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::io::{Answers, CallId, Channel, Kind, Output, Sending, To};
use super::{DuplicateIds, EngineConfig};
use crate::finding::{Finding, Findings};
use crate::jsonrpc::encode::{self, AnswerTo};
use crate::jsonrpc::{
    DecodeError, Incoming, Message, Notification, Request, RequestId, RpcError, decode, excerpt,
};
use crate::model::{EmptyResult, LogLevel, ServerResult, SetLevelParams};
use crate::peer::Peer;
use crate::revision::{Batches as BatchRule, Lifecycle, Method, Revision, Rules, UnreadableId, lower};
use crate::time::Timestamp;
use batches::{BatchId, Batches};
use calls::Calls;
use changes::Listener;
use handshake::{Held, Phase};
use keepalive::Keepalive;
use per_request::MetaHead;
pub use per_request::{Senders, stated_revision, unstated_revision};
use rounds::Questions;

/// One conversation with one client, seen from the server.
///
/// In: [`receive`](Self::receive) bytes or [`message`](Self::message), [`finish`](Self::finish) a call,
/// [`progress`](Self::progress), [`log`](Self::log), [`changed`](Self::changed),
/// [`session_changed`](Self::session_changed), [`tick`](Self::tick),
/// [`close_channel`](Self::close_channel), [`wind_down`](Self::wind_down).
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
    no_answers: Arc<Answers>,
}

/// Where an answer goes.
#[derive(Debug, Clone, PartialEq)]
struct ReplyTo {
    channel: Channel,
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
    pub fn receive(&mut self, now: Timestamp, channel: Channel, bytes: &[u8]) {
        let limits = self.config.limits;
        match decode(bytes, &limits) {
            Ok(Incoming::One(message)) => self.message(now, channel, message),
            Ok(Incoming::Batch(messages)) => self.batch(now, channel, messages),
            Err(fault) => self.malformed(channel, &fault),
        }
    }

    /// Takes in a message that was dropped unread because it was too long.
    pub fn receive_too_long(&mut self, channel: Channel) {
        self.malformed(channel, &DecodeError::too_long(self.config.limits.message_bytes));
    }

    /// Takes in one message.
    pub fn message(&mut self, now: Timestamp, channel: Channel, message: Message<'_>) {
        self.keepalive.heard(now, &self.config.timeouts);
        match message {
            Message::Request(request) => {
                let to = ReplyTo { channel, id: request.id.clone(), batch: None };
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

    fn request(&mut self, now: Timestamp, to: &ReplyTo, request: &Request<'_>) {
        let method = Method::known(&request.method).or_else(|| {
            self.config.custom_methods.get(&*request.method).map(|name| Method::Custom(name.clone()))
        });
        let head = self.check_id(&to.id).and_then(|()| MetaHead::read(request.params.meta));
        let done = match head {
            Err(error) => Err(error),
            Ok(head) if head.names_a_revision() => self.stateless_request(now, to, method, request, &head),
            Ok(head) => self.session_request(now, to, method, request, &head),
        };
        if let Err(error) = done {
            self.answer_error(to, &error);
        }
    }

    fn stateless_request(
        &mut self,
        now: Timestamp,
        to: &ReplyTo,
        method: Option<Method>,
        request: &Request<'_>,
        head: &MetaHead<'_>,
    ) -> Result<(), RpcError> {
        if to.batch.is_some() {
            self.note("RPC-10", "a request without a session inside a batch");
            return Err(RpcError::invalid_request("a request without a session must not be part of a batch"));
        }
        let peer = self.sender(head)?;
        let log_level = head.log_level()?;
        let method = self.served(method, &request.method, peer.rules())?;
        match method {
            Method::Discover => self.discover(to, &peer),
            Method::Listen => self.listen(to, request, &peer)?,
            method => self.start(now, to, method, request, &peer, head.progress_token()?, log_level)?,
        }
        Ok(())
    }

    fn session_request(
        &mut self,
        now: Timestamp,
        to: &ReplyTo,
        method: Option<Method>,
        request: &Request<'_>,
        head: &MetaHead<'_>,
    ) -> Result<(), RpcError> {
        let peer = match (&self.phase, &method) {
            (_, Some(Method::Initialize)) => return self.initialize(now, to, request),
            (phase, Some(Method::Ping)) => {
                // Only sessions have it, so whoever sends it before the handshake is about to open one.
                let rules = phase.peer().map_or(Revision::LATEST_SESSION.rules(), |peer| peer.rules());
                self.answer(to, rules, EmptyResult::default().into());
                return Ok(());
            }
            (Phase::Fresh, Some(Method::Discover | Method::Listen)) => {
                return Err(MetaHead::missing());
            }
            (Phase::Fresh, _) if head.describes_a_sender() => return Err(MetaHead::missing()),
            (Phase::Fresh, _) => {
                self.note("LIFE-01", "a request before initialize");
                return Err(RpcError::invalid_request(format!(
                    "{}: the session is not initialized; send initialize first, or name a revision in _meta",
                    excerpt(&request.method)
                )));
            }
            (Phase::Opening(peer), _) => {
                let peer = peer.clone();
                if !self.admit_early(now, to, request)? {
                    return Ok(());
                }
                peer
            }
            (Phase::Ready(peer), _) => peer.clone(),
        };
        let method = self.served(method, &request.method, peer.rules())?;
        if method == Method::SetLevel {
            return self.set_level(to, request);
        }
        self.start(now, to, method, request, &peer, head.progress_token()?, None)
    }

    /// The method, if these rules have it and this server offers it.
    fn served(&self, method: Option<Method>, name: &str, rules: &Rules) -> Result<Method, RpcError> {
        let Some(method) = method else { return Err(RpcError::method_not_found(name)) };
        let needs_session = self.config.session_methods.contains(method.name());
        let exists_in = |rules: &Rules| {
            method.exists_in(rules) && !(needs_session && rules.lifecycle == Lifecycle::PerRequest)
        };
        let exists = exists_in(rules);
        if exists && method.is_offered(&self.config.capabilities) {
            return Ok(method);
        }
        let mut error = RpcError::method_not_found(name);
        if !exists {
            let revisions = Revision::ALL.into_iter().filter(|revision| exists_in(revision.rules()));
            let revisions: Vec<&str> = revisions.map(Revision::as_str).collect();
            error.message = format!("{}; it belongs to {}", error.message, revisions.join(", ")).into();
        }
        Err(error)
    }

    fn set_level(&mut self, to: &ReplyTo, request: &Request<'_>) -> Result<(), RpcError> {
        let params: SetLevelParams = read_params(request.params.text)?;
        self.log_level = params.level;
        self.answer(to, self.rules(), EmptyResult::default().into());
        Ok(())
    }

    fn notification(&mut self, now: Timestamp, notification: &Notification<'_>) {
        match &*notification.method {
            "notifications/initialized" => self.initialized(now),
            "notifications/cancelled" => self.cancelled(notification),
            "$/cancelRequest" if self.config.policy.foreign_cancel => {
                self.note("CANC-01", "$/cancelRequest instead of notifications/cancelled");
                self.foreign_cancelled(notification);
            }
            "notifications/roots/list_changed" if self.is_ready() => {
                self.outputs.push_back(Output::RootsChanged);
            }
            // Progress on our questions keeps nobody waiting longer; unknown notifications are legal.
            _ => {}
        }
    }

    fn batch(&mut self, now: Timestamp, channel: Channel, messages: Vec<Result<Message<'_>, DecodeError>>) {
        self.keepalive.heard(now, &self.config.timeouts);
        if self.rules().batches == BatchRule::Refused || self.phase.peer().is_none() {
            self.note("RPC-10", "a batch where the revision has none");
            let error = RpcError::invalid_request("batches are not accepted here");
            return self.answer_unreadable(channel, &error);
        }
        let batch = self.batches.open(channel);
        for message in messages {
            match message {
                Ok(Message::Request(request)) => {
                    let to = ReplyTo { channel, id: request.id.clone(), batch: Some(batch) };
                    self.batches.expect_one(batch);
                    if request.method == "initialize" {
                        self.note("RPC-09", "initialize inside a batch");
                        let error = RpcError::invalid_request("initialize must not be part of a batch");
                        self.answer_error(&to, &error);
                    } else {
                        self.request(now, &to, &request);
                    }
                }
                Ok(Message::Notification(notification)) => self.notification(now, &notification),
                Ok(Message::Response(response)) => self.response(response),
                Err(fault) if fault.answer => {
                    let json = self.encode_error(fault.id.as_ref(), &fault.error);
                    self.batches.add(batch, &json);
                }
                Err(_) => {}
            }
        }
        self.flush_batch(batch);
    }

    fn malformed(&mut self, channel: Channel, fault: &DecodeError) {
        self.note("RPC-01", fault.error.message.clone());
        if !fault.answer {
            return;
        }
        match &fault.id {
            Some(id) => {
                let to = ReplyTo { channel, id: id.clone(), batch: None };
                self.answer_error(&to, &fault.error);
            }
            None => self.answer_unreadable(channel, &fault.error),
        }
    }

    /// The rules of the session; before there is one, those of the newest revision.
    fn rules(&self) -> &'static Rules {
        self.phase.peer().map_or(Revision::LATEST.rules(), |peer| peer.rules())
    }

    /// Answers with a result, in the shape that these rules want.
    fn answer(&mut self, to: &ReplyTo, rules: &Rules, mut result: ServerResult) {
        lower::result(rules, &self.config, &mut result);
        let mut json = Vec::with_capacity(256);
        match encode::result(&mut json, &to.id, &result) {
            Ok(()) => self.send_answer(to, json, None),
            Err(fault) => {
                self.answer_error(to, &RpcError::internal(format!("the result is not JSON: {fault}")));
            }
        }
    }

    fn answer_error(&mut self, to: &ReplyTo, error: &RpcError) {
        let json = self.encode_error(Some(&to.id), error);
        self.send_answer(to, json, Some(error.code));
    }

    /// Answers a message whose id could not be read.
    fn answer_unreadable(&mut self, channel: Channel, error: &RpcError) {
        let json = self.encode_error(None, error);
        let kind = Kind::Answer { error: Some(error.code) };
        self.outputs.push_back(Output::Send(Sending { to: To::Channel(channel), kind, json }));
    }

    fn encode_error(&self, id: Option<&RequestId>, error: &RpcError) -> Vec<u8> {
        let to = match (id, self.rules().unreadable_id) {
            (Some(id), _) => AnswerTo::Id(id),
            (None, UnreadableId::Null) => AnswerTo::Null,
            (None, UnreadableId::Absent) => AnswerTo::Nothing,
        };
        let mut json = Vec::with_capacity(192);
        if encode::error(&mut json, to, error).is_err() {
            // Codes, texts and JSON values can always be written; an id of digits is one by construction.
            json.clear();
        }
        json
    }

    fn send_answer(&mut self, to: &ReplyTo, json: Vec<u8>, error: Option<i64>) {
        match to.batch {
            Some(batch) => {
                self.batches.add(batch, &json);
                self.flush_batch(batch);
            }
            None => {
                let kind = Kind::Answer { error };
                self.outputs.push_back(Output::Send(Sending { to: To::Channel(to.channel), kind, json }));
            }
        }
    }

    fn flush_batch(&mut self, batch: BatchId) {
        if let Some((channel, json)) = self.batches.take_complete(batch) {
            let kind = Kind::Answer { error: None };
            self.outputs.push_back(Output::Send(Sending { to: To::Channel(channel), kind, json }));
        }
    }

    fn send(&mut self, to: To, kind: Kind, write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>) {
        let mut json = Vec::with_capacity(192);
        if write(&mut json).is_ok() {
            self.outputs.push_back(Output::Send(Sending { to, kind, json }));
        }
    }

    fn note(&mut self, rule: &'static str, what: impl Into<Cow<'static, str>>) {
        let finding = Finding { rule, what: what.into() };
        if self.findings.note(&finding) {
            self.outputs.push_back(Output::Note(finding));
        }
    }

    fn refuses_duplicates(&self) -> bool {
        self.config.policy.duplicate_ids == DuplicateIds::Refuse
    }

    fn peer_of(&self, call: CallId) -> Option<&Arc<Peer>> {
        self.calls.get(call).map(|entry| &entry.peer)
    }
}

/// Parses the parameters of a request; absent ones read as an empty object.
fn read_params<'a, T: serde::Deserialize<'a>>(text: Option<&'a str>) -> Result<T, RpcError> {
    serde_json::from_str(text.unwrap_or("{}")).map_err(|fault| {
        RpcError::invalid_params(format!("params: {}", crate::jsonrpc::without_place(&fault)))
    })
}
