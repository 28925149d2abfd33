//! The opening of a conversation as it happens.

use std::sync::Arc;

use super::config::TransportKind;
use super::io::{CallError, ClientMessage, ClientMessageKind, ClientOutput, OpenError, TransportError};
use super::opening::{self, Attempt, Evidence, Verdict};
use super::server_facts::ServerFacts;
use super::{ClientEngine, write};
use crate::engine::ExchangeId;
use crate::jsonrpc::{RpcError, encode, without_place};
use crate::model::{DiscoverResult, InitializeParams, InitializeResult, JsonObject};
use crate::revision::{Revision, Rules};
use crate::time::Timestamp;

/// Attempts at the most: with a server that answers sensibly, four are enough.
const MOST_ATTEMPTS: u32 = 5;

/// How far a conversation has come.
#[derive(Debug)]
pub(super) enum Phase {
    New,
    Opening(Opening),
    Open(Arc<ServerFacts>),
    Closed(OpenError),
}

/// An attempt that is not answered yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opening {
    pub(super) attempt: Attempt,
    pub(super) exchange: ExchangeId,
    since: Timestamp,
    until: Timestamp,
    /// Whether one of its kind was made before, or the server said that it would be understood.
    again: bool,
    /// How many there were, with this one.
    number: u32,
}

impl ClientEngine {
    /// Begins to open the conversation.
    pub fn open(&mut self, now: Timestamp) {
        self.attempt(now, opening::first(self.config.version_policy), false, 1);
    }

    /// The revisions agreed on, forgotten: the session is opened anew, and whoever called before is told that nobody
    /// knows what became of it.
    pub(super) fn session_lost(&mut self, now: Timestamp) {
        let Phase::Open(server) = &self.phase else { return };
        let revision = server.revision;
        self.fail_calls(&CallError::Transport(TransportError::SessionLost));
        self.withdraw_questions();
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
        // Where silence means nothing but that the server is slow, it may be as slow as with anything else.
        let goes_on = may_be_ignored && opening::goes_on_after_silence(self.config.version_policy, again);
        // A server that ignores the question needs its share of the time to open a session.
        let probe = self.config.probe_timeout.min(self.config.open_timeout / 2);
        let patience = if goes_on { probe } else { self.config.open_timeout };
        let (method, json, rules) = match attempt {
            Attempt::Discover(revision) => self.discover(exchange, revision),
            Attempt::Initialize(revision) => self.initialize(exchange, revision),
        };
        let kind =
            ClientMessageKind::Request { method: method.into(), name: None, param_headers: Vec::new() };
        self.outputs.push_back(ClientOutput::Send(ClientMessage { exchange, kind, json, rules }));
        let until = now + patience;
        self.remind(until);
        self.phase = Phase::Opening(Opening { attempt, exchange, since: now, until, again, number });
    }

    fn discover(
        &self,
        exchange: ExchangeId,
        revision: Revision,
    ) -> (&'static str, Vec<u8>, Option<&'static Rules>) {
        let rules = revision.rules();
        let mut json = Vec::new();
        let method = "server/discover";
        let draft = write::Draft {
            id: exchange.0,
            method,
            params: "{}",
            options: &super::CallOptions::default(),
            responses: None,
            state: None,
        };
        draft.write(&mut json, rules, &write::standing_meta(&self.config, rules));
        (method, json, Some(rules))
    }

    fn initialize(
        &self,
        exchange: ExchangeId,
        revision: Revision,
    ) -> (&'static str, Vec<u8>, Option<&'static Rules>) {
        let method = "initialize";
        let mut params = InitializeParams::new(revision.as_str(), self.config.info.clone());
        params.capabilities = self.config.capabilities.clone();
        if !revision.rules().extensions {
            params.capabilities.extensions = None;
        }
        let mut json = Vec::new();
        // Writing values of the model into memory does not fail.
        let _ = encode::request(&mut json, &super::id_of(exchange), method, &params);
        (method, json, None)
    }

    /// An answer to the opening; whether it was one.
    pub(super) fn opening_answered(
        &mut self,
        now: Timestamp,
        exchange: ExchangeId,
        result: &Result<&str, RpcError>,
    ) -> bool {
        let Phase::Opening(opening) = self.phase else { return false };
        if opening.exchange != exchange {
            return false;
        }
        match result {
            Err(error) => self.conclude(now, opening, Evidence::Error(error.clone()), None),
            Ok(text) => {
                let read = match opening.attempt {
                    Attempt::Discover(_) => discovered(text),
                    Attempt::Initialize(_) => initialized(text),
                };
                match read {
                    Ok((versions, server)) => {
                        self.conclude(now, opening, Evidence::Speaks(versions), Some(server));
                    }
                    Err(why) => self.conclude(now, opening, Evidence::Nonsense(why), None),
                }
            }
        }
        true
    }

