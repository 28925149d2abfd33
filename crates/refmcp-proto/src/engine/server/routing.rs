//! Routes messages by their kind, method and lifecycle.

use std::sync::Arc;

use super::super::io::{ExchangeId, Output, Responded};
use super::handshake::Phase;
use super::request_meta::{self, is_misplaced, log_level, missing_request_meta};
use super::{FactsChange, ReplyTo, ServerEngine};
use crate::engine::message_checks;
use crate::engine::report::ReportFindings;
use crate::finding::Finding;
use crate::jsonrpc::{DecodeError, Message, Notification, Request, RpcError, code, excerpt, read_member};
use crate::model::{EmptyResult, SetLevelParams};
use crate::peer::Peer;
use crate::revision::{BatchRule, Lifecycle, Method, NotificationMethod, Revision, Rules};
use crate::rule;
use crate::time::Timestamp;

/// What became of a request.
enum Routed {
    /// The engine has responded, to this client where the request describes it.
    Responded(Option<Arc<Peer>>),
    /// A handler runs, or the request is held until the client is ready.
    Deferred,
}

impl ServerEngine {
    pub(super) fn request(&mut self, now: Timestamp, to: &ReplyTo<'_>, request: &Request<'_>) {
        let method = self.method(&request.method);
        let meant = method.is_none().then(|| message_checks::meant_notification(&request.method)).flatten();
        let routed = self.check_id(to.id).and_then(|()| match meant {
            Some(meant) => Err(self.notification_with_id(request, meant)),
            None => self.route(now, to, method.clone(), request),
        });
        if let Err(error) = &routed {
            self.respond_error(to, error);
        }
        let failed = routed.is_err();
        match routed {
            Ok(Routed::Deferred) => {}
            Ok(Routed::Responded(peer @ Some(_))) => {
                self.outputs.push_back(Output::Responded(Responded { method, peer, failed }));
            }
            _ => self.responded_in_session(method, failed),
        }
    }

    /// The method of this name, if the protocol or this server has it.
    fn method(&self, name: &str) -> Option<Method> {
        match Method::known(name) {
            Some(method) if !method.is_extension() => Some(method),
            known => self.custom_method(name).or(known),
        }
    }

    fn responded_in_session(&mut self, method: Option<Method>, failed: bool) {
        let peer = self.phase.peer().cloned();
        self.outputs.push_back(Output::Responded(Responded { method, peer, failed }));
    }

    pub(super) fn responded_too_early(&mut self, method: &str) {
        self.responded_in_session(self.method(method), true);
    }

    /// The method beyond the protocol that this server has under a name. One whose calls are forwarded may have any.
    fn custom_method(&self, name: &str) -> Option<Method> {
        let forwards = self.config.forwards && message_checks::meant_notification(name).is_none();
        let forwarded = || forwards.then(|| name.into());
        self.config.custom_methods.get(name).cloned().or_else(forwarded).map(Method::Custom)
    }

    /// The error for a notification that came as a request.
    fn notification_with_id(&mut self, request: &Request<'_>, meant: &str) -> RpcError {
        self.report(&rule::RPC_07, "a notification with an id", "send it without, it is not answered");
        let mut error = RpcError::method_not_found(&request.method);
        error.message = format!("{}; {meant} is a notification: send it without an id", error.message).into();
        error
    }

    /// Routes a request by its `_meta`: one that names a revision is stateless, others belong to the session.
    fn route(
        &mut self,
        now: Timestamp,
        to: &ReplyTo<'_>,
        method: Option<Method>,
        request: &Request<'_>,
    ) -> Result<Routed, RpcError> {
        let meta = request_meta::check_object(&request.params.meta).map_err(|error| {
            let in_session = self.phase.peer().is_some() || method == Some(Method::Initialize);
            if in_session { self.refuse_session_meta(error) } else { self.refuse_meta(error) }
        })?;
        if meta.protocol_version.is_some() {
            self.stateless_request(now, to, method, request)
        } else {
            self.session_request(now, to, method, request)
        }
    }

