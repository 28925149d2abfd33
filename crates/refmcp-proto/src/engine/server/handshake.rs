//! The handshake of a session, `initialize` and `initialized`, with its protocol version negotiation; and
//! `server/discover`, which replaces it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{FactsChange, ReplyTo, ServerEngine, SessionFacts, read_params};
use crate::engine::report::ReportFindings;
use crate::engine::{EarlyRequests, ExchangeId, Output, Policy, RequestContext};
use crate::jsonrpc::{Message, Params, Request, RequestId, RpcError, excerpt};
use crate::model::{DiscoverResult, InitializeParams, InitializeResult};
use crate::peer::Peer;
use crate::revision::{Lifecycle, Method, Revision, downgrade};
use crate::rule;
use crate::time::Timestamp;

/// The phase of a session.
#[derive(Debug)]
pub(super) enum Phase {
    /// Before `initialize`.
    Fresh,
    /// Between the response to `initialize` and `initialized`.
    Opening(Arc<Peer>),
    /// The session is open.
    Ready(Arc<Peer>),
}

impl Phase {
    pub(super) fn peer(&self) -> Option<&Arc<Peer>> {
        match self {
            Self::Fresh => None,
            Self::Opening(peer) | Self::Ready(peer) => Some(peer),
        }
    }
}

/// A request that came before `initialized` and waits for it.
#[derive(Debug)]
pub(super) struct EarlyRequest {
    pub(super) until: Timestamp,
    pub(super) exchange: ExchangeId,
    pub(super) id: RequestId,
    method: String,
    params: Option<String>,
    context: Option<RequestContext>,
}

impl EarlyRequest {
    /// The bytes of its parameters.
    pub(super) fn bytes(&self) -> usize {
        self.params.as_ref().map_or(0, String::len)
    }
}

impl ServerEngine {
    pub(super) fn initialize(
        &mut self,
        now: Timestamp,
        to: &ReplyTo<'_>,
        request: &Request<'_>,
    ) -> Result<(), RpcError> {
        if self.phase.peer().is_some() {
            self.report(
                &rule::LIFE_01,
                "initialize in a session that is already open",
                "send it once in a session",
            );
            if !self.config.policy.repeated_initialize {
                let refused = format!("the session is already initialized; {}", Policy::LENIENT_SERVES);
                return Err(RpcError::invalid_request(refused));
            }
        }
        let Some(newest) = self.config.supported_revisions(Lifecycle::Handshake).next() else {
            return Err(self.no_session(request));
        };
        self.check_initialize_size(request.params.text.unwrap_or_default())?;
        let peer = self.negotiate_peer(request, newest).inspect_err(|_| {
            let (what, expected) = (
                "initialize without what it must have",
                "send protocolVersion, capabilities and clientInfo in params",
            );
            self.report(&rule::LIFE_01, what, expected);
        })?;
        let revision = peer.revision;
        self.check_facts_size(|engine| Some(SessionFacts::opening(&peer, engine.log_level)))?;
        let mut server_info = (*self.config.server_info).clone();
        downgrade::implementation(peer.rules(), &mut server_info);
        let offered = downgrade::capabilities(peer.rules(), &self.config.capabilities);
        let mut result = InitializeResult::new(revision.as_str(), offered, server_info);
        result.instructions.clone_from(&self.config.instructions);
        self.set_peer(now, peer.clone());
        let log_level = self.log_level;
        self.share_change(|| FactsChange::Initialized { peer: Box::new(Peer::clone(&peer)), log_level });
        self.respond(to, peer.rules(), &mut result.into());
        Ok(())
    }

    /// The client that sends `initialize`, in the revision that protocol version negotiation gives: the one it requests if
    /// it is supported, else the newest. Copies of one program describe themselves alike, and are kept once.
    fn negotiate_peer(&mut self, request: &Request<'_>, newest: Revision) -> Result<Arc<Peer>, RpcError> {
        let text = request.params.text.unwrap_or_default();
        let choice = self.config.version_choice.clone();
        if choice.is_none()
            && let Some(peer) = self.peers().find(Method::Initialize.name(), text, None)
        {
            return Ok(peer);
        }
        self.check_version_member(request)?;
        let params: InitializeParams = read_params(request.params.text)?;
        let revision = match Revision::negotiate(&params.protocol_version) {
            revision if self.config.revisions.contains(&revision) => revision,
            _ => newest,
        };
        let chosen = choice.as_ref().map(|choice| choice.choose(&params.client_info, revision));
        let is_supported =
            |chosen: &Revision| self.config.supported_revisions(Lifecycle::Handshake).any(|it| it == *chosen);
        let revision = chosen.filter(is_supported).unwrap_or(revision);
        let mut capabilities = params.capabilities;
        downgrade::client_capabilities(revision.rules(), &mut capabilities);
        let peer = Arc::new(Peer { revision, capabilities, info: Some(params.client_info) });
        if choice.is_none() {
            self.peers().remember(Method::Initialize.name(), text, None, peer.clone());
        }
        Ok(peer)
    }

