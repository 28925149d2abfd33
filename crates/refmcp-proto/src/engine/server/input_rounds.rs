//! Input rounds: what a handler needs from the client (`elicitation/create`, `sampling/createMessage`, `roots/list`), and
//! running it again with the responses.
//!
//! A handler never waits. It runs until it needs input that it does not have, and ends with its input requests. Where the
//! revision has server requests, each becomes one, and the handler runs again once all have a response. Otherwise the call
//! ends with an `input_required` result, and the client repeats it with the responses.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::ServerEngine;
use super::calls::input_closed_error;
use super::client_tasks::{ClientTask, TaskRequests, keep_task_wish};
use super::detached::ParkedCall;
use crate::engine::report::ReportFindings;
use crate::engine::{
    CallFailure, CallId, EngineConfig, InputOutcome, KeyedInputRequest, MessageKind, MessageTarget, Output,
    ReplayState, SharedOutput, WaitingCall,
};
use crate::finding::Finding;
use crate::jsonrpc::{RequestId, Response, RpcError, encode, excerpt};
use crate::model::{CancelledParams, InputRequest, InputRequiredResult};
use crate::peer::Peer;
use crate::revision::{InputMode, Method, NotificationMethod, downgrade};
use crate::rule;
use crate::time::Timestamp;

/// The open requests to the client.
///
/// An id is the epoch of the engine and a count: engines of one session never make the same, and an id is exact where
/// numbers are floating point.
#[derive(Debug, Default)]
pub(super) struct ServerRequests {
    epoch: u32,
    next: i64,
    /// Made with the first request: most clients are never asked.
    open: Option<Box<OpenRequests>>,
}

#[derive(Debug, Default)]
struct OpenRequests {
    by_number: BTreeMap<i64, OpenRequest>,
    by_deadline: BTreeSet<(Timestamp, i64)>,
    tasks: TaskRequests,
}

#[derive(Debug)]
pub(super) struct OpenRequest {
    /// The call that waits for the response, and its key there; a request of the session has none.
    pub(super) waiting: Option<(CallId, String)>,
    pub(super) until: Timestamp,
    /// The task of the client that it is to be.
    pub(super) task: Option<ClientTask>,
    /// When something is to be done for it, as the table by deadlines has it.
    due: Timestamp,
}

impl OpenRequest {
    pub(super) fn new(
        waiting: Option<(CallId, String)>,
        until: Timestamp,
        request: Option<&InputRequest>,
    ) -> Self {
        let task = request.filter(|request| request.asks_for_task()).map(|_| ClientTask::Requested);
        Self { waiting, until, task, due: until }
    }
}

/// Bits of the count in an id.
const COUNT_BITS: u32 = 32;

/// The highest epoch: its ids are the last below 2^53.
pub(super) const MAX_EPOCH: u32 = (1 << (53 - COUNT_BITS)) - 1;

impl ServerRequests {
    /// Those of the engine of this epoch.
    pub(super) fn of_epoch(epoch: u32) -> Self {
        Self { epoch, next: i64::from(epoch) << COUNT_BITS, ..Self::default() }
    }

    /// Whether an id was given out here.
    fn has_made(&self, number: i64) -> bool {
        (i64::from(self.epoch) << COUNT_BITS) < number && number <= self.next
    }

    /// An id for a request to the client.
    pub(super) fn new_id(&mut self) -> RequestId {
        self.new_number().1
    }

    /// The same as a number, too.
    pub(super) fn new_number(&mut self) -> (i64, RequestId) {
        self.next += 1;
        (self.next, RequestId::Integer(self.next))
    }

    /// The next so many ids.
    fn next_ids(&self, count: usize) -> impl Iterator<Item = RequestId> + use<> {
        (self.next + 1..).take(count).map(RequestId::Integer)
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.first().map(|(until, _)| until)
    }

    /// What is open about tasks of the client.
    pub(super) fn tasks(&mut self) -> &mut TaskRequests {
        &mut self.open.get_or_insert_default().tasks
    }

    /// The open request of this number.
    pub(super) fn get_mut(&mut self, number: i64) -> Option<&mut OpenRequest> {
        self.open.as_mut()?.by_number.get_mut(&number)
    }

    /// The number of an open request.
    pub(super) fn find(&self, is_it: impl Fn(&OpenRequest) -> bool) -> Option<i64> {
        let mut open = self.open.iter().flat_map(|open| &open.by_number);
        open.find(|(_, open)| is_it(open)).map(|(number, _)| *number)
    }

