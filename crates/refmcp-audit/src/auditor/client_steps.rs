//! What a client can do: the situations that a server can bring it into, and what it then did. All of it is seen in what
//! passed, so it holds for any recording; a tour (`refmcp serve --tour`) brings a client into all of them.

use std::collections::{BTreeMap, BTreeSet};

use refmcp_proto::model::keys;
use refmcp_proto::revision::{Method, NotificationMethod};
use serde_json::Value;

use super::client_step::{ClientStep, StepOutcome};
use super::conversation::{Request, State, Stream};
use super::message::{Body, Message};
use crate::recording::{Event, EventKind};
use crate::verdict::Role;

/// The situations that a client was in, and what it did.
#[derive(Debug, Clone, Default)]
pub struct ClientSteps {
    seen: BTreeMap<ClientStep, Seen>,
    /// Steps whose capability the client does not declare.
    undeclared: BTreeSet<ClientStep>,
    /// Input requests by their keys: the client answers them with a later request.
    asked: Vec<(String, ClientStep)>,
    /// Steps after which a client only has to go on.
    goes_on: BTreeSet<ClientStep>,
    /// A call has told of its progress.
    progressed: bool,
    /// The revision that `initialize` requests.
    requested: Option<String>,
    /// When a session had expired first, and when one was opened last.
    expired_at: Option<u64>,
    initialized_at: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    done: u64,
    declined: u64,
}

/// Input requests that are remembered, and bytes of their keys.
const MAX_ASKED: usize = 64;

/// Milliseconds after which an answer is late.
const LATE: u64 = 5_000;

impl ClientSteps {
    /// What the client did in a situation.
    pub fn outcome(&self, step: ClientStep) -> StepOutcome {
        match self.seen.get(&step) {
            Some(seen) if seen.done > 0 => StepOutcome::Done,
            Some(seen) if seen.declined > 0 => StepOutcome::Declined,
            Some(_) => StepOutcome::Ignored,
            None if self.undeclared.contains(&step) => StepOutcome::NotDeclared,
            None => StepOutcome::NotReached,
        }
    }

    /// How often the client did what is expected, and how often it said no.
    pub fn counts(&self, step: ClientStep) -> (u64, u64) {
        self.seen.get(&step).map_or((0, 0), |seen| (seen.done, seen.declined))
    }

    /// Adds what was seen in another conversation with the same client.
    pub fn merge(&mut self, other: &Self) {
        for (step, seen) in &other.seen {
            let known = self.seen.entry(*step).or_default();
            known.done += seen.done;
            known.declined += seen.declined;
        }
        self.undeclared.extend(&other.undeclared);
        self.expired_at = [self.expired_at, other.expired_at].into_iter().flatten().min();
        self.initialized_at = self.initialized_at.max(other.initialized_at);
        self.check_reopened();
    }

    /// The same, and what the client does not declare.
    pub(super) fn with_capabilities(&self, state: &State) -> Self {
        let mut steps = self.clone();
        let capabilities = &state.facts(Role::Client).capabilities;
        if capabilities.is_object() {
            steps
                .undeclared
                .extend(ClientStep::ALL.into_iter().filter(|step| !step.is_declared(capabilities)));
        }
        steps
    }

