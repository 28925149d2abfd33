//! The handlers of the simulated server: what a call of each tool does, step by step in virtual time.

use std::collections::BTreeMap;

use refmcp_proto::engine::{CallFailure, Dispatch, HandlerOutcome, InputOutcome, KeyedInputRequest};
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::model::{
    CallToolResult, CreateMessageParams, ElicitFormParams, FormSchema, InputRequest, ListToolsResult,
    SamplingMessage, StringSchema,
};
use refmcp_proto::revision::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::nonce;
use crate::history::Fault;
use crate::random::Random;

/// One thing that a handler does.
#[derive(Debug)]
pub(super) enum Step {
    Progress(f64),
    Log,
    /// A side effect, in this round.
    Effect(u32, u32),
    /// The list of tools changes.
    Change,
    End(Box<HandlerOutcome>),
}

/// What a handler does: steps, each after so many milliseconds.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) nonce: u64,
    pub(super) steps: Vec<(u64, Step)>,
    /// How the handler goes wrong.
    pub(super) fault: Option<Fault>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    name: &'a str,
    arguments: Arguments,
}

#[derive(Deserialize)]
struct Arguments {
    nonce: u64,
}

impl Script {
    /// The script of a call.
    pub(super) fn new(call: &Dispatch) -> Self {
        if call.method == Method::ListTools {
            let result = ListToolsResult::new(Vec::new());
            return Self {
                nonce: 0,
                steps: vec![(0, end(HandlerOutcome::Done(Box::new(result.into()))))],
                fault: None,
            };
        }
        match serde_json::from_str::<Params<'_>>(&call.params) {
            Ok(params) => ScriptBuilder::new(call, params.arguments.nonce).build(params.name),
            Err(error) => {
                let failure = RpcError::invalid_params(error.to_string());
                Self { nonce: 0, steps: vec![(0, end(HandlerOutcome::Failed(failure.into())))], fault: None }
            }
        }
    }
}

fn end(outcome: HandlerOutcome) -> Step {
    Step::End(Box::new(outcome))
}

struct ScriptBuilder<'a> {
    call: &'a Dispatch,
    script: Script,
    /// The pauses of a call are the same in every run.
    random: Random,
}

impl<'a> ScriptBuilder<'a> {
    fn new(call: &'a Dispatch, nonce: u64) -> Self {
        let script = Script { nonce, steps: Vec::with_capacity(4), fault: None };
        Self { call, script, random: Random::new(nonce) }
    }

    fn build(mut self, tool: &str) -> Script {
        match tool {
            "quick" => {
                self.now(Step::Effect(0, self.call.round));
                self.done();
            }
            "work" => {
                for done in 0..=self.random.below(4) {
                    self.later(Step::Progress(done as f64));
                }
                self.later(Step::Effect(0, self.call.round));
                self.done();
            }
            "log" => {
                self.now(Step::Log);
                self.later(Step::Log);
                self.done();
            }
            "change" => {
                self.later(Step::Change);
                self.done();
            }
            "fail" => {
                self.script.fault = Some(Fault::HandlerFails);
                let failure = CallFailure::Rpc(RpcError::internal("as scripted"));
                self.later(end(HandlerOutcome::Failed(failure)));
            }
            "hang" => {
                self.script.fault = Some(Fault::HandlerHangs);
                self.later(Step::Progress(1.0));
            }
            "once" => self.once(),
            "sample" => self.ask(&[vec![self.sampling("opinion")]]),
            "roots" => self.ask(&[vec![roots()]]),
            "ask" => self.ask(&[vec![self.elicitation("name")]]),
            "ask_twice" => self.ask(&[vec![self.elicitation("first")], vec![self.elicitation("second")]]),
            _ => self.ask(&[vec![self.elicitation("name"), self.sampling("opinion"), roots()]]),
        }
        self.script
    }

    /// Does something, asks for what it does not have, does something more.
    fn ask(&mut self, rounds: &[Vec<KeyedInputRequest>]) {
        self.now(Step::Effect(0, self.call.round));
        self.later(Step::Progress(f64::from(self.call.round)));
        let responses = &self.call.replay.responses;
        let is_missing = |request: &&KeyedInputRequest| !responses.contains_key(&request.key);
        let missing = rounds.iter().map(|round| round.iter().filter(is_missing).cloned().collect::<Vec<_>>());
        match missing.into_iter().find(|missing| !missing.is_empty()) {
            Some(requests) => self.require(requests, BTreeMap::new()),
            None => {
                self.now(Step::Effect(1, self.call.round));
                self.done();
            }
        }
    }

    /// Does something once, and keeps that for the next round.
    fn once(&mut self) {
        if !self.call.replay.once.contains_key("made") {
            self.now(Step::Effect(9, 0));
        }
        if self.call.replay.responses.contains_key("opinion") {
            return self.done();
        }
        let once = BTreeMap::from([("made".to_owned(), json!(self.script.nonce))]);
        self.require(vec![self.sampling("opinion")], once);
    }

    fn require(&mut self, requests: Vec<KeyedInputRequest>, once: BTreeMap<String, Value>) {
        self.later(end(HandlerOutcome::InputRequired { requests, used: None, once }));
    }

    /// Ends with a result that carries the nonce, or another one if an answer had that.
    fn done(&mut self) {
        let responses = self.call.replay.responses.values();
        let mut echoed = responses.filter_map(|outcome| match outcome {
            InputOutcome::Response(value) => nonce::find(value.to_string().as_bytes()),
            InputOutcome::Error(_) | InputOutcome::TimedOut => None,
        });
        let own = self.script.nonce;
        let nonce = echoed.find(|echoed| *echoed != own).unwrap_or(own);
        let result = CallToolResult::text(nonce::mark(nonce));
        self.later(end(HandlerOutcome::Done(Box::new(result.into()))));
    }

    fn elicitation(&self, key: &str) -> KeyedInputRequest {
        let form = FormSchema::new().required("name", StringSchema::new());
        keyed(key, ElicitFormParams::new(nonce::mark(self.script.nonce), form))
    }

    fn sampling(&self, key: &str) -> KeyedInputRequest {
        keyed(key, CreateMessageParams::new(vec![SamplingMessage::user(nonce::mark(self.script.nonce))], 10))
    }

    fn now(&mut self, step: Step) {
        self.script.steps.push((0, step));
    }

    /// Some steps follow at once, others after some time.
    fn later(&mut self, step: Step) {
        let pause = self.random.pick(&[0, 0, 0, 30, 300, 1_200]);
        let delay = self.random.below(pause + 1);
        self.script.steps.push((delay, step));
    }
}

fn roots() -> KeyedInputRequest {
    keyed("roots", InputRequest::Roots)
}

fn keyed(key: &str, request: impl Into<InputRequest>) -> KeyedInputRequest {
    KeyedInputRequest { key: key.to_owned(), request: request.into() }
}

/// What a client answers to an input request, with the nonce of the request.
pub(super) fn response(request: &InputRequest, nonce: Option<u64>) -> Value {
    let text = nonce.map_or_else(|| "x".to_owned(), nonce::mark);
    match request {
        InputRequest::Elicit(_) => json!({ "action": "accept", "content": { "name": text } }),
        InputRequest::Sample(_) => {
            json!({ "role": "assistant", "content": { "type": "text", "text": text }, "model": "m" })
        }
        InputRequest::Roots => json!({ "roots": [{ "uri": "file:///a" }] }),
    }
}
