//! The engine of a client: calls and messages of the server go in; messages, server requests and results come out.
//!
//! | file | what it is |
//! |---|---|
//! | `config` | configuration, and options of a call |
//! | `io` | inputs, outputs and errors |
//! | `negotiation` | which revision is tried, and what follows from the response: pure functions |
//! | `handshake` | opening a connection |
//! | `calls` | requests in flight and their input rounds |
//! | `deadlines` | how long calls may take |
//! | `tasks` | calls that have become tasks |
//! | `server_requests` | requests of the server to the host |
//! | `client_tasks` | requests of the server that the client runs as tasks |
//! | `notifications` | notifications of the server |
//! | `ignored_input` | input of a pipe that is no message |
//! | `encode_request` | requests as bytes |

mod calls;
mod client_tasks;
mod config;
mod deadlines;
mod encode_request;
mod handshake;
mod ignored_input;
mod io;
mod negotiation;
mod notifications;
mod server_requests;
mod tasks;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use calls::Call;
use client_tasks::ClientTasks;
use handshake::Phase;
use ignored_input::IgnoredInput;
use server_requests::PendingRequest;

use crate::engine::CallId;
use crate::engine::FastHash;
use crate::engine::message_checks;
use crate::engine::report::ReportFindings;
use crate::finding::Findings;
use crate::jsonrpc::{Incoming, Message, RequestId, decode, encode, excerpt};
use crate::model::CancelledParams;
use crate::revision::{Lifecycle, NotificationMethod, Revision, Rules};
use crate::rule;
use crate::time::Timestamp;

pub use super::ExchangeId;
pub use client_tasks::TaskIds;
pub use config::{
    CallOptions, ClientConfig, ClientTaskConfig, InputHandling, TaskHandling, TransportKind,
    UnknownVersionPolicy, VersionPolicy,
};
pub use io::{
    CallError, CallResult, ClientMessage, ClientMessageKind, ClientOutput, OpenError, ServerFacts,
    ServerRequest, ServerRequestId, TransportError,
};

/// One connection with a server.
#[derive(Debug)]
pub struct ClientEngine {
    config: Arc<ClientConfig>,
    phase: Phase,
    /// The exchange that opened, or is about to open, the connection.
    opened_by: ExchangeId,
    /// The `notifications/initialized` of the session.
    initialized_by: Option<ExchangeId>,
    /// Whether the session was opened again and has had no response yet.
    reopened: bool,
    /// What all requests have in `_meta`.
    fixed_meta: Vec<u8>,
    last_number: u64,
    calls: HashMap<CallId, Call, FastHash>,
    /// The calls of exchanges that are not a call's first.
    later_rounds: HashMap<ExchangeId, CallId, FastHash>,
    /// Calls that wait until the connection is open, in their order.
    waiting: Vec<CallId>,
    server_requests: HashMap<ServerRequestId, PendingRequest, FastHash>,
    last_server_request: u64,
    client_tasks: ClientTasks,
    /// No deadline is earlier than this.
    next_deadline: Option<Timestamp>,
    findings: Findings,
    ignored: IgnoredInput,
    outputs: VecDeque<ClientOutput>,
}

impl ClientEngine {
    /// A connection that is not open yet.
    pub fn new(config: Arc<ClientConfig>) -> Self {
        Self {
            config,
            phase: Phase::New,
            opened_by: ExchangeId(0),
            initialized_by: None,
            reopened: false,
            fixed_meta: Vec::new(),
            last_number: 0,
            calls: HashMap::default(),
            later_rounds: HashMap::default(),
            waiting: Vec::new(),
            server_requests: HashMap::default(),
            last_server_request: 0,
            client_tasks: ClientTasks::default(),
            next_deadline: None,
            findings: Findings::default(),
            ignored: IgnoredInput::default(),
            outputs: VecDeque::new(),
        }
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<ClientOutput> {
        self.outputs.pop_front()
    }

    /// The server, while the connection is open.
    pub fn server(&self) -> Option<&Arc<ServerFacts>> {
        match &self.phase {
            Phase::Open(server) => Some(server),
            _ => None,
        }
    }

    /// The findings about the server so far.
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// How many calls have not ended.
    pub fn in_flight(&self) -> usize {
        self.calls.len()
    }

    /// When [`tick`](Self::tick) is due; it may find nothing to do.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.next_deadline
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Timestamp) {
        self.next_deadline = None;
        self.tick_ignored_input(now);
        self.tick_attempt(now);
        self.expire_client_tasks(now);
        self.tick_calls(now);
    }

    /// Takes in bytes of the server: for an exchange, or from a stream for everything. Once the connection has ended, they are
    /// ignored.
    pub fn receive(&mut self, now: Timestamp, from: Option<ExchangeId>, bytes: &[u8]) {
        if self.is_closed() {
            return;
        }
        match decode(bytes, &self.config.limits.clone()) {
            Ok(Incoming::One(message)) => self.message(now, from, message),
            Ok(Incoming::Batch(messages)) => {
                for message in messages {
                    match message {
                        Ok(message) => self.message(now, from, message),
                        Err(error) => self.not_a_message(now, from, &error.to_string(), bytes),
                    }
                }
            }
            Err(error) => self.not_a_message(now, from, &error.to_string(), bytes),
        }
    }

    fn not_a_message(&mut self, now: Timestamp, from: Option<ExchangeId>, error: &str, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        match from {
            Some(_) => self.unreadable(now, from, &format!("{error}: {}", excerpt(&text))),
            None => self.malformed(now, error, &text),
        }
    }

