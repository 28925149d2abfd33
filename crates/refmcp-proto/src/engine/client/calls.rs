//! Calls: when requests are sent, their deadlines and input rounds, and what ends them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::config::{CallOptions, InputHandling};
use super::handshake::Phase;
use super::io::{
    CallError, CallResult, ClientMessage, ClientMessageKind, ClientOutput, ServerRequest, ServerRequestId,
};
use super::server_requests::PendingRequest;
use super::tasks::FollowedTask;
use super::{ClientEngine, encode_request, exchange_of};
use crate::engine::report::ReportFindings;
use crate::engine::{CallId, ExchangeId};
use crate::finding::Finding;
use crate::jsonrpc::{Response, ResultMembers, RpcError, excerpt, without_place};
use crate::model::{InputRequiredResult, ResultType};
use crate::revision::{Lifecycle, Method, Revision};
use crate::rule;
use crate::time::Timestamp;

/// A request without a response.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) method: Arc<str>,
    name: Option<Arc<str>>,
    params: Box<str>,
    pub(super) options: CallOptions,
    /// The message whose response it waits for; none while it waits for the connection, for the host or for its task.
    pub(super) exchange: Option<ExchangeId>,
    pub(super) started: Timestamp,
    pub(super) idle_by: Timestamp,
    pub(super) total_by: Timestamp,
    /// The last progress of the server.
    pub(super) progress: Option<f64>,
    rounds: u32,
    input: Option<CollectedInput>,
    /// Whether it stays open until one side ends it, as `subscriptions/listen` does.
    pub(super) endless: bool,
    /// The task that it has become.
    pub(super) task: Option<Box<FollowedTask>>,
}

impl Call {
    /// The message whose response it waits for; none where that may take forever.
    pub(super) fn awaited(&self) -> Option<ExchangeId> {
        self.exchange.filter(|_| !self.endless)
    }
}

/// Input that a call needs before it is repeated.
#[derive(Debug)]
struct CollectedInput {
    missing: BTreeMap<ServerRequestId, String>,
    responses: BTreeMap<String, Value>,
    state: Option<String>,
}

impl ClientEngine {
    /// Makes a request; `params` is the text of an object, `name` the tool, prompt or resource that it names, if any. It is
    /// sent at once, or as soon as the connection is open. Members that the engine adds, such as `_meta`, are not in `params`.
    pub fn call(
        &mut self,
        now: Timestamp,
        method: Arc<str>,
        name: Option<Arc<str>>,
        params: Box<str>,
        options: CallOptions,
    ) -> CallId {
        let id = self.insert_call(now, method, name, params, options);
        match &self.phase {
            Phase::Open(_) => self.send_first(now, id, ExchangeId(id.0)),
            Phase::Closed(why) => {
                let why = CallError::NotOpen(why.clone());
                self.finish(id, Err(why));
            }
            Phase::New | Phase::Opening(_) => self.waiting.push(id),
        }
        id
    }

    /// A call that nothing has been sent for.
    pub(super) fn insert_call(
        &mut self,
        now: Timestamp,
        method: Arc<str>,
        name: Option<Arc<str>>,
        params: Box<str>,
        options: CallOptions,
    ) -> CallId {
        let id = CallId(self.next_exchange().0);
        let endless = Method::known(&method) == Some(Method::Listen);
        let (idle_by, total_by) = (now + options.idle, now + options.total);
        let call = Call {
            method,
            name,
            params,
            options,
            exchange: None,
            started: now,
            idle_by,
            total_by,
            progress: None,
            rounds: 0,
            input: None,
            endless,
            task: None,
        };
        self.calls.insert(id, call);
        self.wake_at(idle_by.min(total_by));
        id
    }

    /// Cancels a call; the server is notified.
    pub fn cancel(&mut self, now: Timestamp, call: CallId, reason: &str) {
        self.stop(now, call, reason, CallError::Cancelled);
    }

    pub(super) fn stop(&mut self, now: Timestamp, call: CallId, reason: &str, error: CallError) {
        let exchange = self.calls.get(&call).and_then(|call| call.exchange);
        if let Some(exchange) = exchange {
            self.send_cancel(exchange, reason);
        }
        self.cancel_client_tasks_of(now, call);
        self.finish(call, Err(error));
    }

    /// Sends a call that has waited for the connection.
    pub(super) fn send_call(&mut self, now: Timestamp, id: CallId) {
        self.send_first(now, id, ExchangeId(id.0));
    }

    fn send_first(&mut self, now: Timestamp, id: CallId, exchange: ExchangeId) {
        let Phase::Open(server) = &self.phase else { return };
        let revision = server.revision;
        let Some(call) = self.calls.get(&id) else { return };
        let unknown = !call.options.unchecked
            && Method::known(&call.method).is_some_and(|method| !method.exists_in(revision.rules()));
        if unknown {
            let error =
                CallError::NotInRevision { method: call.method.to_string(), revision: revision.as_str() };
            return self.finish(id, Err(error));
        }
        self.send_round(now, id, exchange, revision);
    }

