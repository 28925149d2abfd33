//! Questions to the client, and running a handler again once they are answered.
//!
//! A handler never waits. It runs until it needs answers it does not have and ends with its questions. Where the
//! revision lets a server ask, each becomes a request, and the handler runs again when all are answered; where it
//! does not, the call ends with a result that asks for input, and the client repeats it with the answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::ServerEngine;
use super::calls::nobody_left;
use crate::engine::{CallId, InputOutcome, KeyedInputRequest, MessageKind, MessageTarget, Output};
use crate::jsonrpc::{RequestId, Response, RpcError, encode, excerpt};
use crate::model::{CancelledParams, InputRequest, InputRequiredResult};
use crate::revision::{InputMode, lower};
use crate::time::Timestamp;

/// The questions that are out.
#[derive(Debug, Default)]
pub(super) struct Questions {
    next: i64,
    open: BTreeMap<i64, Open>,
    by_deadline: BTreeSet<(Timestamp, i64)>,
}

#[derive(Debug)]
struct Open {
    call: CallId,
    key: String,
    until: Timestamp,
}

impl Questions {
    /// An id for a request of ours.
    pub(super) fn new_id(&mut self) -> RequestId {
        self.next += 1;
        RequestId::Integer(self.next)
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.by_deadline.first().map(|(until, _)| *until)
    }

    fn open(&mut self, question: Open) -> RequestId {
        let id = self.new_id();
        self.by_deadline.insert((question.until, self.next));
        self.open.insert(self.next, question);
        id
    }

    fn close(&mut self, number: i64) -> Option<Open> {
        let question = self.open.remove(&number)?;
        self.by_deadline.remove(&(question.until, number));
        Some(question)
    }

    fn of(&self, call: CallId) -> Vec<i64> {
        self.open.iter().filter(|(_, open)| open.call == call).map(|(number, _)| *number).collect()
    }
}

impl ServerEngine {
    /// Keeps of a call's answers those that its handler has used, and the values it wants to find again.
    pub(super) fn keep_answers(
        &mut self,
        number: CallId,
        used: Option<&BTreeSet<String>>,
        once: BTreeMap<String, Value>,
    ) {
        let Some(call) = self.calls.get_mut(number) else { return };
        let answers = Arc::make_mut(&mut call.answers);
        answers.once.extend(once);
        if let Some(used) = used {
            answers.responses.retain(|key, _| used.contains(key));
        }
    }

    /// A handler wants to know something before it goes on.
    pub(super) fn ask(&mut self, now: Timestamp, number: CallId, questions: Vec<KeyedInputRequest>) {
        let most = self.config.max_rounds;
        let Some(call) = self.calls.get_mut(number) else { return };
        if call.round >= most {
            return self
                .fail(number, RpcError::internal(format!("the call asked more than {most} times")).into());
        }
        if !call.method.may_request_input() || questions.is_empty() {
            let error = RpcError::internal("the handler asked where it may not, or asked nothing");
            return self.fail(number, error.into());
        }
        let answers = Arc::make_mut(&mut call.answers);
        for question in &questions {
            // One that is asked again was not answered well enough.
            answers.responses.remove(&question.key);
        }
        let peer = call.peer.clone();
        let mut lowered = Vec::with_capacity(questions.len());
        for question in questions {
            let fits = peer.check_support(&question.request);
            match fits.and_then(|()| lower::question(peer.rules(), question.request)) {
                Ok(mut request) => {
                    lower::leave_out_context(&peer.capabilities, &mut request);
                    lowered.push((question.key, request));
                }
                Err(failure) => return self.fail(number, failure),
            }
        }
        match peer.rules().input_mode {
            InputMode::ServerRequest => self.ask_by_request(now, number, lowered),
            InputMode::InputRequired => self.ask_by_result(now, number, lowered),
        }
    }