    /// Sees to it that a request is looked at when something is to be done for its task.
    pub(super) fn reschedule(&mut self, number: i64) {
        let Some(open) = self.open.as_mut() else { return };
        let Some(request) = open.by_number.get_mut(&number) else { return };
        let due = request.task.as_ref().map_or(request.until, |task| task.due(request.until));
        open.by_deadline.remove(&(request.due, number));
        open.by_deadline.insert((due, number));
        request.due = due;
    }

    /// The request that is due first, and when.
    fn first(&self) -> Option<(Timestamp, i64)> {
        self.open.as_ref()?.by_deadline.first().copied()
    }

    pub(super) fn open(&mut self, input: OpenRequest) -> RequestId {
        let id = self.new_id();
        let open = self.open.get_or_insert_default();
        open.by_deadline.insert((input.due, self.next));
        open.by_number.insert(self.next, input);
        id
    }

    pub(super) fn close(&mut self, number: i64) -> Option<OpenRequest> {
        let open = self.open.as_mut()?;
        let input = open.by_number.remove(&number)?;
        open.by_deadline.remove(&(input.due, number));
        Some(input)
    }

    fn of(&self, call: CallId) -> Vec<i64> {
        let open = self.open.iter().flat_map(|open| &open.by_number);
        let is_of = |open: &OpenRequest| open.waiting.as_ref().is_some_and(|(waiting, _)| *waiting == call);
        open.filter(|(_, open)| is_of(open)).map(|(number, _)| *number).collect()
    }

    /// How many requests belong to no call.
    pub(super) fn of_session(&self) -> usize {
        let open = self.open.iter().flat_map(|open| open.by_number.values());
        open.filter(|open| open.waiting.is_none()).count()
    }
}

impl ServerEngine {
    /// Keeps the responses that the handler has used, and its values for the next run.
    pub(super) fn update_replay(
        &mut self,
        number: CallId,
        used: Option<&BTreeSet<String>>,
        once: BTreeMap<String, Value>,
    ) {
        if let Some(call) = self.calls.get_mut(number) {
            call.replay.make_mut().update(used, once);
        }
    }

    /// A handler needs input before it goes on.
    pub(super) fn require_input(&mut self, now: Timestamp, number: CallId, requests: Vec<KeyedInputRequest>) {
        let Some(call) = self.calls.get_mut(number) else { return };
        let (request, round) = (call.request.clone(), call.round);
        let (peer, replay) = (&request.peer, call.replay.make_mut());
        match check_requests(&self.config, &request.method, peer, round, replay, requests) {
            Err(failure) => self.fail_waiting(number, failure),
            Ok(requests) => match peer.rules().input_mode {
                InputMode::ServerRequest => self.send_server_requests(now, number, requests),
                InputMode::InputRequired => self.respond_input_required(now, number, requests),
            },
        }
    }

    fn send_server_requests(
        &mut self,
        now: Timestamp,
        number: CallId,
        requests: Vec<(String, InputRequest)>,
    ) {
        if self.input_closed {
            return self.fail_waiting(number, input_closed_error().into());
        }
        if !self.is_ready() {
            let error =
                RpcError::invalid_request("notifications/initialized has to come before questions can");
            return self.fail_waiting(number, error.into());
        }
        let Some(call) = self.calls.get_mut(number) else { return };
        call.open_requests = requests.len();
        // A batch is answered as a whole, and what is forwarded is under way at another server: both stay here.
        // So do the tasks of a client: what is known of them is this engine's.
        let has_task = requests.iter().any(|(_, request)| request.asks_for_task());
        call.is_parked =
            self.config.shares_sessions() && !self.config.forwards && call.batch.is_none() && !has_task;
        let to = MessageTarget::Exchange(call.exchange);
        let within = self.config.timeouts.client_response;
        if self.config.shares_sessions() {
            let ids: Vec<RequestId> = self.server_requests.next_ids(requests.len()).collect();
            let parked = || Box::new(ParkedCall::new(call, &requests, ids.iter().cloned()));
            let call = WaitingCall {
                number,
                exchange: call.exchange,
                id: call.id.clone(),
                parked: call.is_parked.then(parked),
            };
            self.share(SharedOutput::Expect { ids, within, call: Some(call) });
        }
        for (key, mut request) in requests {
            let open = OpenRequest::new(Some((number, key)), now + within, Some(&request));
            let id = self.server_requests.open(open);
            downgrade::set_elicitation_id(&mut request, &id);
            self.send(to, MessageKind::Request, |json| {
                encode::request(json, &id, request.method(), &request.params())
            });
        }
    }

