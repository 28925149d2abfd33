//! A conversation: all that one client and one server sent each other, and what follows from it for later messages.

use std::collections::HashSet;

use refmcp_proto::revision::Lifecycle;
use refmcp_proto::rule::{self, Rule};
use refmcp_transport::observer::Side;
use serde_json::Value;

use super::Judgement;
use super::checks::{self, Check, Context};
use super::client_steps::ClientSteps;
pub(crate) use super::exchange::{Request, Stream, header, is_content, shows_stateless};
use super::features::Features;
use super::message::{Body, Message};
pub(crate) use super::party::declares;
pub(crate) use super::state::{Handshake, State};
use crate::recording::{Event, EventKind};
use crate::verdict::{Role, Verdicts, Violation};

/// One conversation with its verdicts.
#[derive(Debug)]
pub(super) struct Conversation {
    /// Its number in the auditor.
    pub(super) id: u64,
    state: State,
    checks: Vec<Box<dyn Check>>,
    pub(super) verdicts: Verdicts,
    features: Features,
    client_steps: ClientSteps,
    /// Rules that the other party broke, as the recording process has told by itself.
    found: HashSet<String>,
    /// Connections that belong to it: a client without a session has one for each request.
    connections: usize,
}

/// Rules of findings that are remembered.
const MAX_FOUND: usize = 1024;

impl Conversation {
    pub(super) fn new(id: u64, side: Side, transport: &str, peer: &str) -> Self {
        Self {
            id,
            state: State::new(side, transport, peer),
            checks: checks::all(),
            verdicts: Verdicts::default(),
            features: Features::default(),
            client_steps: ClientSteps::default(),
            found: HashSet::new(),
            connections: 0,
        }
    }

    /// Whether a new connection belongs to this conversation: at a server, requests without a session are connections of
    /// their own, and those from one address are one client's.
    pub(super) fn is_joined_by(&self, side: Side, transport: &str, peer: &str) -> bool {
        let stateless = self.state.handshake == Handshake::None && self.state.negotiated.is_none();
        side == Side::Server
            && self.state.side == side
            && transport == "http"
            && self.state.transport == transport
            && self.state.peer == peer
            && stateless
    }

    /// Whether all its connections are closed and no other will join it.
    pub(super) fn is_closed(&self) -> bool {
        self.connections == 0 && !self.is_shared()
    }

    /// Whether it has a connection for each request, so that other clients at the same address may have a part in it.
    pub(super) fn is_shared(&self) -> bool {
        self.state.side == Side::Server && self.state.is_stateless()
    }

    /// Takes an event, which has this number among all that are observed.
    pub(super) fn observe(&mut self, event: &Event, number: u64) {
        self.state.event = number;
        // A session may go on at another process than the one that opened it.
        let of_session = event.revision.filter(|revision| revision.lifecycle() == Lifecycle::Handshake);
        self.state.negotiated = self.state.negotiated.or(of_session);
        match &event.kind {
            EventKind::Opened { .. } => {
                self.connections += 1;
                self.state.closed_at = None;
            }
            EventKind::Closed { .. } => {
                self.connections = self.connections.saturating_sub(1);
                self.state.closed_at = (self.connections == 0).then_some(event.at);
            }
            EventKind::Message { direction, text, .. } => {
                let from = self.state.sender(*direction);
                match serde_json::from_str::<Value>(text) {
                    Ok(value) => self.messages(event, from, text, &value),
                    // It is a message, with a number that has no place in memory.
                    Err(_) => self.state.is_overfull = true,
                }
            }
            EventKind::Finding { rule, .. } => self.takes_finding(rule),
            EventKind::Request { method, headers, .. } => {
                self.state.is_resumed |= headers.iter().any(|(name, _)| name == "last-event-id");
                let (method, headers) = (method.clone(), headers.clone());
                self.state.open_stream(event, Stream { method, headers, ..Stream::default() });
            }
            _ => {}
        }
        self.check(event);
        self.client_steps.event(event, &self.state);
        match &event.kind {
            EventKind::Response { status, headers, .. } => {
                if let Some(stream) = event.stream.and_then(|id| self.state.streams.get_mut(&id)) {
                    (stream.status, stream.response_headers) = (Some(*status), headers.clone());
                }
                if *status >= 400 {
                    self.state.refuse_requests(event.stream);
                }
            }
            EventKind::Ended { .. } => {
                event.stream.map(|id| self.state.streams.remove(&id));
                self.state.lose_requests(event.stream, Request::is_stateless);
            }
            EventKind::Refused { .. } => self.state.refuse_requests(event.stream),
            EventKind::Failed { .. } => {
                event.stream.map(|id| self.state.streams.remove(&id));
                self.state.lose_requests(event.stream, |_| true);
            }
            _ => {}
        }
    }

    pub(super) fn finish(&mut self) {
        for check in &mut self.checks {
            check.finished(&mut Context::at_end(&self.state, &mut self.verdicts));
        }
    }

    /// The different violations since this was last called, without those of rules that the recording process has told of.
    pub(super) fn take_new(&mut self) -> Vec<(&'static Rule, Role, Violation)> {
        let mut new = self.verdicts.take_new();
        new.retain(|(rule, role, _)| *role != self.state.other_role() || !self.found.contains(rule.id));
        new
    }

    fn takes_finding(&mut self, rule: &str) {
        if self.found.len() < MAX_FOUND && !self.has_broken(self.state.other_role(), rule) {
            self.found.insert(rule.to_owned());
        }
    }

    /// Whether a violation of this rule by the other party was among those of [`Conversation::take_new`].
    pub(super) fn has_told(&self, rule: &str) -> bool {
        !self.found.contains(rule) && self.has_broken(self.state.other_role(), rule)
    }

    fn has_broken(&self, role: Role, rule: &str) -> bool {
        rule::find(rule).and_then(|rule| self.verdicts.get(rule, role)).is_some_and(|it| it.broken > 0)
    }

    pub(super) fn judgement(&self) -> Judgement {
        Judgement {
            client: self.state.client.name.clone(),
            server: self.state.server.name.clone(),
            transport: self.state.transport.clone(),
            revisions: self.state.revisions,
            side: self.state.side,
            verdicts: self.verdicts.clone(),
            features: self.features.with_capabilities(&self.state),
            client_steps: self.client_steps.with_capabilities(&self.state),
        }
    }

    /// Lets the checks see an event of any kind.
    fn check(&mut self, event: &Event) {
        for check in &mut self.checks {
            check.event(event, &mut Context::of_event(&self.state, event, &mut self.verdicts));
        }
    }

    /// Lets the checks see a message, or each one of a batch, and then takes note of it.
    fn messages(&mut self, event: &Event, from: Role, text: &str, value: &Value) {
        let (batch, in_batch) = match value {
            Value::Array(batch) => (&**batch, true),
            single => (std::slice::from_ref(single), false),
        };
        for value in batch {
            let request = self.state.answered_by(from, event.stream, value);
            let Some(body) = Body::of(value, request.as_ref()) else { continue };
            let revision = self.state.revision_of(&body, event.stream);
            let message =
                Message { from, at: event.at, stream: event.stream, in_batch, text, value, body, revision };
            for check in &mut self.checks {
                let mut context = Context::of_message(&self.state, event, &message, &mut self.verdicts);
                check.message(&message, &mut context);
            }
            self.features.observe(&message);
            self.client_steps.message(&message, &self.state);
            self.state.take(&message);
        }
    }
}
