//! Opening a connection: the attempts of the version negotiation, and the phases.

use std::sync::Arc;

use super::config::TransportKind;
use super::io::{
    CallError, ClientMessage, ClientMessageKind, ClientOutput, OpenError, ServerFacts, TransportError,
};
use super::negotiation::{self, Attempt, AttemptOutcome, NextStep};
use super::{ClientEngine, encode_request};
use crate::engine::ExchangeId;
use crate::jsonrpc::{RpcError, encode, without_place};
use crate::model::{DiscoverResult, InitializeParams, InitializeResult, JsonObject};
use crate::revision::{Lifecycle, NotificationMethod, Revision, Rules, downgrade};
use crate::time::Timestamp;

/// Attempts at the most; a correct server needs four.
const MAX_ATTEMPTS: u32 = 5;

/// The phase of a connection.
#[derive(Debug)]
pub(super) enum Phase {
    New,
    Opening(Opening),
    Open(Arc<ServerFacts>),
    Closed(OpenError),
}

/// An attempt without a response.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opening {
    pub(super) attempt: Attempt,
    pub(super) exchange: ExchangeId,
    since: Timestamp,
    until: Timestamp,
    /// Whether one of its kind was made before, or the server named its revision.
    again: bool,
    /// The number of attempts so far.
    number: u32,
}

impl ClientEngine {
    /// Begins to open the connection.
    pub fn open(&mut self, now: Timestamp) {
        self.attempt(now, negotiation::first(self.config.version_policy), false, 1);
    }

    /// The server has lost the session (HTTP status 404): calls in flight fail, and a session is opened once more in the same
    /// revision.
    pub(super) fn session_lost(&mut self, now: Timestamp) {
        let Phase::Open(server) = &self.phase else { return };
        let revision = server.revision;
        self.fail_calls(&CallError::Transport(TransportError::SessionLost), false);
        self.suspend_tasks(now);
        self.cancel_all_requests();
        if std::mem::replace(&mut self.reopened, true) {
            return self.give_up(OpenError::Transport(TransportError::SessionLost));
        }
        self.attempt(now, Attempt::Initialize(revision), false, 1);
    }

    fn attempt(&mut self, now: Timestamp, attempt: Attempt, again: bool, number: u32) {
        let exchange = self.next_exchange();
        self.opened_by = exchange;
        let may_be_ignored =
            matches!(attempt, Attempt::Discover(_)) && self.config.transport == TransportKind::Pipe;
        // Where silence means only that the server is slow, the usual timeout holds.
        let goes_on = may_be_ignored && negotiation::goes_on_after_silence(self.config.version_policy, again);
        // A server that ignores `server/discover` needs its share of the time to open a session.
        let probe = self.config.probe_timeout.min(self.config.open_timeout / 2);
        let patience = if goes_on { probe } else { self.config.open_timeout };
        let method = attempt.method();
        let (json, rules) = match attempt {
            Attempt::Discover(revision) => self.discover(exchange, method, revision),
            Attempt::Initialize(revision) => self.initialize(exchange, method, revision),
        };
        let kind =
            ClientMessageKind::Request { method: method.into(), name: None, param_headers: Vec::new() };
        self.outputs.push_back(ClientOutput::Send(ClientMessage { exchange, kind, json, rules }));
        let until = now + patience;
        self.wake_at(until);
        self.phase = Phase::Opening(Opening { attempt, exchange, since: now, until, again, number });
    }

    fn discover(
        &self,
        exchange: ExchangeId,
        method: &str,
        revision: Revision,
    ) -> (Vec<u8>, Option<&'static Rules>) {
        let rules = revision.rules();
        let mut json = Vec::new();
        let request = encode_request::RequestDraft {
            id: exchange.0,
            method,
            params: "{}",
            options: &super::CallOptions::default(),
            responses: None,
            state: None,
            task: None,
        };
        request.encode_request(&mut json, rules, &encode_request::fixed_meta(&self.config, rules));
        (json, Some(rules))
    }

    fn initialize(
        &self,
        exchange: ExchangeId,
        method: &str,
        revision: Revision,
    ) -> (Vec<u8>, Option<&'static Rules>) {
        let mut params = InitializeParams::new(revision.as_str(), self.config.info.clone());
        params.capabilities = self.config.declared_capabilities(revision.rules());
        downgrade::extensions(revision.rules(), &mut params.capabilities.extensions);
        let mut json = Vec::new();
        // Writing values of the model into memory does not fail.
        let _ = encode::request(&mut json, &super::id_of(exchange), method, &params);
        (json, None)
    }

    /// Takes a response to the attempt; whether it was one.
    pub(super) fn attempt_response(
        &mut self,
        now: Timestamp,
        exchange: ExchangeId,
        result: &Result<&str, RpcError>,
    ) -> bool {
        let Phase::Opening(negotiation) = self.phase else { return false };
        if negotiation.exchange != exchange {
            return false;
        }
        match result {
            Err(error) => self.conclude(now, negotiation, AttemptOutcome::Error(error.clone()), None),
            Ok(text) => {
                let read = match negotiation.attempt {
                    Attempt::Discover(_) => discovered(text),
                    Attempt::Initialize(_) => initialized(text),
                };
                match read {
                    Ok((versions, server)) => {
                        self.conclude(now, negotiation, AttemptOutcome::Speaks(versions), Some(server));
                    }
                    Err(why) => self.conclude(now, negotiation, AttemptOutcome::Malformed(why), None),
                }
            }
        }
        true
    }

