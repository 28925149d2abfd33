//! `tools/list` and `tools/call`.

use std::borrow::Cow;
use std::sync::Arc;

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

pub(super) fn list(call: &Call) -> Result<PreparedCall, CallError> {
    pagination::list(
        call,
        |catalog| &catalog.tools,
        |page| {
            let tools = page.items.iter().map(|tool| tool.definition.clone()).collect();
            ListToolsResult { next_cursor: page.next_cursor, ..ListToolsResult::new(tools) }.into()
        },
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
    let Params { name, arguments } = params(call)?;
    let found = find(call, &name);
    let Found { tool, statistics } =
        found.ok_or_else(|| RpcError::invalid_params(format!("unknown tool: {}", excerpt(&name))))?;
    let refuse = |error: RpcError| PreparedCall::refuse(error.into());
    if lacks(call.scopes(), &tool.scopes) {
        return Ok(refuse(insufficient_scope(&tool.scopes)).of(statistics));
    }
    let arguments = match arguments.map(|text| serde_json::from_str(text.get())) {
        None => Value::Object(Map::new()),
        Some(Ok(Value::Object(arguments))) => Value::Object(arguments),
        Some(Ok(_)) => {
            let error = RpcError::invalid_params("params: arguments is not an object");
            return Ok(refuse(error).of(statistics));
        }
        Some(Err(fault)) => {
            let error = RpcError::invalid_params(format!("params: arguments: {fault}"));
            return Ok(refuse(error).of(statistics));
        }
    };
    let inline = tool.inline;
    let work = run(call.clone(), tool, arguments);
    let prepared = if inline { PreparedCall::inline(work) } else { PreparedCall::spawned(work) };
    Ok(prepared.about(call, &name).of(statistics))
}

/// A tool, and where its calls are counted.
struct Found {
    tool: Arc<Tool>,
    statistics: Option<Arc<MethodStatistics>>,
}

fn find(call: &Call, name: &str) -> Option<Found> {
    let own = call.session().and_then(|session| session.catalog()?.tools.get(name).cloned());
    if let Some(tool) = own {
        // Any client can add tools to its session, by any name.
        return Some(Found { tool, statistics: None });
    }
    let tool = call.server().catalog().tools.get(name).cloned()?;
    Some(Found { statistics: tool.statistics.clone(), tool })
}

/// Validates the arguments against the `inputSchema`, and runs the tool. `Rules::bad_arguments` says what follows from
/// invalid arguments.
async fn run(
    call: Call,
    tool: Arc<Tool>,
    arguments: Value,
) -> Result<refmcp_proto::model::ServerResult, CallError> {
    if let Some(validator) = &tool.input_validator {
        validator.validate(&arguments).map_err(|faults| {
            CallError::bad_arguments(format!("invalid arguments for {}: {faults}", tool.definition.name))
        })?;
    }
    if let Some(state) = &call.dispatch().state
        && !tool.is_repeatable()
    {
        request_state::use_once(call.server(), state).await?;
    }
    let mut result = tool.run(call, arguments).await?;
    check_output(&tool, &result)?;
    repeat_as_text(&mut result);
    Ok(result.into())
}

/// Data without content is repeated as text: older revisions know no data, and clients show content.
fn repeat_as_text(result: &mut CallToolResult) {
    if result.content.is_empty()
        && let Some(data) = &result.structured_content
    {
        result.content.push(ContentBlock::text(data.to_string()));
    }
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
    validator.validate(structured).map_err(|faults| broken(&faults))
}
