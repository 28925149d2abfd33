//! Rules about requests that need input: results of the type input_required, and the requests that repeat them.

use std::collections::VecDeque;

use refmcp_proto::model::keys;
use refmcp_proto::revision::{Method, ServerMethod};
use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

use crate::auditor::checks::{Check, Context};
use crate::auditor::conversation::Request;
use crate::auditor::message::{Body, Message};
use crate::verdict::Role;

pub(in crate::auditor::checks) static RULES: &[&Rule] = &[
    &rule::MRTR_01,
    &rule::MRTR_02,
    &rule::MRTR_03,
    &rule::MRTR_04,
    &rule::MRTR_05,
    &rule::MRTR_06,
    &rule::MRTR_07,
    &rule::MRTR_12,
];

/// What clients were asked for.
#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct InputRounds {
    rounds: VecDeque<Round>,
    /// The HTTP requests that ended with such a result, the latest ones.
    ended: VecDeque<u64>,
}

/// A result that requires input, and the request that it answers.
#[derive(Debug)]
struct Round {
    id: Value,
    method: String,
    /// The parameters, but for what belongs to one round.
    params: Value,
    keys: Vec<String>,
    state: Option<Value>,
}

/// Rounds and HTTP requests that are remembered.
const MAX_ROUNDS: usize = 128;

const REPEAT: &str = "repeat the request with a new id, the same params, inputResponses for each key, and requestState as it came";

impl Check for InputRounds {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        if !message.is_stateless() {
            return;
        }
        let stream = message.stream.filter(|_| context.state.has_streams());
        if message.from == Role::Server && stream.is_some_and(|stream| self.ended.contains(&stream)) {
            let what = "a message follows a result that requires input";
            context.broken(&rule::MRTR_12, what, "end the stream with that result");
        }
        match &message.body {
            Body::Request { id, method, params } if message.from == Role::Client => {
                self.repeats(id, method, params, context);
            }
            Body::Response { id, request: Some(request), result: Ok(result) }
                if message.from == Role::Server
                    && result.get("resultType").is_some_and(|kind| kind == "input_required") =>
            {
                requires(request, result, context);
                self.remember(stream, id, request, result);
            }
            _ => {}
        }
    }
}

impl InputRounds {
    fn remember(&mut self, stream: Option<u64>, id: &Value, request: &Request, result: &Value) {
        if self.rounds.len() >= MAX_ROUNDS {
            self.rounds.pop_front();
        }
        let keys = result.get("inputRequests").and_then(Value::as_object);
        self.rounds.push_back(Round {
            id: id.clone(),
            method: request.method.clone(),
            params: lasting(&request.params),
            keys: keys.map(|keys| keys.keys().cloned().collect()).unwrap_or_default(),
            state: result.get("requestState").cloned(),
        });
        if let Some(stream) = stream.filter(|_| self.ended.len() < MAX_ROUNDS) {
            self.ended.push_back(stream);
        }
    }

    /// A request that may repeat an earlier one.
    fn repeats(&self, id: &Value, method: &str, params: &Value, context: &mut Context<'_>) {
        let (given, responses) = (params.get("requestState"), params.get("inputResponses"));
        // Elsewhere, members of these names mean something else.
        let may = Method::known(method).is_some_and(|method| method.may_request_input());
        if !may || given.is_none() && responses.is_none() {
            return;
        }
        let lasting = lasting(params);
        let same = |round: &&Round| round.method == method && round.params == lasting;
        let by_state =
            self.rounds.iter().rev().filter(|round| given.is_some() && round.state.as_ref() == given);
        // The round that fits best is the one that is meant.
        let meant = by_state.clone().find(same).or_else(|| by_state.clone().next());
        let Some(round) = meant.or_else(|| self.rounds.iter().rev().find(same)).or_else(|| {
            let name = Method::known(method).and_then(|method| method.name_member());
            let named = |params: &Value| name.and_then(|name| params.get(name)).cloned();
            self.rounds
                .iter()
                .rev()
                .find(|round| round.method == method && named(&round.params) == named(params))
        }) else {
            if context.state.is_whole() && self.rounds.is_empty() {
                let what = format!("{method} has inputResponses or requestState that no result asked for");
                context.broken(&rule::MRTR_06, what, REPEAT);
            }
            return;
        };
        let is_other = meant.is_some() && (round.method != method || !is_about_same(round, method, params));
        if is_other {
            let what = format!("{method} has the requestState of another request");
            return context.broken(&rule::MRTR_07, what, REPEAT);
        }
        if given.is_some() && round.state.is_some() {
            let altered = || (format!("{method} has a requestState that no result had"), REPEAT);
            context.judge(&rule::MRTR_07, meant.is_none().then(altered));
        }
        let what = if given.is_none() && round.state.is_some() {
            Some("without the requestState of the result")
        } else if given.is_some() && round.state.is_none() {
            Some("with a requestState that the result did not have")
        } else if round.params != lasting {
            Some("with other params")
        } else if round.id == *id {
            Some("with the id of the first request")
        } else if responses.is_some_and(|responses| !responses.is_object()) {
            Some("with inputResponses that are no object")
        } else if keys_of(responses).any(|key| !round.keys.contains(key)) {
            Some("with responses to what was not asked for")
        } else {
            None
        };
        let violation = |what| (format!("{method} was repeated {what}"), REPEAT);
        context.judge(&rule::MRTR_06, what.map(violation));
        let missing = round.keys.iter().any(|key| keys_of(responses).all(|given| given != key));
        let violation = || (format!("{method} was repeated before all input was there"), REPEAT);
        context.judge(&rule::MRTR_05, missing.then(violation));
    }
}