    fn respond_input_required(
        &mut self,
        now: Timestamp,
        number: CallId,
        requests: Vec<(String, InputRequest)>,
    ) {
        let Some(call) = self.calls.get(number) else { return };
        match self.seal_state(now, call) {
            Err(failure) => self.fail_waiting(number, failure),
            Ok(sealed) => {
                let Some(call) = self.calls.close(number) else { return };
                let result = InputRequiredResult::new(requests.into_iter().collect()).request_state(sealed);
                self.respond(&call.to(), call.peer.rules(), &mut result.into());
            }
        }
    }

    /// Takes a response of the client.
    pub(super) fn response(&mut self, now: Timestamp, response: &Response<'_>) {
        let Some(id) = &response.id else {
            let expected = "send the id of the request that it answers";
            return self.report(&rule::RPC_05, "an error without an id", expected);
        };
        let outcome = match &response.result {
            Ok(text) => serde_json::from_str(text).map_or_else(
                |error| InputOutcome::Error(RpcError::invalid_params(format!("unreadable answer: {error}"))),
                InputOutcome::Response,
            ),
            Err(error) => InputOutcome::Error(error.clone()),
        };
        if self.config.shares_sessions() {
            self.share(SharedOutput::Response { id: id.clone(), outcome });
        } else {
            self.deliver(now, id, outcome);
        }
    }

    /// Takes the response to a request of this engine, wherever it arrived.
    pub fn deliver(&mut self, now: Timestamp, id: &RequestId, outcome: InputOutcome) {
        if self.keepalive.take_response(id) {
            return;
        }
        match *id {
            RequestId::Integer(number) if self.server_requests.has_made(number) => {
                self.delivered(now, number, outcome);
            }
            _ => self.report_unknown_response(id),
        }
    }

    fn delivered(&mut self, now: Timestamp, number: i64, outcome: InputOutcome) {
        if self.follow_up_answered(now, number, &outcome) || self.given_up_answered(number, &outcome) {
            return;
        }
        // Otherwise it is late, or the second one: messages cross, which breaks no rule.
        let Some(open) = self.server_requests.get_mut(number) else { return };
        match open.task {
            Some(ClientTask::Requested) => self.task_answered(now, number, outcome),
            Some(ClientTask::Created(_)) => {}
            None => {
                if let Some(open) = self.server_requests.close(number) {
                    self.report_unwanted_task(&outcome);
                    self.responded(number, open, outcome);
                }
            }
        }
    }

    /// Reports a task in place of a result that was to be none.
    fn report_unwanted_task(&mut self, outcome: &InputOutcome) {
        let InputOutcome::Response(answer) = outcome else { return };
        if answer.get("task").is_some_and(Value::is_object) {
            let what = "a task for a request that asked for none";
            self.report_if_ruled(Finding::new(&rule::TSK_01, what, "answer with the result of the request"));
        }
    }

    /// The epoch of the engine that made a request to the client, if an engine did.
    pub fn epoch_of_request(id: &RequestId) -> Option<u32> {
        match id {
            RequestId::Integer(number) => u32::try_from(*number >> COUNT_BITS).ok(),
            RequestId::Digits(_) | RequestId::Text(_) => None,
        }
    }

    /// Reports a response to a request that the server never made.
    pub fn report_unknown_response(&mut self, id: &RequestId) {
        let id = excerpt(&id.to_string());
        let rule = if self.phase.peer().is_some() { &rule::RPC_05 } else { &rule::RPC_15 };
        let what = format!("an answer to {id}, which was never asked");
        self.report(rule, what, "send the id of the server's request as it came");
    }

    /// Hands the response to what waits for it.
    pub(super) fn responded(&mut self, number: i64, request: OpenRequest, outcome: InputOutcome) {
        match request.waiting {
            Some((call, key)) => self.record(call, key, outcome),
            None => {
                let request = RequestId::Integer(number);
                self.outputs.push_back(Output::ClientResponded { request, outcome });
            }
        }
    }

    fn record(&mut self, number: CallId, key: String, outcome: InputOutcome) {
        let outcome = self.kept_outcome(outcome);
        let Some(call) = self.calls.add_response(number, key, outcome) else { return };
        call.open_requests = call.open_requests.saturating_sub(1);
        if call.open_requests == 0 {
            self.run_again(number);
        }
    }