    /// Takes an event that is no message; the state is as it was before.
    pub(super) fn event(&mut self, event: &Event, state: &State) {
        match &event.kind {
            EventKind::Response { status: 200, .. } => {
                let stream = state.stream(event.stream);
                if stream.is_some_and(|stream| stream.header("last-event-id").is_some()) {
                    self.done_if_reached(ClientStep::Cut);
                }
            }
            // A request of a session that was never open here says nothing of the client.
            EventKind::Response { status: 404, .. } if !state.is_stateless() => {
                let stream = state.stream(event.stream);
                let is_of_session =
                    |it: &Stream| it.method != "DELETE" && it.header("mcp-session-id").is_some();
                if stream.is_some_and(is_of_session) {
                    self.reach(ClientStep::Expiry);
                    self.expired_at.get_or_insert(event.at);
                }
            }
            EventKind::Ended { direction } => {
                let stream = state.stream(event.stream);
                // A request that was cancelled gets no result.
                let waits = state
                    .unanswered(Role::Client)
                    .any(|(_, request)| request.stream == event.stream && !request.cancelled);
                if stream.is_some_and(|it| it.method == "POST" && it.requests > it.responses && it.is_sse()) {
                    match (state.sender(*direction), state.is_stateless()) {
                        (Role::Server, false) if waits => self.reach(ClientStep::Cut),
                        // Closing the stream is how a request without a session is cancelled.
                        (Role::Client, true) => self.done(ClientStep::Cancel),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    /// Takes a message; the state is as it was before.
    pub(super) fn message(&mut self, message: &Message<'_>, state: &State) {
        if message.from == Role::Client {
            for step in std::mem::take(&mut self.goes_on) {
                self.done(step);
            }
        }
        match (message.from, &message.body) {
            (Role::Client, Body::Request { method, params, .. }) => {
                self.client_request(message.at, method, params);
            }
            (Role::Client, Body::Notification { method, params }) => {
                self.client_notification(method, params, state);
            }
            (Role::Client, Body::Response { request: Some(request), result, .. }) => {
                let Some(step) = ClientStep::of_request(&request.method, &request.params) else { return };
                match result {
                    Ok(result) => self.answered(step, result),
                    Err(_) => self.declined(step),
                }
            }
            (Role::Server, Body::Request { method, params, .. }) => {
                ClientStep::of_request(method, params).into_iter().for_each(|step| self.reach(step));
            }
            (Role::Server, Body::Notification { method, .. }) => self.server_notification(method),
            (Role::Server, Body::Response { request: Some(request), result, .. }) => match result {
                Ok(result) => self.server_result(message.at, request, result),
                Err(_) if request.method == Method::CallTool.name() => {
                    self.expect_to_go_on(ClientStep::ProtocolError);
                }
                Err(_) => {}
            },
            (_, Body::Response { request: None, .. }) => {}
        }
    }

    fn client_request(&mut self, at: u64, method: &str, params: &Value) {
        let meta = &params["_meta"];
        if !params["cursor"].is_null() {
            self.done(ClientStep::Pages);
        } else if let Some(step) = ClientStep::of_list(method) {
            self.done_if_reached(step);
        }
        if !meta[keys::LOG_LEVEL].is_null() {
            self.done(ClientStep::Logs);
        }
        match Method::known(method) {
            Some(Method::CallTool) => match meta[keys::PROGRESS_TOKEN].is_null() {
                true => self.reach(ClientStep::Progress),
                false => self.done(ClientStep::Progress),
            },
            Some(Method::ReadResource) => self.done_if_reached(ClientStep::ResourceUpdate),
            Some(Method::SetLevel) => self.done(ClientStep::Logs),
            Some(Method::Initialize) => {
                self.requested = params["protocolVersion"].as_str().map(str::to_owned);
                self.initialized_at = Some(at);
                self.check_reopened();
            }
            _ => {}
        }
        let answers = params["inputResponses"].as_object();
        for (key, answer) in answers.into_iter().flatten() {
            if let Some(at) = self.asked.iter().position(|(asked, _)| asked == key) {
                let (_, step) = self.asked.swap_remove(at);
                self.answered(step, answer);
            }
        }
    }

    fn client_notification(&mut self, method: &str, params: &Value, state: &State) {
        match NotificationMethod::known(method) {
            Some(NotificationMethod::Initialized) => self.done_if_reached(ClientStep::VersionFallback),
            Some(NotificationMethod::RootsListChanged) => self.done(ClientStep::RootsChange),
            Some(NotificationMethod::Cancelled) => {
                let is_call = |request: &Request| request.method == Method::CallTool.name();
                if state.request(Role::Client, None, &params["requestId"]).is_some_and(is_call) {
                    self.done(ClientStep::Cancel);
                }
            }
            _ => {}
        }
    }

    fn server_notification(&mut self, method: &str) {
        let step = match NotificationMethod::known(method) {
            Some(NotificationMethod::Log) => ClientStep::Logs,
            Some(NotificationMethod::ToolsListChanged) => ClientStep::ToolListChange,
            Some(NotificationMethod::PromptsListChanged) => ClientStep::PromptListChange,
            Some(NotificationMethod::ResourcesListChanged) => ClientStep::ResourceListChange,
            Some(NotificationMethod::ResourceUpdated) => ClientStep::ResourceUpdate,
            Some(NotificationMethod::Progress) => {
                self.progressed = true;
                return;
            }
            _ => return,
        };
        self.reach(step);
    }

    fn server_result(&mut self, at: u64, request: &Request, result: &Value) {
        if result["nextCursor"].is_string() {
            self.reach(ClientStep::Pages);
        }
        let requests = result["inputRequests"].as_object();
        for (key, asked) in requests.into_iter().flatten() {
            let method = asked["method"].as_str().unwrap_or_default();
            let Some(step) = ClientStep::of_request(method, &asked["params"]) else { continue };
            self.reach(step);
            self.asked.retain(|(known, _)| known != key);
            if self.asked.len() < MAX_ASKED && key.len() <= MAX_ASKED {
                self.asked.push((key.clone(), step));
            }
        }
        match Method::known(&request.method) {
            Some(Method::Initialize) => {
                let version = result["protocolVersion"].as_str();
                if self
                    .requested
                    .as_deref()
                    .is_some_and(|requested| version.is_some_and(|it| it != requested))
                {
                    self.reach(ClientStep::VersionFallback);
                }
            }
            Some(Method::CallTool) => {
                let blocks = result["content"].as_array();
                if blocks.into_iter().flatten().any(|block| block["type"] != "text") {
                    self.expect_to_go_on(ClientStep::Content);
                }
                if !result["structuredContent"].is_null() {
                    self.expect_to_go_on(ClientStep::Structured);
                }
                if result["isError"] == true {
                    self.expect_to_go_on(ClientStep::ToolError);
                }
                if self.progressed && at.saturating_sub(request.at) >= LATE {
                    self.expect_to_go_on(ClientStep::Slow);
                }
            }
            _ => {}
        }
    }

    /// The client has answered a request.
    fn answered(&mut self, step: ClientStep, result: &Value) {
        let is_elicitation = matches!(step, ClientStep::ElicitForm | ClientStep::ElicitUrl);
        if is_elicitation && result["action"] != "accept" {
            self.declined(step);
        } else {
            self.done(step);
        }
    }

    /// A session that was opened after another had expired.
    fn check_reopened(&mut self) {
        if self.expired_at.zip(self.initialized_at).is_some_and(|(expired, opened)| opened >= expired) {
            self.seen.entry(ClientStep::Expiry).or_default().done = 1;
        }
    }

    fn reach(&mut self, step: ClientStep) {
        self.seen.entry(step).or_default();
    }

    fn expect_to_go_on(&mut self, step: ClientStep) {
        self.reach(step);
        self.goes_on.insert(step);
    }

    fn done(&mut self, step: ClientStep) {
        self.seen.entry(step).or_default().done += 1;
    }

    fn done_if_reached(&mut self, step: ClientStep) {
        if let Some(seen) = self.seen.get_mut(&step) {
            seen.done += 1;
        }
    }

    fn declined(&mut self, step: ClientStep) {
        self.seen.entry(step).or_default().declined += 1;
    }
}