/// Whether a request is about the same tool, prompt or resource.
fn is_about_same(round: &Round, method: &str, params: &Value) -> bool {
    let name = Method::known(method).and_then(|method| method.name_member());
    name.is_none_or(|name| round.params.get(name) == params.get(name))
}

fn keys_of(responses: Option<&Value>) -> impl Iterator<Item = &String> {
    responses.and_then(Value::as_object).into_iter().flat_map(|responses| responses.keys())
}

/// The parameters that stay the same when a request is repeated.
fn lasting(params: &Value) -> Value {
    let mut params = params.clone();
    if let Some(members) = params.as_object_mut() {
        for member in ["_meta", "inputResponses", "requestState"] {
            members.remove(member);
        }
    }
    params
}

/// A result that requires input.
fn requires(request: &Request, result: &Value, context: &mut Context<'_>) {
    let may = Method::known(&request.method).is_some_and(|method| method.may_request_input());
    let violation = || {
        let what = format!("{} was answered with a result that requires input", request.method);
        (what, "require input for tools/call, prompts/get and resources/read only")
    };
    context.judge(&rule::MRTR_01, (!may).then(violation));
    let (requests, state) = (result.get("inputRequests"), result.get("requestState"));
    let what = if requests.is_none() && state.is_none() {
        Some("a result requires input and has neither inputRequests nor requestState")
    } else if state.is_some_and(|state| !state.is_string()) {
        Some("requestState is no string")
    } else {
        None
    };
    context.judge(
        &rule::MRTR_02,
        what.map(|what| (what.to_owned(), "send inputRequests, or a string as requestState")),
    );
    let cached = ["ttlMs", "cacheScope"].iter().any(|hint| result.get(hint).is_some());
    let violation = || {
        ("a result that requires input has cache hints".to_owned(), "send it without ttlMs and cacheScope")
    };
    context.judge(&rule::MRTR_12, cached.then(violation));
    if let Some(requests) = requests {
        asks(request, requests, context);
    }
}

/// The input requests of a result.
fn asks(request: &Request, requests: &Value, context: &mut Context<'_>) {
    let Some(requests) = requests.as_object() else {
        let what = "inputRequests is no object";
        return context.broken(&rule::MRTR_03, what, "send an object with a request behind each key");
    };
    let declared = request.params.get("_meta").and_then(|meta| meta.get(keys::CLIENT_CAPABILITIES));
    for asked in requests.values() {
        let method = asked.get("method").and_then(Value::as_str);
        let capability = match method.and_then(ServerMethod::known) {
            Some(ServerMethod::Elicit) => Some("elicitation"),
            Some(ServerMethod::CreateMessage) => Some("sampling"),
            Some(ServerMethod::ListRoots) => Some("roots"),
            _ => None,
        };
        let what = if capability.is_none() {
            Some("an input request is none of elicitation, sampling and roots")
        } else if asked.get("jsonrpc").is_some() || asked.get("id").is_some() {
            Some("an input request has the envelope of a message")
        } else {
            None
        };
        let expected = "send method and params of elicitation/create, sampling/createMessage or roots/list";
        context.judge(&rule::MRTR_03, what.map(|what| (what.to_owned(), expected)));
        if let Some(capability) = capability {
            let lacks = declared.is_some_and(|declared| declared.get(capability).is_none());
            let violation = || {
                let what = format!("{capability} is required, which the request does not declare");
                (what, "require only what clientCapabilities of the request has")
            };
            context.judge(&rule::MRTR_04, lacks.then(violation));
        }
    }
}