    fn ask_by_request(&mut self, now: Timestamp, number: CallId, questions: Vec<(String, InputRequest)>) {
        if self.nobody_answers {
            return self.fail(number, nobody_left().into());
        }
        if !self.is_ready() {
            let error =
                RpcError::invalid_request("notifications/initialized has to come before questions can");
            return self.fail(number, error.into());
        }
        let Some(call) = self.calls.get_mut(number) else { return };
        call.open_questions = questions.len();
        let to = MessageTarget::Exchange(call.to.exchange);
        for (key, mut request) in questions {
            let until = now + self.config.timeouts.client_response;
            let id = self.questions.open(Open { call: number, key, until });
            lower::name_url_visit(&mut request, &id);
            self.send(to, MessageKind::Request, |json| {
                encode::request(json, &id, request.method(), &request.params())
            });
        }
    }

    fn ask_by_result(&mut self, now: Timestamp, number: CallId, questions: Vec<(String, InputRequest)>) {
        let Some(call) = self.calls.get(number) else { return };
        match self.seal_state(now, call) {
            Err(failure) => self.fail(number, failure),
            Ok(sealed) => {
                let Some(call) = self.calls.close(number) else { return };
                let result = InputRequiredResult::new(questions.into_iter().collect()).request_state(sealed);
                self.answer(&call.to, call.peer.rules(), result.into());
            }
        }
    }

    /// Takes an answer of the client.
    pub(super) fn response(&mut self, response: Response<'_>) {
        let Some(id) = response.id else {
            let error = response.result.err().map(|error| excerpt(&error.message)).unwrap_or_default();
            return self.note(
                "RPC-05",
                format!("an error without an id: {error}; send the id of the request that it answers"),
            );
        };
        if self.keepalive.answered(&id) {
            return;
        }
        let RequestId::Integer(number) = id else {
            return self.note("RPC-05", never_asked(&excerpt(&id.to_string())));
        };
        let Some(question) = self.questions.close(number) else {
            if number > self.questions.next || number < 1 {
                self.note("RPC-05", never_asked(&number.to_string()));
            }
            // Otherwise it is late, or the second one: messages cross, nobody is to blame.
            return;
        };
        let answer = match response.result {
            Ok(text) => serde_json::from_str(text).map_or_else(
                |fault| InputOutcome::Error(RpcError::invalid_params(format!("unreadable answer: {fault}"))),
                InputOutcome::Response,
            ),
            Err(error) => InputOutcome::Error(error),
        };
        self.record(question.call, question.key, answer);
    }

    fn record(&mut self, number: CallId, key: String, answer: InputOutcome) {
        let Some(call) = self.calls.get_mut(number) else { return };
        Arc::make_mut(&mut call.answers).responses.insert(key, answer);
        call.open_questions = call.open_questions.saturating_sub(1);
        if call.open_questions == 0 {
            call.round += 1;
            call.logs_made = 0;
            let dispatch = call.dispatch(number, None);
            self.outputs.push_back(Output::Run(dispatch));
        }
    }

    pub(super) fn expire_questions(&mut self, now: Timestamp) {
        while let Some(&(until, number)) = self.questions.by_deadline.first() {
            if until > now {
                break;
            }
            let Some(question) = self.questions.close(number) else { continue };
            self.withdraw(number, question.call, "no answer in time");
            self.record(question.call, question.key, InputOutcome::TimedOut);
        }
    }

    /// Tells the client that nobody waits for its answers any more.
    pub(super) fn withdraw_questions(&mut self, call: CallId, why: &'static str) {
        for number in self.questions.of(call) {
            self.questions.close(number);
            self.withdraw(number, call, why);
        }
    }

    fn withdraw(&mut self, number: i64, call: CallId, why: &'static str) {
        let to = self
            .calls
            .get(call)
            .map_or(MessageTarget::Session, |call| MessageTarget::Exchange(call.to.exchange));
        let params = CancelledParams::new(RequestId::Integer(number)).reason(why);
        self.send(to, MessageKind::Notification, |json| {
            encode::notification(json, "notifications/cancelled", Some(&params))
        });
    }
}

/// What is wrong with an answer to a request that the server never made.
fn never_asked(id: &str) -> String {
    format!("an answer to {id}, which was never asked; send the id of the server's request as it came")
}