    /// The error for a bad `protocolVersion` names the supported ones.
    fn check_version_member(&self, request: &Request<'_>) -> Result<(), RpcError> {
        let params: serde_json::Map<String, Value> = read_params(request.params.text)?;
        let requested = params.get("protocolVersion");
        if requested.is_some_and(Value::is_string) {
            return Ok(());
        }
        let supported: Vec<&str> =
            self.config.supported_revisions(Lifecycle::Handshake).map(Revision::as_str).collect();
        let what = if requested.is_some() { "not a string" } else { "missing" };
        Err(RpcError::invalid_params(format!("params: protocolVersion is {what}"))
            .with_data(json!({ "supported": supported, "requested": requested })))
    }

    fn no_session(&self, request: &Request<'_>) -> RpcError {
        let spoken: Vec<&str> = self.config.revisions.iter().map(|revision| revision.as_str()).collect();
        let mut error = RpcError::method_not_found(&request.method);
        error.message = format!("{}; this server speaks {}", error.message, spoken.join(", ")).into();
        error
    }

    pub(super) fn initialized(&mut self, now: Timestamp) {
        match &self.phase {
            Phase::Fresh => {
                self.report(
                    &rule::LIFE_02,
                    "notifications/initialized before initialize",
                    "send initialize first",
                );
            }
            Phase::Ready(_) => self.report(
                &rule::LIFE_02,
                "notifications/initialized a second time",
                "send it once, after the answer to initialize",
            ),
            Phase::Opening(_) => {
                self.set_ready();
                self.share_change(|| FactsChange::Ready);
                self.outputs.push_back(Output::Ready);
                self.serve_early_requests(now);
            }
        }
    }

    pub(super) fn set_peer(&mut self, now: Timestamp, peer: Arc<Peer>) {
        self.keepalive.start(now);
        self.phase = match self.phase {
            // Calls of the client that came before must not wait for the new one's `initialized`.
            Phase::Ready(_) => Phase::Ready(peer),
            Phase::Fresh | Phase::Opening(_) => Phase::Opening(peer),
        };
    }

    pub(super) fn set_ready(&mut self) {
        if let Phase::Opening(peer) = &self.phase {
            self.phase = Phase::Ready(peer.clone());
        }
    }

    /// Serves the requests that have waited for `initialized`.
    pub(super) fn serve_early_requests(&mut self, now: Timestamp) {
        for early in std::mem::take(&mut self.early_requests) {
            let params = Params::of_text(early.params.as_deref());
            let request = Request { id: early.id, method: early.method.into(), params };
            let outer = std::mem::replace(&mut self.context, early.context);
            self.message(now, early.exchange, &Message::Request(request));
            self.context = outer;
        }
    }

    /// Whether a request that comes before `initialized` is served now.
    pub(super) fn admit_early(
        &mut self,
        now: Timestamp,
        to: &ReplyTo<'_>,
        request: &Request<'_>,
    ) -> Result<bool, RpcError> {
        match self.config.policy.early_requests {
            EarlyRequests::Serve => {
                self.report_early();
                Ok(true)
            }
            EarlyRequests::Hold(time) if to.batch.is_none() => {
                self.check_in_flight(request.params.text.map_or(0, str::len))?;
                self.early_requests.push(EarlyRequest {
                    until: now + time,
                    exchange: to.exchange,
                    id: to.id.clone(),
                    method: request.method.to_string(),
                    params: request.params.text.map(str::to_owned),
                    context: self.context.clone(),
                });
                Ok(false)
            }
            EarlyRequests::Refuse | EarlyRequests::Hold(_) => {
                self.report_early();
                Err(too_early(&request.method))
            }
        }
    }

    fn report_early(&mut self) {
        self.report(
            &rule::LIFE_02,
            "a request before notifications/initialized",
            "send notifications/initialized first",
        );
    }

    pub(super) fn expire_early_requests(&mut self, now: Timestamp) {
        let late: Vec<EarlyRequest> =
            self.early_requests.extract_if(.., |early| early.until <= now).collect();
        for early in late {
            self.report_early();
            let to = ReplyTo { exchange: early.exchange, id: &early.id, batch: None };
            self.respond_error(&to, &too_early(&early.method));
            self.responded_too_early(&early.method);
        }
    }

    pub(super) fn discover(&mut self, to: &ReplyTo<'_>, peer: &Peer) {
        let capabilities = downgrade::capabilities(peer.rules(), &self.config.capabilities);
        let mut result = DiscoverResult::new(self.supported_versions(), capabilities);
        result.instructions.clone_from(&self.config.instructions);
        self.respond(to, peer.rules(), &mut result.into());
    }

    /// The revisions that a request without a session can name.
    pub(super) fn supported_versions(&self) -> Vec<String> {
        self.config
            .supported_revisions(Lifecycle::PerRequest)
            .map(|revision| revision.as_str().to_owned())
            .collect()
    }
}

fn too_early(method: &str) -> RpcError {
    RpcError::invalid_request(format!(
        "{}: notifications/initialized has to come first; {}",
        excerpt(method),
        Policy::LENIENT_SERVES
    ))
}
