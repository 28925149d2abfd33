//! Requests in flight: from their start to exactly one response, or to none once they are cancelled.

use std::ops::Deref;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::batches::BatchId;
use super::kept_bytes::outcome_bytes;
use super::{ReplyTo, ServerEngine, read_params};
use crate::engine::report::ReportFindings;
use crate::engine::{
    CallFailure, CallId, CallRequest, Dispatch, DuplicateIds, ExchangeId, FactsChange, HandlerOutcome,
    InputOutcome, Output, Policy, Replay, RequestStateUse, SharedOutput,
};
use crate::jsonrpc::{Notification, ProgressToken, Request, RequestId, RpcError, excerpt};
use crate::model::{LogLevel, ServerResult, SubscribeParams};
use crate::peer::Peer;
use crate::revision::{Lifecycle, Method, downgrade};
use crate::rule;
use crate::time::Timestamp;

/// A request in flight.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) request: Arc<CallRequest>,
    /// The batch that its response belongs to.
    pub(super) batch: Option<BatchId>,
    pub(super) replay: Replay,
    pub(super) round: u32,
    /// Requests to the client that have no response yet.
    pub(super) open_requests: usize,
    /// Other processes may go on with it while it waits, so it has to be claimed before it runs again.
    pub(super) is_parked: bool,
    /// Log messages of this call that the client has seen, and how many the present run has made:
    /// a handler that runs again does not repeat itself.
    pub(super) logs_seen: u32,
    pub(super) logs_made: u32,
    /// The progress that the client has seen.
    pub(super) progress: Option<f64>,
    /// Bytes of the client's responses so far.
    pub(super) response_bytes: usize,
}

impl Call {
    /// The bytes that are kept of what the client has sent.
    fn bytes(&self) -> usize {
        self.request.params.len() + self.response_bytes
    }

    /// Where its response goes.
    pub(super) fn to(&self) -> ReplyTo<'_> {
        ReplyTo { exchange: self.exchange, id: &self.id, batch: self.batch }
    }

    pub(super) fn dispatch(&self, call: CallId, state: Option<RequestStateUse>) -> Dispatch {
        let (request, replay) = (self.request.clone(), self.replay.clone());
        Dispatch { call, request, replay, round: self.round, state }
    }
}

impl Deref for Call {
    type Target = CallRequest;

    fn deref(&self) -> &CallRequest {
        &self.request
    }
}

/// The id in a cancellation, under the protocol's name and under the Language Server Protocol's. Unread, because an id
/// may have more digits than any number.
#[derive(Debug, Deserialize)]
struct Cancelled<'a> {
    #[serde(borrow, rename = "requestId")]
    request_id: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
}

/// The calls in flight. Most sessions have few, and nearly always the newest is the next to end: a list costs less than a
/// table with an index by id, and is bounded by `max_in_flight`.
#[derive(Debug, Default)]
pub(super) struct Calls {
    next: u64,
    /// By our number, which grows.
    open: Vec<(CallId, Call)>,
}

impl Calls {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn shrink(&mut self) {
        self.open.shrink_to_fit();
    }

    fn place(&self, call: CallId) -> Option<usize> {
        self.open.binary_search_by_key(&call, |(number, _)| *number).ok()
    }

    pub(super) fn get(&self, call: CallId) -> Option<&Call> {
        self.open.get(self.place(call)?).map(|(_, call)| call)
    }

    pub(super) fn get_mut(&mut self, call: CallId) -> Option<&mut Call> {
        let place = self.place(call)?;
        self.open.get_mut(place).map(|(_, call)| call)
    }

    /// The bytes that all of them keep. Most sessions have few calls in flight, so counting them costs less than keeping count.
    pub(super) fn bytes(&self) -> usize {
        self.open.iter().map(|(_, call)| call.bytes()).sum()
    }

    /// Keeps a response of the client for the next run of a call; gives the call.
    pub(super) fn add_response(
        &mut self,
        call: CallId,
        key: String,
        outcome: InputOutcome,
    ) -> Option<&mut Call> {
        let call = self.get_mut(call)?;
        call.response_bytes += outcome_bytes(&outcome);
        call.replay.make_mut().responses.insert(key, outcome);
        Some(call)
    }

    pub(super) fn has(&self, id: &RequestId) -> bool {
        self.open.iter().any(|(_, call)| call.id == *id)
    }