    fn stateless_request(
        &mut self,
        now: Timestamp,
        to: &ReplyTo<'_>,
        method: Option<Method>,
        request: &Request<'_>,
    ) -> Result<Routed, RpcError> {
        if to.batch.is_some() {
            self.report(
                &rule::RPC_10,
                "a request without a session inside a batch",
                "send each request as a message of its own",
            );
            return Err(RpcError::invalid_request("a request without a session must not be part of a batch"));
        }
        let meta = &request.params.meta;
        let context = self.described_peer(meta).and_then(|peer| Ok((peer, log_level(meta)?)));
        let (peer, log_level) = context.map_err(|error| self.refuse_meta(error))?;
        let method = self.check_method(method, &request.method, peer.rules())?;
        match method {
            Method::Discover => self.discover(to, &peer),
            Method::Listen => self.listen(to, request, &peer)?,
            method => {
                let token = self.progress_token(meta)?;
                self.start(now, to, method, request, &peer, token, log_level)?;
                return Ok(Routed::Deferred);
            }
        }
        Ok(Routed::Responded(Some(peer)))
    }

    fn session_request(
        &mut self,
        now: Timestamp,
        to: &ReplyTo<'_>,
        method: Option<Method>,
        request: &Request<'_>,
    ) -> Result<Routed, RpcError> {
        let meta = &request.params.meta;
        // Only a stateless request does.
        let describes_client = meta.client_capabilities.is_some() || meta.client_info.is_some();
        let peer = match (&self.phase, &method) {
            (_, Some(Method::Initialize)) => {
                return self.initialize(now, to, request).map(|()| Routed::Responded(None));
            }
            (phase, Some(Method::Ping)) => {
                // Only sessions have it, so a client that sends it before the handshake is about to open one.
                let rules = phase.peer().map_or(Revision::LATEST_SESSION.rules(), |peer| peer.rules());
                self.respond(to, rules, &mut EmptyResult::default().into());
                return Ok(Routed::Responded(None));
            }
            (Phase::Fresh, Some(Method::Discover | Method::Listen)) => {
                return Err(self.refuse_meta(missing_request_meta()));
            }
            (Phase::Fresh, _) if describes_client || is_misplaced(&request.params) => {
                return Err(self.refuse_meta(missing_request_meta()));
            }
            (Phase::Fresh, _) => {
                self.report(
                    &rule::LIFE_01,
                    "a request before initialize",
                    "send initialize first, or name a revision in params._meta",
                );
                return Err(RpcError::invalid_request(format!(
                    "{}: the session is not initialized; send initialize first, or name a revision in _meta",
                    excerpt(&request.method)
                )));
            }
            (Phase::Opening(peer), _) => {
                let peer = peer.clone();
                if !self.admit_early(now, to, request)? {
                    return Ok(Routed::Deferred);
                }
                peer
            }
            (Phase::Ready(peer), _) => peer.clone(),
        };
        let method = self.check_method(method, &request.method, peer.rules())?;
        if method == Method::SetLevel {
            let params: SetLevelParams = read_params(request.params.text).map_err(|error| {
                self.refuse(&rule::LOG_02, error, "send params.level with a level of syslog")
            })?;
            if std::mem::replace(&mut self.log_level, params.level) != params.level {
                self.share_change(|| FactsChange::LogLevel(params.level));
            }
            if !self.config.forwards {
                self.respond(to, self.rules(), &mut EmptyResult::default().into());
                return Ok(Routed::Responded(None));
            }
        }
        let token = self.progress_token(&request.params.meta)?;
        self.start(now, to, method, request, &peer, token, None)?;
        Ok(Routed::Deferred)
    }