    fn run_again(&mut self, number: CallId) {
        let Some(call) = self.calls.get_mut(number) else { return };
        if call.is_parked {
            return self.share(SharedOutput::Claim(number));
        }
        self.run_claimed(number);
    }

    /// Runs a call again that has all of its input, once this process has claimed it.
    pub fn run_claimed(&mut self, number: CallId) {
        let Some(call) = self.calls.get_mut(number) else { return };
        call.is_parked = false;
        call.round += 1;
        call.logs_made = 0;
        let dispatch = call.dispatch(number, None);
        self.outputs.push_back(Output::Run(dispatch));
    }

    /// A call that waits for input of the client no longer needs it: the client is told, and the handler runs again. A
    /// call that does not wait, or that the client carries as a state, is left alone.
    pub fn withdraw_input(&mut self, number: CallId) {
        let waits = self.calls.get_mut(number).filter(|call| call.open_requests > 0);
        if let Some(call) = waits {
            call.open_requests = 0;
            self.cancel_server_requests(number, "the server no longer needs it");
            self.run_again(number);
        }
    }

    /// The same for what a call has asked for after one run of its handler; what it asks for later is left alone.
    pub fn withdraw_input_of_round(&mut self, number: CallId, round: u32) {
        if self.round_of(number) == Some(round) {
            self.withdraw_input(number);
        }
    }

    pub(super) fn expire_server_requests(&mut self, now: Timestamp) {
        while let Some((until, number)) = self.server_requests.first() {
            if until > now {
                break;
            }
            if self.server_requests.get_mut(number).is_some_and(|open| open.until > now) {
                self.tick_client_task(now, number);
                continue;
            }
            let Some(input) = self.server_requests.close(number) else { continue };
            self.give_up(number, &input, "no answer in time");
            self.responded(number, input, InputOutcome::TimedOut);
        }
    }

    /// Cancels the requests to the client that belong to a call.
    pub(super) fn cancel_server_requests(&mut self, call: CallId, why: &'static str) {
        for number in self.server_requests.of(call) {
            if let Some(open) = self.server_requests.close(number) {
                self.give_up(number, &open, why);
            }
        }
    }

    /// Tells the client that a request is no longer needed.
    fn give_up(&mut self, number: i64, open: &OpenRequest, why: &'static str) {
        if open.task.is_some() {
            return self.cancel_task(number, open);
        }
        let call = open.waiting.as_ref().map(|(call, _)| *call);
        self.send_cancelled(number, call, why);
    }

    /// Expects no more responses to the requests of a call.
    pub(super) fn drop_server_requests(&mut self, call: CallId) {
        for number in self.server_requests.of(call) {
            if let Some(open) = self.server_requests.close(number) {
                self.drop_follow_ups(&open);
            }
        }
    }

    pub(super) fn send_cancelled(&mut self, number: i64, call: Option<CallId>, why: &'static str) {
        self.share(SharedOutput::Withdraw(RequestId::Integer(number)));
        let to = self.target(call);
        let params = CancelledParams::new(RequestId::Integer(number)).reason(why);
        self.send(to, MessageKind::Notification, |json| {
            encode::notification(json, NotificationMethod::Cancelled.name(), Some(&params))
        });
    }
}

/// The input requests of a call in the shape of the client's revision, if the call may make them now and the client
/// supports them all.
pub(super) fn check_requests(
    config: &EngineConfig,
    method: &Method,
    peer: &Peer,
    round: u32,
    replay: &mut ReplayState,
    requests: Vec<KeyedInputRequest>,
) -> Result<Vec<(String, InputRequest)>, CallFailure> {
    let most = config.max_rounds;
    if round >= most {
        return Err(RpcError::internal(format!("the call asked more than {most} times")).into());
    }
    // A server request can be sent during any request; a result that requires input belongs to some methods only.
    let may_ask = method.may_request_input()
        || (config.forwards && peer.rules().input_mode == InputMode::ServerRequest);
    if !may_ask || requests.is_empty() {
        return Err(RpcError::internal("the handler asked where it may not, or asked nothing").into());
    }
    let downgraded = requests.into_iter().map(|KeyedInputRequest { key, request }| {
        // A request that is made again had no usable response.
        replay.responses.remove(&key);
        peer.check_support(&request)?;
        let mut request = downgrade::input_request(peer.rules(), request)?;
        downgrade::remove_context(&peer.capabilities, &mut request);
        keep_task_wish(peer, &mut request);
        Ok((key, request))
    });
    downgraded.collect()
}