    pub(super) fn open(&mut self, call: Call, state: Option<RequestStateUse>) -> Dispatch {
        let number = CallId(self.next);
        self.next += 1;
        let dispatch = call.dispatch(number, state);
        self.open.push((number, call));
        dispatch
    }

    pub(super) fn close(&mut self, number: CallId) -> Option<Call> {
        let place = self.place(number)?;
        Some(self.open.remove(place).1)
    }

    fn with_id(&self, id: &RequestId) -> Vec<CallId> {
        self.numbers(|call| call.id == *id)
    }

    fn on_exchange(&self, exchange: ExchangeId) -> Vec<CallId> {
        self.numbers(|call| call.exchange == exchange)
    }

    fn numbers(&self, wanted: impl Fn(&Call) -> bool) -> Vec<CallId> {
        self.open.iter().filter(|(_, call)| wanted(call)).map(|(number, _)| *number).collect()
    }
}

impl ServerEngine {
    /// Hands a request to its handler.
    #[expect(
        clippy::too_many_arguments,
        reason = "one caller for each lifecycle, which know different halves"
    )]
    pub(super) fn start(
        &mut self,
        now: Timestamp,
        to: &ReplyTo<'_>,
        method: Method,
        request: &Request<'_>,
        peer: &Arc<Peer>,
        progress_token: Option<ProgressToken>,
        log_level: Option<LogLevel>,
    ) -> Result<(), RpcError> {
        self.check_in_flight(request.params.text.map_or(0, str::len))?;
        if matches!(method, Method::Subscribe | Method::Unsubscribe) {
            self.check_subscription(&method, request)?;
        }
        if method.is_list() {
            self.check_cursor(request)?;
        }
        let carried = self.carried(now, &method, peer, request).map_err(|error| {
            self.refuse(&rule::MRTR_06, error, "repeat the request with requestState as it came")
        })?;
        let params = &request.params;
        let request = CallRequest {
            id: to.id.clone(),
            method,
            params: params.text.unwrap_or("{}").into(),
            spans: params.spans(),
            peer: peer.clone(),
            exchange: to.exchange,
            progress_token,
            log_level,
            context: self.context.clone(),
        };
        let call = Call {
            request: Arc::new(request),
            batch: to.batch,
            replay: carried.replay.map(Replay::from).unwrap_or_default(),
            round: carried.round,
            open_requests: 0,
            is_parked: false,
            logs_seen: carried.logs,
            logs_made: 0,
            progress: carried.progress,
            response_bytes: 0,
        };
        let dispatch = self.calls.open(call, carried.state);
        self.outputs.push_back(Output::Run(dispatch));
        Ok(())
    }

    /// Refuses a request whose id is in use: its answer could be taken for that of the first.
    pub(super) fn check_id(&mut self, id: &RequestId) -> Result<(), RpcError> {
        let listening = self.listeners.iter().any(|listener| listener.id == *id);
        if self.calls.has(id) || listening || self.early_requests.iter().any(|early| early.id == *id) {
            let what = format!("id {} is already in flight", excerpt(&id.to_string()));
            let rule = if self.stateless_message { &rule::RPC_04 } else { &rule::RPC_03 };
            self.report(rule, what, "send each request with an id of its own");
            let refused = "a request with this id is already in flight";
            return match self.config.policy.duplicate_ids {
                DuplicateIds::Serve => Ok(()),
                DuplicateIds::Refuse => Err(RpcError::invalid_request(refused)),
                DuplicateIds::RefuseUnlessLenient => {
                    Err(RpcError::invalid_request(format!("{refused}; {}", Policy::LENIENT_SERVES)))
                }
            };
        }
        Ok(())
    }

    /// A cursor that is `null` is read as none, but the client should leave it out.
    fn check_cursor(&mut self, request: &Request<'_>) -> Result<(), RpcError> {
        let params: serde_json::Map<String, serde_json::Value> = read_params(request.params.text)?;
        if params.get("cursor").is_some_and(serde_json::Value::is_null) {
            self.report(
                &rule::PAGE_01,
                "a cursor that is null",
                "leave cursor out to ask for the first page",
            );
        }
        Ok(())
    }

    fn check_subscription(&self, method: &Method, request: &Request<'_>) -> Result<(), RpcError> {
        let params: SubscribeParams = read_params(request.params.text)?;
        if *method == Method::Unsubscribe {
            return Ok(());
        }
        self.check_subscription_room(&params.uri)?;
        self.check_facts_size(|engine| {
            let mut facts = engine.facts()?;
            facts.subscriptions.insert(params.uri);
            Some(facts)
        })
    }

    /// Takes the outcome of a call. One that was cancelled meanwhile is dropped.
    pub fn finish(&mut self, now: Timestamp, call: CallId, outcome: HandlerOutcome) {
        match outcome {
            HandlerOutcome::InputRequired { requests, used, once } => {
                self.update_replay(call, used.as_ref(), once);
                self.require_input(now, call, requests);
            }
            HandlerOutcome::Done(mut result) => {
                let Some(call) = self.calls.close(call) else { return };
                let is_kept = matches!(*result, ServerResult::Empty(_));
                match if is_kept { self.remember_subscription(&call) } else { Ok(()) } {
                    Ok(()) => self.respond(&call.to(), call.peer.rules(), &mut result),
                    Err(error) => self.respond_error(&call.to(), &error),
                }
            }
            HandlerOutcome::Raw(result) => {
                let Some(call) = self.calls.close(call) else { return };
                match self.remember_subscription(&call) {
                    Ok(()) => self.respond_raw(&call.to(), &result),
                    Err(error) => self.respond_error(&call.to(), &error),
                }
            }
            HandlerOutcome::Failed(failure) => self.fail(call, failure),
        }
    }

    pub(super) fn fail(&mut self, call: CallId, failure: CallFailure) {
        let Some(call) = self.calls.close(call) else { return };
        match downgrade::failure(call.peer.rules(), &call.method, failure) {
            Ok(mut result) => self.respond(&call.to(), call.peer.rules(), &mut result),
            Err(error) => self.respond_error(&call.to(), &error),
        }
    }

    /// The same for a call that waits for input: what its handler has kept for the next run is dropped.
    pub(super) fn fail_waiting(&mut self, call: CallId, failure: CallFailure) {
        self.fail(call, failure);
        self.outputs.push_back(Output::Cancel(call));
    }

    /// Keeps the effect of `resources/subscribe` or `resources/unsubscribe`, once its handler has accepted it. Others may have
    /// been accepted meanwhile, so that there is no room any more.
    fn remember_subscription(&mut self, call: &Call) -> Result<(), RpcError> {
        let subscribes = match call.method {
            Method::Subscribe => true,
            Method::Unsubscribe => false,
            _ => return Ok(()),
        };
        let SubscribeParams { uri, .. } = read_params(Some(&call.params))?;
        if subscribes {
            self.check_subscription_room(&uri)?;
            if self.subscriptions.insert(uri.clone()) {
                self.share_change(|| FactsChange::Subscribed(uri));
            }
        } else if self.subscriptions.remove(&uri) {
            self.share_change(|| FactsChange::Unsubscribed(uri));
        }
        Ok(())
    }

    pub(super) fn cancelled(&mut self, notification: &Notification<'_>) {
        match self.cancelled_id(notification, |named| named.request_id) {
            Some(id) => {
                self.cancel_request(&id);
                self.share(SharedOutput::Cancel(id));
            }
            None => {
                let rule = if self.phase.peer().is_some() { &rule::CANC_01 } else { &rule::STDIO_07 };
                self.report(rule, "a cancellation without a request id", "send params.requestId");
            }
        }
    }

    /// `$/cancelRequest`, the cancellation of the Language Server Protocol.
    pub(super) fn lsp_cancel_request(&mut self, notification: &Notification<'_>) {
        if let Some(id) = self.cancelled_id(notification, |named| named.id) {
            self.cancel_request(&id);
            self.share(SharedOutput::Cancel(id));
        }
    }

    /// The id that a cancellation names; none if it is longer than any request can have.
    fn cancelled_id<'a>(
        &self,
        notification: &Notification<'a>,
        member: impl FnOnce(Cancelled<'a>) -> Option<&'a RawValue>,
    ) -> Option<RequestId> {
        let id = member(read_params::<Cancelled<'a>>(notification.params.text).ok()?)?.get();
        self.check_name_size("requestId", id).ok()?;
        RequestId::from_json(id)
    }

    /// Cancels the requests with this id, as the client has asked here or elsewhere. Ids that are unknown or done are
    /// ignored, since messages cross.
    pub fn cancel_request(&mut self, id: &RequestId) {
        for call in self.calls.with_id(id) {
            self.cancel(call, "the request was cancelled");
        }
        let listening = self.remove_listeners(|listener| listener.id == *id);
        let listening = listening.into_iter().map(|listener| listener.exchange);
        let early = self.early_requests.extract_if(.., |early| early.id == *id).map(|early| early.exchange);
        let exchanges: Vec<ExchangeId> = listening.chain(early).collect();
        for exchange in exchanges {
            self.end_exchange_if_idle(exchange);
        }
    }

    /// Ends an exchange on which no response is due any more.
    fn end_exchange_if_idle(&mut self, exchange: ExchangeId) {
        let awaited = !self.calls.on_exchange(exchange).is_empty()
            || self.listeners.iter().any(|listener| listener.exchange == exchange)
            || self.early_requests.iter().any(|early| early.exchange == exchange);
        if !awaited {
            self.outputs.push_back(Output::NoResponse(exchange));
        }
    }

    fn cancel(&mut self, number: CallId, why: &'static str) {
        let Some(call) = self.calls.close(number) else { return };
        self.cancel_server_requests(number, why);
        self.outputs.push_back(Output::Cancel(number));
        if let Some(batch) = call.batch {
            self.flush_batch(batch);
        }
        self.end_exchange_if_idle(call.exchange);
    }

    /// Drops a call that another process goes on with: its client hears of it from there.
    pub fn abandon(&mut self, number: CallId) {
        let Some(call) = self.calls.close(number) else { return };
        self.outputs.push_back(Output::Cancel(number));
        self.end_exchange_if_idle(call.exchange);
    }

    /// Leaves calls that wait and are parked to the other processes of the session, since this one stops. Gives their
    /// exchanges: what is sent there goes on.
    pub fn leave_parked(&mut self, is_parked: impl Fn(CallId) -> bool) -> Vec<ExchangeId> {
        let numbers = self.calls.numbers(|call| call.is_parked && call.open_requests > 0);
        let left = numbers.into_iter().filter(|number| is_parked(*number)).filter_map(|number| {
            self.drop_server_requests(number);
            Some(self.calls.close(number)?.exchange)
        });
        left.collect()
    }

    /// The client has disconnected from an exchange. That cancels its stateless requests, because their responses can no
    /// longer be delivered; those of a session can still be fetched.
    pub fn close_exchange(&mut self, exchange: ExchangeId) {
        for number in self.calls.on_exchange(exchange) {
            let lifecycle = self.peer_of(number).map(|peer| peer.rules().lifecycle);
            if lifecycle == Some(Lifecycle::PerRequest) {
                self.cancel(number, "the connection was closed");
            }
        }
        self.remove_listeners(|listener| listener.exchange == exchange);
    }

    /// Cancels all requests of an exchange whose responses can no longer be delivered, whatever the lifecycle.
    pub fn cancel_exchange(&mut self, exchange: ExchangeId) {
        for number in self.calls.on_exchange(exchange) {
            self.cancel(number, "the response cannot be delivered");
        }
        self.early_requests.retain(|early| early.exchange != exchange);
        self.remove_listeners(|listener| listener.exchange == exchange);
    }

    /// The client sends nothing more: calls that wait for its responses fail.
    pub fn close_input(&mut self) {
        self.input_closed = true;
        for number in self.calls.numbers(|call| call.open_requests > 0) {
            self.cancel_server_requests(number, "the client has closed its input");
            self.fail_waiting(number, input_closed_error().into());
        }
    }

    /// Cancels all requests in flight, without responses.
    pub fn cancel_all(&mut self) {
        let early: Vec<ExchangeId> = self.early_requests.drain(..).map(|early| early.exchange).collect();
        for exchange in early {
            self.end_exchange_if_idle(exchange);
        }
        for number in self.calls.numbers(|_| true) {
            self.cancel(number, "the server is shutting down");
        }
    }
}

/// The error for a call that needs input after the client has closed its own.
pub(super) fn input_closed_error() -> RpcError {
    RpcError::internal("the client has closed the connection and cannot give the input that the call needs")
}