    /// Takes in a message of the server; not once the connection has ended.
    pub fn message(&mut self, now: Timestamp, from: Option<ExchangeId>, message: Message<'_>) {
        if self.is_closed() {
            return;
        }
        self.message_received();
        for finding in message_checks::server_message(&message, self.peer_revision()) {
            self.report_if_ruled(finding);
        }
        match message {
            Message::Response(response) => self.response(now, from, response),
            Message::Request(request) => self.server_request(now, from, &request),
            Message::Notification(notification) => self.notification(now, from, &notification),
        }
    }

    /// Something came that is no message, such as one that is too long. On an exchange of its own it ends the call.
    pub fn unreadable(&mut self, now: Timestamp, from: Option<ExchangeId>, what: &str) {
        let Some(exchange) = from else { return self.too_long(now, what) };
        self.report(&rule::RPC_01, format!("not a message: {what}"), ONLY_MESSAGES);
        self.ended(now, exchange, TransportError::Misbehaved(format!("it sent what is no message: {what}")));
    }

    /// Nothing more comes for an exchange.
    pub fn ended(&mut self, now: Timestamp, exchange: ExchangeId, why: TransportError) {
        if self.attempt_ended(now, exchange, &why) {
            return;
        }
        // An exchange of an earlier session says nothing about this one.
        let in_session = matches!(self.phase, Phase::Open(_)) && !self.is_stateless();
        let of_this_session = exchange > self.opened_by && in_session;
        if why == TransportError::SessionLost && of_this_session {
            return self.session_lost(now);
        }
        if in_session && self.initialized_by == Some(exchange) {
            // The server may wait for it for ever, and refuse everything else.
            return self.give_up(OpenError::Transport(why));
        }
        if let Some(call) = self.call_of(exchange) {
            let error = match why {
                // When to try again must not get lost.
                TransportError::Refused { error: Some(error), retry_after: None, .. } => {
                    CallError::Rpc(error)
                }
                why => CallError::Transport(why),
            };
            if self.task_mut(call).is_some() {
                return self.task_failed(now, call, exchange, error);
            }
            self.finish(call, Err(error));
        }
    }

    /// Nothing more comes at all.
    pub fn closed(&mut self, why: TransportError) {
        if !self.is_closed() {
            let why = self.with_ignored_input(OpenError::Transport(why));
            self.give_up(why);
        }
    }

    /// Sends a notification; not before the connection is open, nor without a session.
    pub fn notify(&mut self, method: &str, params: Option<&crate::model::JsonObject>) {
        let Phase::Open(server) = &self.phase else { return };
        let rules = server.rules();
        if rules.lifecycle == Lifecycle::Handshake {
            self.send_notification(rules, method, params);
        }
    }

    fn send_notification(
        &mut self,
        rules: &'static Rules,
        method: &str,
        params: Option<&impl serde::Serialize>,
    ) -> ExchangeId {
        let exchange = self.next_exchange();
        let mut json = Vec::new();
        // Writing values of the model into memory does not fail.
        if encode::notification(&mut json, method, params).is_ok() {
            let kind = ClientMessageKind::Notification { method: method.into() };
            self.outputs.push_back(ClientOutput::Send(ClientMessage {
                exchange,
                kind,
                json,
                rules: Some(rules),
            }));
        }
        exchange
    }

    /// Cancels an exchange, in the way of the negotiated revision.
    fn send_cancel(&mut self, exchange: ExchangeId, reason: &str) {
        if let Phase::Open(server) = &self.phase {
            let rules = server.rules();
            if rules.lifecycle == Lifecycle::Handshake || self.config.transport == TransportKind::Pipe {
                let cancelled = CancelledParams::new(id_of(exchange)).reason(reason);
                self.send_notification(rules, NotificationMethod::Cancelled.name(), Some(&cancelled));
            }
        }
        self.outputs.push_back(ClientOutput::Abandon(exchange));
    }

    fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed(_))
    }

    fn next_exchange(&mut self) -> ExchangeId {
        self.last_number += 1;
        ExchangeId(self.last_number)
    }

    fn wake_at(&mut self, at: Timestamp) {
        self.next_deadline = Some(self.next_deadline.map_or(at, |next| next.min(at)));
    }
}

impl ReportFindings for ClientEngine {
    type Output = ClientOutput;

    fn peer_revision(&self) -> Option<Revision> {
        self.server().map(|server| server.rules().revision)
    }

    fn reported(&mut self) -> (&mut Findings, &mut VecDeque<ClientOutput>) {
        (&mut self.findings, &mut self.outputs)
    }
}

/// What is expected of a server whose output is not readable.
const ONLY_MESSAGES: &str = "send JSON-RPC 2.0 messages alone";

/// The same where the output may be a program's.
const ONLY_MESSAGES_IN_PIPE: &str = "send JSON-RPC 2.0 messages alone, and logs to standard error";

fn id_of(exchange: ExchangeId) -> RequestId {
    RequestId::Integer(exchange.0.cast_signed())
}

fn exchange_of(id: &RequestId) -> Option<ExchangeId> {
    match id {
        RequestId::Integer(number) => u64::try_from(*number).ok().map(ExchangeId),
        RequestId::Digits(_) | RequestId::Text(_) => None,
    }
}

#[cfg(test)]
mod tests;
