//! Input that a server wants of a client: requests of its own, or input requests in results, and what answers them.

use std::collections::VecDeque;

use serde_json::{Map, Value};

use crate::auditor::checks::values::{is_same, request_capabilities, result_type, text};
use crate::auditor::conversation::State;
use crate::auditor::message::Message;
use crate::verdict::Role;

/// Results whose input requests are remembered, and the bytes of such a message.
const MAX_WAITING: usize = 16;
const MAX_MESSAGE: usize = 16 << 10;

/// A request for input, or its answer.
#[derive(Debug)]
pub(in crate::auditor::checks) enum Input {
    /// The server wants something.
    Wanted {
        method: String,
        params: Value,
        /// What the client declares, where that is known.
        capabilities: Option<Value>,
    },
    /// The client answers.
    Given { method: String, params: Value, result: Value },
}

/// The input requests of results that may still be answered.
#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct Inputs {
    waiting: VecDeque<Waiting>,
}

/// What a request, or a task, waits for.
#[derive(Debug)]
struct Waiting {
    /// The method of the request that carries the responses.
    method: String,
    /// Its parameters without those that differ between a request and its repetition.
    params: Value,
    state: Value,
    requests: Map<String, Value>,
}

impl Inputs {
    /// What a message asks for or answers.
    pub(in crate::auditor::checks) fn see(&mut self, message: &Message<'_>, state: &State) -> Vec<Input> {
        match message.from {
            Role::Server => self.wanted(message, state),
            Role::Client => self.given(message),
        }
    }

    fn wanted(&mut self, message: &Message<'_>, state: &State) -> Vec<Input> {
        if let Some((method, params)) = message.request().filter(|(method, _)| is_input(method)) {
            let capabilities = Some(state.client.capabilities.clone()).filter(Value::is_object);
            return vec![Input::Wanted { method: method.to_owned(), params: params.clone(), capabilities }];
        }
        let Some((request, result)) = message.result() else { return Vec::new() };
        let Some(Value::Object(requests)) = result.get("inputRequests") else { return Vec::new() };
        let is_interim = result_type(result) == "input_required";
        let (method, params, capabilities) = if is_interim {
            let capabilities = request_capabilities(&request.params).cloned();
            (request.method.clone(), constant(&request.params), capabilities)
        } else {
            let task = result.get("taskId").unwrap_or(&Value::Null);
            ("tasks/update".to_owned(), serde_json::json!({"taskId": task}), None)
        };
        let known =
            self.waiting.iter_mut().find(|it| !is_interim && it.method == method && it.params == params);
        let new: Vec<_> = match &known {
            // A task that is asked again has the same requests.
            Some(known) => requests.iter().filter(|(key, _)| !known.requests.contains_key(*key)).collect(),
            None => requests.iter().collect(),
        };
        let wanted = new.iter().map(|(_, request)| Input::Wanted {
            method: text(request, "method").unwrap_or_default().to_owned(),
            params: request.get("params").cloned().unwrap_or_default(),
            capabilities: capabilities.clone(),
        });
        let wanted = wanted.collect();
        if message.text.len() <= MAX_MESSAGE {
            let state = result.get("requestState").cloned().unwrap_or_default();
            match known {
                Some(known) => known.requests = requests.clone(),
                None => self.waiting.push_back(Waiting { method, params, state, requests: requests.clone() }),
            }
            if self.waiting.len() > MAX_WAITING {
                self.waiting.pop_front();
            }
        }
        wanted
    }

    fn given(&self, message: &Message<'_>) -> Vec<Input> {
        if let Some((request, result)) = message.result().filter(|(request, _)| is_input(&request.method)) {
            let is_task = request.params.get("task").is_some() && result.get("task").is_some();
            let (method, params, result) = (request.method.clone(), request.params.clone(), result.clone());
            return if is_task { Vec::new() } else { vec![Input::Given { method, params, result }] };
        }
        let Some((method, params)) = message.request() else { return Vec::new() };
        let Some(Value::Object(responses)) = params.get("inputResponses") else { return Vec::new() };
        let state = params.get("requestState").unwrap_or(&Value::Null);
        let constant = constant(params);
        let answered = self.waiting.iter().rev().find(|waiting| {
            waiting.method == method && waiting.state == *state && is_same(&waiting.params, &constant)
        });
        let Some(waiting) = answered else { return Vec::new() };
        let given = responses.iter().filter_map(|(key, result)| {
            let request = waiting.requests.get(key)?;
            let method = text(request, "method")?.to_owned();
            let params = request.get("params").cloned().unwrap_or_default();
            Some(Input::Given { method, params, result: result.clone() })
        });
        given.collect()
    }
}

/// The parameters that a request and its repetition share.
fn constant(params: &Value) -> Value {
    let mut params = params.clone();
    if let Value::Object(members) = &mut params {
        members.retain(|name, _| !matches!(&**name, "_meta" | "inputResponses" | "requestState"));
    }
    params
}

fn is_input(method: &str) -> bool {
    matches!(method, "roots/list" | "sampling/createMessage" | "elicitation/create")
}