    fn send_round(&mut self, now: Timestamp, id: CallId, exchange: ExchangeId, revision: Revision) {
        let takes_tasks = self.makes_tasks();
        let Some(call) = self.calls.get_mut(&id) else { return };
        let rules = revision.rules();
        let input = call.input.take();
        let request = encode_request::RequestDraft {
            id: exchange.0,
            method: &call.method,
            params: &call.params,
            options: &call.options,
            responses: input.as_ref().map(|input| &input.responses).filter(|responses| !responses.is_empty()),
            state: input.as_ref().and_then(|input| input.state.as_deref()),
            task: call.options.task.requested.as_ref().filter(|_| takes_tasks),
        };
        let mut json = Vec::with_capacity(call.params.len() + self.fixed_meta.len() + 96);
        request.encode_request(&mut json, rules, &self.fixed_meta);
        call.exchange = Some(exchange);
        call.idle_by = now + call.options.idle;
        let kind = ClientMessageKind::Request {
            method: call.method.clone(),
            name: call.name.clone(),
            param_headers: call.options.param_headers.clone(),
        };
        self.outputs.push_back(ClientOutput::Send(ClientMessage {
            exchange,
            kind,
            json,
            rules: Some(rules),
        }));
    }

    /// A response has come.
    pub(super) fn response(&mut self, now: Timestamp, from: Option<ExchangeId>, response: Response<'_>) {
        let responded = match &response.id {
            Some(id) => exchange_of(id),
            // The server could not read a request: the exchange tells which.
            None => from.or_else(|| self.only_waiting()),
        };
        let Some(exchange) = responded.filter(|exchange| exchange.0 <= self.last_number) else {
            let id = response.id.as_ref().map_or_else(|| "null".to_owned(), ToString::to_string);
            return self.unknown_id(now, &id);
        };
        if self.attempt_response(now, exchange, &response.result) {
            return;
        }
        // A response to a request that is over comes too late, which breaks no rule.
        let Some(id) = self.call_of(exchange) else { return };
        if from.is_some_and(|from| from != exchange) {
            let rule = if self.is_stateless() { &rule::MHTTP_04 } else { &rule::HTTP_14 };
            let expected = "send it on the stream of its own request";
            self.report_if_ruled(Finding::new(rule, "an answer on the stream of another request", expected));
        }
        self.reopened = false;
        if self.task_mut(id).is_some() {
            return self.task_response(now, id, exchange, response.result);
        }
        match response.result {
            Err(error) => self.finish(id, Err(CallError::Rpc(error))),
            Ok(text) => match self.result_type(&response.members) {
                ResultType::Complete if self.is_created_task(id, text) => self.task_created(now, id, text),
                ResultType::Task if self.takes_task(id) => self.task_created(now, id, text),
                ResultType::Complete => {
                    self.check_tool_result(id, &response.members);
                    self.finish(id, Ok(CallResult::Complete(text.into())));
                }
                ResultType::InputRequired => self.input_required(now, id, text),
                other @ (ResultType::Task | ResultType::Other(_)) => {
                    let name = excerpt(other.as_str());
                    let what = format!("a result of type {name}, which this client does not know");
                    self.report(&rule::RPC_13, what.clone(), "send complete or input_required");
                    self.finish(id, Err(CallError::Protocol(what)));
                }
            },
        }
    }

    /// Reports a tool result that has structured content alone: it is taken, although every revision demands `content`.
    fn check_tool_result(&mut self, id: CallId, members: &ResultMembers<'_>) {
        let is_tool = self.calls.get(&id).is_some_and(|call| *call.method == *Method::CallTool.name());
        if is_tool && members.structured_content && !members.content {
            let what = "a tool result with structuredContent and without content, which it must have";
            self.report_if_ruled(Finding::new(&rule::TOOL_07, what, "repeat the data as text in content"));
        }
    }

    /// The type of a result; one without a type is complete.
    fn result_type(&self, members: &ResultMembers<'_>) -> ResultType {
        let stamped = matches!(&self.phase, Phase::Open(server) if server.rules().stamped_results);
        match members.result_type.filter(|text| stamped && *text != r#""complete""#) {
            Some(text) => serde_json::from_str(text).unwrap_or(ResultType::Complete),
            None => ResultType::Complete,
        }
    }

