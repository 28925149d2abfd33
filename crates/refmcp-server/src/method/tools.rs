//! `tools/list`, and `tools/call` with the validation of arguments against the `inputSchema`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use refmcp_proto::engine::{CallRequest, HandlerOutcome};
use refmcp_proto::jsonrpc::{RpcError, excerpt};
use refmcp_proto::model::{CallToolResult, ContentBlock, ListToolsResult};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{PreparedCall, pagination, params};
use crate::call::Call;
use crate::catalog::Tool;
use crate::error::CallError;
use crate::request_state;
use crate::scopes::{insufficient_scope, lacks};
use crate::statistics::MethodStatistics;
use crate::tasks::{self, TaskStart};

pub(super) fn list(call: &Call) -> Result<PreparedCall, CallError> {
    pagination::list(
        call,
        |catalog| &catalog.tools,
        |tool| tool.definition.clone(),
        |tools, next_cursor| ListToolsResult { next_cursor, ..ListToolsResult::new(tools) }.into(),
    )
}

/// The members of the parameters that are needed here; the rest belongs to the engine.
#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

pub(super) fn call(call: &Call) -> Result<PreparedCall, CallError> {
    let (name, arguments) = match found_members(call) {
        Some((name, arguments)) => (Cow::Borrowed(name), arguments),
        None => {
            let Params { name, arguments } = params(call)?;
            (name, arguments.map(RawValue::get))
        }
    };
    let found = find(call, &name);
    let (tool, statistics) =
        found.ok_or_else(|| RpcError::invalid_params(format!("unknown tool: {}", excerpt(&name))))?;
    let refuse = |error: RpcError| PreparedCall::refuse(error.into());
    if lacks(call.scopes(), &tool.scopes) {
        return Ok(refuse(insufficient_scope(&tool.scopes)).of(statistics));
    }
    let start = match tasks::decide(call, &tool) {
        Ok(start) => start,
        Err(error) => return Ok(PreparedCall::refuse(error).of(statistics)),
    };
    let arguments = match arguments.map(serde_json::from_str) {
        None => Value::Object(Map::new()),
        Some(Ok(Value::Object(arguments))) => Value::Object(arguments),
        Some(Ok(_)) => {
            let error = RpcError::invalid_params("params: arguments is not an object");
            return Ok(refuse(error).of(statistics));
        }
        Some(Err(error)) => {
            let error = RpcError::invalid_params(format!("params: arguments: {error}"));
            return Ok(refuse(error).of(statistics));
        }
    };
    if let TaskStart::AtOnce(ttl) = start {
        let new = call.clone();
        let work = async move {
            // What can be found out at once is no task's outcome.
            validate(&tool, &arguments)?;
            tasks::create(&new, BTreeMap::new(), ttl).await
        };
        return Ok(PreparedCall::new(false, Box::pin(work)).of(statistics).about(call, &name));
    }
    let (mut inline, mut work) = (tool.inline, tool.clone().run(call.clone(), arguments));
    if let Some(before) = &call.server().settings().before_tools {
        let (first, then) = (before(call.clone()), work);
        inline = false;
        work = Box::pin(async move {
            first.await?;
            then.await
        });
    }
    Ok(PreparedCall::new(inline, work).of(statistics).about(call, &name))
}

/// The name of the tool and the text of its arguments, where reading the message has found them in their plain form.
fn found_members(call: &Call) -> Option<(&str, Option<&str>)> {
    let CallRequest { params, spans, .. } = &*call.dispatch().request;
    let text = |span: &Range<usize>| params.get(span.clone());
    let name = text(spans.name.as_ref()?)?.strip_prefix('"')?.strip_suffix('"')?;
    let arguments = spans.arguments.as_ref().and_then(text).filter(|arguments| *arguments != "null");
    name.bytes().all(|byte| byte != b'\\').then_some((name, arguments))
}

fn find(call: &Call, name: &str) -> Option<(Arc<Tool>, Option<Arc<MethodStatistics>>)> {
    let own = call.session().and_then(|session| session.catalog()?.tools.get(name).cloned());
    if let Some(tool) = own {
        // Any client can add tools to its session, by any name.
        return Some((tool, None));
    }
    let tool = call.server().catalog().tools.get(name).cloned()?;
    let statistics = tool.statistics.clone();
    Some((tool, statistics))
}

/// Validates the arguments against the `inputSchema`, and runs the tool. `Rules::bad_arguments` says what follows from
/// invalid arguments.
pub(crate) async fn run<Fut: Future<Output = Result<CallToolResult, CallError>>>(
    call: Call,
    tool: Arc<Tool>,
    arguments: Value,
    handler: impl FnOnce(Call, Value) -> Fut,
) -> Result<HandlerOutcome, CallError> {
    validate(&tool, &arguments)?;
    if let Some(state) = &call.dispatch().state
        && !tool.is_repeatable()
    {
        // Boxed: few calls carry a state, and the work of every call would be larger by this.
        Box::pin(request_state::use_once(call.server(), state)).await?;
    }
    let mut result = match handler(call.clone(), arguments).await {
        Err(error) if error.starts_task() => return tasks::create(&call, call.take_once(), None).await,
        result => result?,
    };
    check_output(&tool, &result)?;
    repeat_as_text(&mut result);
    add_text_without_app(&call, &tool, &mut result)?;
    Ok(HandlerOutcome::Done(Box::new(result.into())))
}

/// Checks the arguments against the `inputSchema`.
fn validate(tool: &Tool, arguments: &Value) -> Result<(), CallError> {
    let Some(validator) = &tool.input_validator else { return Ok(()) };
    validator.validate(arguments).map_err(|faults| {
        CallError::bad_arguments(format!("invalid arguments for {}: {faults}", tool.definition.name))
    })
}

/// Data without content is repeated as text: older revisions know no data, and clients show content.
fn repeat_as_text(result: &mut CallToolResult) {
    if result.content.is_empty()
        && let Some(data) = &result.structured_content
    {
        result.content.push(ContentBlock::text(data.to_string()));
    }
}

/// Clients that show no app get a text in its place. What a tool with an app returns says something without it as well.
fn add_text_without_app(call: &Call, tool: &Tool, result: &mut CallToolResult) -> Result<(), RpcError> {
    let Some(ui) = &tool.ui else { return Ok(()) };
    if let Some(text) = &tool.text_without_app
        && !call.peer().capabilities.shows_apps()
    {
        result.content.push(ContentBlock::text(&**text));
    }
    if result.content.is_empty() && ui.resource_uri.is_some() {
        let text = format!("tool {} has an app and returned nothing else", tool.definition.name);
        return Err(RpcError::internal(text));
    }
    Ok(())
}

/// Checks the output against the schema before it is sent.
fn check_output(tool: &Tool, result: &CallToolResult) -> Result<(), RpcError> {
    let Some(validator) = &tool.output_validator else { return Ok(()) };
    if result.is_error == Some(true) {
        return Ok(());
    }
    let broken = |what: &str| {
        RpcError::internal(format!("tool {} broke its output schema: {what}", tool.definition.name))
    };
    let Some(structured) = &result.structured_content else { return Err(broken("no structured content")) };
    validator.validate(structured).map_err(|faults| broken(&faults.to_string()))
}