    /// The exchange of the attempt has ended without a response; whether it was that one.
    pub(super) fn attempt_ended(
        &mut self,
        now: Timestamp,
        exchange: ExchangeId,
        why: &TransportError,
    ) -> bool {
        let Phase::Opening(negotiation) = self.phase else { return false };
        if negotiation.exchange == exchange {
            self.conclude(now, negotiation, AttemptOutcome::Wire(why.clone()), None);
        }
        negotiation.exchange == exchange
    }

    pub(super) fn tick_attempt(&mut self, now: Timestamp) {
        let Phase::Opening(negotiation) = self.phase else { return };
        if now < negotiation.until {
            return self.wake_at(negotiation.until);
        }
        let after_millis = u64::try_from((now - negotiation.since).as_millis()).unwrap_or(u64::MAX);
        self.outputs.push_back(ClientOutput::Abandon(negotiation.exchange));
        self.conclude(now, negotiation, AttemptOutcome::TimedOut { after_millis }, None);
    }

    pub(super) fn conclude(
        &mut self,
        now: Timestamp,
        negotiation: Opening,
        outcome: AttemptOutcome,
        server: Option<ServerFacts>,
    ) {
        let step = match negotiation.attempt {
            Attempt::Discover(_) => negotiation::after_discover(
                self.config.version_policy,
                self.config.transport,
                negotiation.again,
                outcome,
            ),
            Attempt::Initialize(asked) => {
                negotiation::after_initialize(self.config.version_policy, asked, negotiation.again, outcome)
            }
        };
        match (step, server) {
            (NextStep::Speak(revision), Some(server)) => {
                self.opened(now, negotiation.attempt, ServerFacts { revision, ..server });
            }
            (NextStep::Try(_), _) if negotiation.number >= MAX_ATTEMPTS => {
                self.give_up(OpenError::Protocol("it sends us from one revision to the next".to_owned()));
            }
            (NextStep::Try(next), _) => {
                let asked = matches!(next, Attempt::Discover(_));
                let again = asked || matches!(negotiation.attempt, Attempt::Initialize(_));
                self.attempt(now, next, again, negotiation.number + 1);
            }
            (NextStep::GiveUp(why), _) => {
                let why = self.with_ignored_input(why);
                self.give_up(why);
            }
            // A revision is only used after a result that names it.
            (NextStep::Speak(_), None) => {
                self.give_up(OpenError::Protocol("it did not say what it offers".to_owned()));
            }
        }
    }

    fn opened(&mut self, now: Timestamp, attempt: Attempt, server: ServerFacts) {
        let server = Arc::new(server);
        let rules = server.rules();
        self.fixed_meta = encode_request::fixed_meta(&self.config, rules);
        self.phase = Phase::Open(server.clone());
        if let Attempt::Initialize(_) = attempt {
            let initialized = NotificationMethod::Initialized.name();
            self.initialized_by = Some(self.send_notification(rules, initialized, None::<&JsonObject>));
        }
        self.outputs.push_back(ClientOutput::Opened(server));
        if rules.lifecycle == Lifecycle::PerRequest {
            self.refuse_early_requests();
        }
        for call in std::mem::take(&mut self.waiting) {
            self.send_call(now, call);
        }
    }

    /// Ends the connection and all calls.
    pub(super) fn give_up(&mut self, why: OpenError) {
        let was_open = matches!(self.phase, Phase::Open(_));
        let error = match &why {
            OpenError::Transport(error) if was_open => CallError::Transport(error.clone()),
            why => CallError::NotOpen(why.clone()),
        };
        self.waiting.clear();
        self.leave_tasks();
        self.fail_calls(&error, true);
        self.cancel_all_requests();
        self.phase = Phase::Closed(why.clone());
        self.outputs.push_back(ClientOutput::Closed(why));
    }
}

fn discovered(text: &str) -> Result<(Vec<String>, ServerFacts), String> {
    let result: DiscoverResult = serde_json::from_str(text)
        .map_err(|error| format!("its answer to server/discover: {}", without_place(&error)))?;
    let info = result.meta.and_then(|meta| meta.server_info).map(Arc::unwrap_or_clone);
    let server = ServerFacts {
        revision: Revision::LATEST,
        info,
        capabilities: result.capabilities,
        instructions: result.instructions,
        versions: result.supported_versions.clone(),
        result: text.into(),
    };
    Ok((result.supported_versions, server))
}

fn initialized(text: &str) -> Result<(Vec<String>, ServerFacts), String> {
    let result: InitializeResult = serde_json::from_str(text)
        .map_err(|error| format!("its answer to initialize: {}", without_place(&error)))?;
    let versions = vec![result.protocol_version];
    let server = ServerFacts {
        revision: Revision::LATEST_SESSION,
        info: Some(result.server_info),
        capabilities: result.capabilities,
        instructions: result.instructions,
        versions: versions.clone(),
        result: text.into(),
    };
    Ok((versions, server))
}