    /// The exchange of the opening has ended without an answer; whether it was that one.
    pub(super) fn opening_ended(
        &mut self,
        now: Timestamp,
        exchange: ExchangeId,
        why: &TransportError,
    ) -> bool {
        let Phase::Opening(opening) = self.phase else { return false };
        if opening.exchange == exchange {
            self.conclude(now, opening, Evidence::Wire(why.clone()), None);
        }
        opening.exchange == exchange
    }

    pub(super) fn tick_opening(&mut self, now: Timestamp) {
        let Phase::Opening(opening) = self.phase else { return };
        if now < opening.until {
            return self.remind(opening.until);
        }
        let after_millis = u64::try_from((now - opening.since).as_millis()).unwrap_or(u64::MAX);
        self.outputs.push_back(ClientOutput::Abandon(opening.exchange));
        self.conclude(now, opening, Evidence::Silence { after_millis }, None);
    }

    pub(super) fn conclude(
        &mut self,
        now: Timestamp,
        opening: Opening,
        evidence: Evidence,
        server: Option<ServerFacts>,
    ) {
        let verdict = match opening.attempt {
            Attempt::Discover(_) => opening::after_discover(
                self.config.version_policy,
                self.config.transport,
                opening.again,
                evidence,
            ),
            Attempt::Initialize(asked) => {
                opening::after_initialize(self.config.version_policy, asked, opening.again, evidence)
            }
        };
        match (verdict, server) {
            (Verdict::Speak(revision), Some(server)) => {
                self.opened(now, opening.attempt, ServerFacts { revision, ..server });
            }
            (Verdict::Try(_), _) if opening.number >= MOST_ATTEMPTS => {
                self.give_up(OpenError::Protocol("it sends us from one revision to the next".to_owned()));
            }
            (Verdict::Try(next), _) => {
                let asked = matches!(next, Attempt::Discover(_));
                let again = asked || matches!(opening.attempt, Attempt::Initialize(_));
                self.attempt(now, next, again, opening.number + 1);
            }
            (Verdict::GiveUp(why), _) => {
                let why = self.with_junk(why);
                self.give_up(why);
            }
            // A server is only spoken to after it has said who it is.
            (Verdict::Speak(_), None) => {
                self.give_up(OpenError::Protocol("it did not say what it offers".to_owned()));
            }
        }
    }

    fn opened(&mut self, now: Timestamp, attempt: Attempt, server: ServerFacts) {
        let server = Arc::new(server);
        let rules = server.rules();
        self.standing_meta = write::standing_meta(&self.config, rules);
        self.phase = Phase::Open(server.clone());
        if let Attempt::Initialize(_) = attempt {
            self.send_notification(rules, "notifications/initialized", None::<&JsonObject>);
        }
        self.outputs.push_back(ClientOutput::Opened(server));
        for call in std::mem::take(&mut self.waiting) {
            self.send_call(now, call);
        }
    }

    /// Ends everything.
    pub(super) fn give_up(&mut self, why: OpenError) {
        let was_open = matches!(self.phase, Phase::Open(_));
        let error = match &why {
            OpenError::Transport(fault) if was_open => CallError::Transport(fault.clone()),
            why => CallError::NotOpen(why.clone()),
        };
        self.waiting.clear();
        self.fail_calls(&error);
        self.withdraw_questions();
        self.phase = Phase::Closed(why.clone());
        self.outputs.push_back(ClientOutput::Closed(why));
    }
}

fn discovered(text: &str) -> Result<(Vec<String>, ServerFacts), String> {
    let result: DiscoverResult = serde_json::from_str(text)
        .map_err(|fault| format!("its answer to server/discover: {}", without_place(&fault)))?;
    let info = result.meta.and_then(|meta| meta.server_info).map(Arc::unwrap_or_clone);
    let server = ServerFacts {
        revision: Revision::LATEST,
        info,
        capabilities: result.capabilities,
        instructions: result.instructions,
        versions: result.supported_versions.clone(),
        answer: text.into(),
    };
    Ok((result.supported_versions, server))
}

fn initialized(text: &str) -> Result<(Vec<String>, ServerFacts), String> {
    let result: InitializeResult = serde_json::from_str(text)
        .map_err(|fault| format!("its answer to initialize: {}", without_place(&fault)))?;
    let versions = vec![result.protocol_version];
    let server = ServerFacts {
        revision: Revision::LATEST_SESSION,
        info: Some(result.server_info),
        capabilities: result.capabilities,
        instructions: result.instructions,
        versions: versions.clone(),
        answer: text.into(),
    };
    Ok((versions, server))
}