    /// The server requires input.
    fn input_required(&mut self, now: Timestamp, id: CallId, text: &str) {
        let result: InputRequiredResult = match serde_json::from_str(text) {
            Ok(result) => result,
            Err(error) => {
                let what = format!("its request for input: {}", without_place(&error));
                let expected = "send input requests of elicitation, sampling or roots";
                self.report(&rule::MRTR_03, what.clone(), expected);
                return self.finish(id, Err(CallError::Protocol(what)));
            }
        };
        let Some(call) = self.calls.get_mut(&id) else { return };
        if call.options.input == InputHandling::Manual {
            return self.finish(id, Ok(CallResult::InputRequired(Box::new(result))));
        }
        call.rounds += 1;
        if call.rounds > self.config.max_rounds {
            let rounds = self.config.max_rounds;
            return self.finish(id, Err(CallError::TooManyRounds { rounds }));
        }
        call.exchange = None;
        if let Some(params) = encode_request::without_input(&call.params) {
            call.params = params;
        }
        let requests = result.input_requests.unwrap_or_default();
        if requests.is_empty() && result.request_state.is_none() {
            let what = "it asks for input and does not say which".to_owned();
            self.report(&rule::MRTR_02, what.clone(), "send inputRequests or requestState");
            return self.finish(id, Err(CallError::Protocol(what)));
        }
        if requests.len() + self.server_requests.len() > self.config.max_server_requests {
            let what = format!("it asks more than {} questions at once", self.config.max_server_requests);
            return self.finish(id, Err(CallError::Protocol(what)));
        }
        if let Some(undeclared) = requests.values().find(|request| !self.supports(request)) {
            let what = format!("it asks for {}, which we did not offer", undeclared.method());
            self.report(&rule::MRTR_04, what.clone(), "ask for what the request's capabilities declare");
            return self.finish(id, Err(CallError::Protocol(what)));
        }
        let mut missing = BTreeMap::new();
        for (key, request) in requests {
            let number = self.next_server_request();
            missing.insert(number, key);
            self.server_requests.insert(number, PendingRequest::Input(id));
            self.outputs.push_back(ClientOutput::Request(ServerRequest {
                id: number,
                call: Some(id),
                request,
            }));
        }
        let collected = CollectedInput { missing, responses: BTreeMap::new(), state: result.request_state };
        if let Some(call) = self.calls.get_mut(&id) {
            call.input = Some(collected);
        }
        self.repeat_when_complete(now, id);
    }

    /// The host has responded to an input request of a call.
    pub(super) fn input_response(
        &mut self,
        now: Timestamp,
        id: CallId,
        number: ServerRequestId,
        response: Result<Value, RpcError>,
    ) {
        let Some(input) = self.calls.get_mut(&id).and_then(|call| call.input.as_mut()) else { return };
        let Some(key) = input.missing.remove(&number) else { return };
        match response {
            Ok(response) => {
                input.responses.insert(key, response);
                self.repeat_when_complete(now, id);
            }
            // An input response cannot be an error, so the call ends here and the server is not notified.
            Err(error) => self.finish(id, Err(CallError::Refused(error))),
        }
    }

    fn repeat_when_complete(&mut self, now: Timestamp, id: CallId) {
        let Phase::Open(server) = &self.phase else { return };
        let revision = server.revision;
        let complete = self.calls.get(&id).and_then(|call| call.input.as_ref());
        if complete.is_some_and(|input| input.missing.is_empty()) {
            let exchange = self.next_exchange();
            self.later_rounds.insert(exchange, id);
            self.send_round(now, id, exchange, revision);
            self.wake_for(id);
        }
    }

    pub(super) fn call_mut(&mut self, id: CallId) -> Option<&mut Call> {
        self.calls.get_mut(&id)
    }

    /// The call that waits for an exchange.
    pub(super) fn call_of(&self, exchange: ExchangeId) -> Option<CallId> {
        let id = self.later_rounds.get(&exchange).copied().unwrap_or(CallId(exchange.0));
        let has = |call: &&Call| {
            call.exchange == Some(exchange) || call.task.as_ref().is_some_and(|task| task.has(exchange))
        };
        self.calls.get(&id).filter(has).map(|_| id)
    }

    /// Ends a call, and cancels the server requests that belong to it.
    pub(super) fn finish(&mut self, id: CallId, outcome: Result<CallResult, CallError>) {
        self.abandon_task(id);
        let Some(call) = self.calls.remove(&id) else { return };
        if call.rounds > 0 || call.task.is_some() {
            self.later_rounds.retain(|_, of| *of != id);
        }
        if !self.server_requests.is_empty() {
            self.cancel_requests_of(id);
        }
        self.waiting.retain(|waiting| *waiting != id);
        self.outputs.push_back(ClientOutput::Done(id, outcome));
    }

    /// Ends the calls in flight, but not those whose tasks are still followed.
    pub(super) fn fail_calls(&mut self, error: &CallError, with_tasks: bool) {
        let ends = |call: &Call| with_tasks || call.task.is_none();
        let mut all: Vec<CallId> =
            self.calls.iter().filter(|(_, call)| ends(call)).map(|(id, _)| *id).collect();
        all.retain(|id| !self.waiting.contains(id));
        all.sort_unstable();
        for id in all {
            self.finish(id, Err(error.clone()));
        }
    }

    /// Whether the negotiated revision has no sessions.
    pub(super) fn is_stateless(&self) -> bool {
        matches!(&self.phase, Phase::Open(server) if server.rules().lifecycle == Lifecycle::PerRequest)
    }
}
