//! The handlers of the test engine: what the server offers, and what each call does.
//!
//! A handler is a function from a call to the steps it takes, so a run of it is a value. One that does not end
//! keeps its call running until the test ends it. What is there to be used: `tools` (each for one situation),
//! `questions` (those that ask the client), `lists` (resources, prompts, and every list).

mod lists;
mod questions;
mod tools;

use std::collections::BTreeMap;

use refmcp_proto::engine::{CallFailure, Dispatch, HandlerOutcome, KeyedInputRequest, LogMessage, Progress};
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::model::{
    CallToolParams, CompleteResult, Completion, CustomResult, EmptyResult, JsonObject, LogLevel, ServerResult,
};
use refmcp_proto::revision::Method;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// One thing that a handler does.
#[derive(Debug)]
pub enum Step {
    /// Reports how far it has come.
    Progress(Progress),
    /// Logs something.
    Log(LogMessage),
    /// Ends.
    End(HandlerOutcome),
}

/// What the handler for a call does.
pub fn steps(call: &Dispatch) -> Vec<Step> {
    match &call.method {
        Method::CallTool => tools::call(call),
        Method::ListTools => vec![done(tools::list())],
        Method::ReadResource => vec![lists::read(call)],
        Method::ListResources => vec![done(lists::resources())],
        Method::ListResourceTemplates => vec![done(lists::templates())],
        Method::Subscribe | Method::Unsubscribe => vec![lists::subscribe(call)],
        Method::GetPrompt => vec![lists::get_prompt(call)],
        Method::ListPrompts => vec![done(lists::prompts())],
        Method::Complete => vec![done(CompleteResult::new(Completion::new(["one", "two"])))],
        Method::Custom(name) => vec![done(CustomResult::new(members(json!({ "method": &**name }))))],
        other => vec![failed(RpcError::internal(format!("no script for {}", other.name())))],
    }
}

/// The name of a running call in tests: the argument `tag` of its tool, else its method.
pub fn tag(call: &Dispatch) -> String {
    let params: Value = serde_json::from_str(&call.params).unwrap_or_default();
    params.pointer("/arguments/tag").and_then(Value::as_str).unwrap_or(call.method.name()).to_owned()
}

fn done(result: impl Into<ServerResult>) -> Step {
    Step::End(HandlerOutcome::Done(Box::new(result.into())))
}

fn empty() -> Step {
    done(EmptyResult::default())
}

fn failed(failure: impl Into<CallFailure>) -> Step {
    Step::End(HandlerOutcome::Failed(failure.into()))
}

fn ask(questions: Vec<KeyedInputRequest>) -> Step {
    Step::End(HandlerOutcome::InputRequired { requests: questions, used: None, once: BTreeMap::new() })
}

fn log(level: LogLevel, data: &str) -> Step {
    Step::Log(LogMessage { level, logger: Some("script".to_owned()), data: json!(data) })
}

fn progress(progress: f64, message: &str) -> Step {
    Step::Progress(Progress { progress, total: Some(3.0), message: Some(message.to_owned()) })
}

fn members(object: Value) -> JsonObject {
    match object {
        Value::Object(members) => members,
        _ => JsonObject::new(),
    }
}

fn params<T: DeserializeOwned>(call: &Dispatch) -> Result<T, RpcError> {
    serde_json::from_str(&call.params).map_err(|error| RpcError::invalid_params(format!("params: {error}")))
}

fn tool_params(call: &Dispatch) -> Result<(String, JsonObject), RpcError> {
    let params: CallToolParams = params(call)?;
    Ok((params.name, params.arguments.unwrap_or_default()))
}