    /// The method, if these rules have it and this server offers it.
    fn check_method(
        &mut self,
        method: Option<Method>,
        name: &str,
        rules: &Rules,
    ) -> Result<Method, RpcError> {
        let Some(method) = method else { return Err(RpcError::method_not_found(name)) };
        let needs_session = || self.config.session_methods.contains(method.name());
        let exists_in = |rules: &Rules| {
            method.exists_in(rules) && !(rules.lifecycle == Lifecycle::PerRequest && needs_session())
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
        let rule = match method {
            Method::Ping => &rule::PING_02,
            _ if rules.lifecycle == Lifecycle::PerRequest => &rule::STATE_16,
            _ => &rule::LIFE_08,
        };
        let what = if exists { "a method of no declared capability" } else { "a method of another revision" };
        let what = format!("{what}: {}", method.name());
        // The oldest revisions only recommend this.
        let expected = "send what the revision has and the capabilities declare";
        self.report_if_ruled(Finding::new(rule, what, expected));
        Err(error)
    }

    /// Reports a request that does not describe its client as it must. To request a revision that is not served is no
    /// mistake.
    fn refuse_meta(&mut self, error: RpcError) -> RpcError {
        if error.code == code::UNSUPPORTED_VERSION {
            return error;
        }
        self.refuse(
            &rule::STATE_04,
            error,
            "send protocolVersion and clientCapabilities in params._meta of every request",
        )
    }

    /// Reports a `_meta` that no request of a session can have.
    fn refuse_session_meta(&mut self, error: RpcError) -> RpcError {
        self.refuse(&rule::RPC_01, error, message_checks::SESSION_META)
    }

    pub(super) fn notification(&mut self, now: Timestamp, notification: &Notification<'_>) {
        let known = NotificationMethod::known(&notification.method);
        if let (Some(method), Some(peer)) = (known, self.phase.peer())
            && !method.client_may_send(peer.rules())
        {
            let what = format!("a client sends no {}", method.name());
            let expected = "send the notifications that clients of this revision have";
            self.report_if_ruled(Finding::new(&rule::LIFE_08, what, expected));
        }
        match known {
            Some(NotificationMethod::Initialized) => self.initialized(now),
            Some(NotificationMethod::Cancelled) => self.cancelled(notification),
            Some(NotificationMethod::RootsListChanged) if self.is_ready() => {
                self.outputs.push_back(Output::RootsChanged);
            }
            Some(NotificationMethod::TaskStatus) => self.task_notified(now, notification),
            None if notification.method == "$/cancelRequest" && self.config.policy.foreign_cancel => {
                self.lsp_cancel_request(notification);
            }
            // Progress of our requests does not extend their deadlines; unknown notifications are legal.
            _ => {}
        }
    }

    pub(super) fn batch(
        &mut self,
        now: Timestamp,
        exchange: ExchangeId,
        messages: &[Result<Message<'_>, DecodeError>],
    ) {
        self.keepalive.message_received(now, &self.config.timeouts);
        if self.rules().batches == BatchRule::Refused || self.phase.peer().is_none() {
            self.report(&rule::RPC_10, "a batch where the revision has none", "send each message on its own");
            let error = RpcError::invalid_request("batches are not accepted here");
            return self.respond_unreadable(exchange, &error);
        }
        let batch = self.batches.open(exchange);
        for message in messages {
            if let Ok(message) = message {
                self.begin_message(message);
            }
            match message {
                Ok(Message::Request(request)) => {
                    let to = ReplyTo { exchange, id: &request.id, batch: Some(batch) };
                    self.batches.expect_one(batch);
                    if request.method == Method::Initialize.name() && !self.stateless_message {
                        self.report(
                            &rule::RPC_09,
                            "initialize inside a batch",
                            "send it as a message of its own",
                        );
                        let error = RpcError::invalid_request("initialize must not be part of a batch");
                        self.respond_error(&to, &error);
                    } else {
                        self.request(now, &to, request);
                    }
                }
                Ok(Message::Notification(notification)) => self.notification(now, notification),
                Ok(Message::Response(response)) => self.response(now, response),
                Err(error) => {
                    self.stateless_message = false;
                    self.record_finding(message_checks::malformed(error));
                    if error.needs_response {
                        let json = self.encode_error(error.id.as_ref(), &error.error);
                        self.batches.add(batch, &json);
                    }
                }
            }
        }
        self.stateless_message = false;
        self.flush_batch(batch);
    }

    /// Reports what is wrong with a message, whether or not it is served. Until the next message, findings are about the
    /// revision of this one; gives whether the message before named its revision.
    pub(super) fn begin_message(&mut self, message: &Message<'_>) -> bool {
        let stateless =
            matches!(message, Message::Request(request) if request.params.meta.protocol_version.is_some());
        let before = std::mem::replace(&mut self.stateless_message, stateless);
        for finding in message_checks::client_message(message, self.peer_revision()) {
            self.report_if_ruled(finding);
        }
        before
    }

    /// Takes in bytes that are no message.
    pub fn malformed(&mut self, exchange: ExchangeId, error: &DecodeError) {
        self.record_finding(message_checks::malformed(error));
        if !error.needs_response {
            return;
        }
        match &error.id {
            Some(id) => {
                let to = ReplyTo { exchange, id, batch: None };
                self.respond_error(&to, &error.error);
            }
            None => self.respond_unreadable(exchange, &error.error),
        }
    }
}

/// Parses the parameters of a request; absent ones are an empty object.
pub(super) fn read_params<'a, T: serde::Deserialize<'a>>(text: Option<&'a str>) -> Result<T, RpcError> {
    read_member("params", text.unwrap_or("{}")).map_err(RpcError::invalid_params)
}
