//! Probes of tools: unknown ones, arguments that do not fit, results that do not match their schemas.

use std::time::Duration;

use refmcp_proto::jsonrpc::excerpt;
use refmcp_proto::model::JsonObject;
use refmcp_proto::param_headers::param_headers;
use refmcp_proto::rule;
use refmcp_proto::schema::{SchemaError, SchemaValidator, schema_violation};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Context, Probe, Stop};
use crate::arguments::minimal;
use crate::connection::{Answer, Connection, Wants};
use crate::offer::name;
use crate::session::{Session, header_text, notification};

pub(super) static PROBES: &[Probe] = &[
    Probe::gentle("unknown-tool", &[&rule::TOOL_09], |cx| Box::pin(unknown_tool(cx))),
    Probe::harsh("tool-without-name", &[&rule::TOOL_12], |cx| Box::pin(tool_without_name(cx))),
    Probe::gentle("missing-argument", &[&rule::TOOL_12, &rule::TOOL_10], |cx| Box::pin(missing_argument(cx))),
    Probe::gentle("tool-schemas", &[&rule::TOOL_05], |cx| Box::pin(tool_schemas(cx))),
    Probe::gentle("call-tools", &[&rule::TOOL_06], |cx| Box::pin(call_tools(cx))),
];

/// Tools whose schemas are reported.
const MAX_SCHEMA_VIOLATIONS: usize = 16;

/// Tools that are called in each revision.
const MAX_CALLS: usize = 200;

/// The time for the call of a tool: one that takes longer is cancelled.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// The time for all calls of a revision.
const ALL_CALLS: Duration = Duration::from_secs(12);

/// The tools that are known; none are a reason to stop.
fn tools(cx: &Context) -> Result<Vec<Value>, Stop> {
    match &cx.offer.tools.items[..] {
        [] => Err(cx.offer.tools.without("the server has no tools")),
        tools => Ok(tools.to_vec()),
    }
}

/// The tools that may be called.
pub(super) fn callable(cx: &Context) -> Result<Vec<Value>, Stop> {
    let may_call = |tool: &Value| name(tool).is_some_and(|name| cx.shared.callable.contains(name));
    let tools: Vec<Value> = tools(cx)?.into_iter().filter(may_call).collect();
    if tools.is_empty() {
        let why = "no tool says that it only reads (readOnlyHint); --allow-destructive calls the others too";
        return Err(cx.offer.tools.without(why));
    }
    Ok(tools)
}

/// Input schemas are JSON Schemas.
async fn tool_schemas(cx: &mut Context) -> Result<(), Stop> {
    let tools = tools(cx)?;
    // Older revisions name no dialect by which that could be told.
    if !rule::RPC_18.revisions.contains(cx.revision) {
        return Err(Stop::Skipped("the revision names no dialect of schemas".to_owned()));
    }
    let session = cx.session().await?;
    let mut list = Answer::default();
    list.exchange.set_request(&session.message("tools/list", json!({})).1.to_string());
    list.exchange.repeat = cx.repeat();
    let mut found = 0;
    for tool in &tools {
        // The auditor judges whether there is one.
        let Some(schema) = tool.get("inputSchema").and_then(Value::as_object) else { continue };
        let Some(why) = schema_violation(schema) else { continue };
        found += 1;
        let mut answer = list.clone();
        answer.exchange.add_answer(&tool.to_string());
        let what = || {
            format!("the inputSchema of {} is no JSON Schema: {why}", excerpt(name(tool).unwrap_or_default()))
        };
        cx.check(&rule::TOOL_05, &answer, false, what, "declare a schema that is valid by its dialect");
        if found == MAX_SCHEMA_VIOLATIONS {
            break;
        }
    }
    if found == 0 {
        cx.check(&rule::TOOL_05, &list, true, String::new, "");
    }
    match cx.offer.tools.missing.clone() {
        Some(missing) => Err(Stop::NotVerified(missing)),
        None => Ok(()),
    }
}

/// An unknown tool is a JSON-RPC error.
async fn unknown_tool(cx: &mut Context) -> Result<(), Stop> {
    tools(cx)?;
    let session = cx.session().await?;
    let params = json!({ "name": "refmcp_no_such_tool", "arguments": {} });
    let (id, answer) = session.request("tools/call", params).await;
    let what = || format!("a call of an unknown tool is answered with {}", answer.summary(&id));
    let kept = answer.error(&id).is_some();
    cx.check(&rule::TOOL_09, &answer, kept, what, "refuse it with the error -32602");
    Ok(())
}

/// A call whose name is a number is refused.
async fn tool_without_name(cx: &mut Context) -> Result<(), Stop> {
    tools(cx)?;
    let session = cx.session().await?;
    let (id, answer) = session.request("tools/call", json!({ "name": 42, "arguments": {} })).await;
    let failed = answer.result(&id).is_some_and(is_error);
    let kept = answer.error(&id).is_some() || answer.is_refused() || failed;
    let what = || format!("a call whose name is a number is answered with {}", answer.summary(&id));
    cx.check(&rule::TOOL_12, &answer, kept, what, "refuse parameters that do not fit with the error -32602");
    Ok(())
}

/// A call without a required argument fails.
async fn missing_argument(cx: &mut Context) -> Result<(), Stop> {
    let asks = |tool: &Value| {
        tool.pointer("/inputSchema/required").and_then(Value::as_array).map(Vec::len) > Some(0)
    };
    let Some(tool) = callable(cx)?.into_iter().find(asks) else {
        return Err(cx.offer.tools.without("no tool that may be called has a required argument"));
    };
    let session = cx.session().await?;
    let Some((id, answer)) = call(session, &tool, &json!({}), CALL_TIMEOUT).await else {
        return Err(Stop::NotVerified("no header can repeat the arguments of the tool".to_owned()));
    };
    if answer.late {
        return Err(Stop::NotVerified("the call takes too long".to_owned()));
    }
    let failed = answer.result(&id).is_some_and(is_error);
    let refused = answer.error(&id).is_some() || answer.is_refused();
    let tool = name(&tool).unwrap_or_default();
    let what = || {
        format!("{tool} is called without a required argument and is answered with {}", answer.summary(&id))
    };
    let expected = "check arguments against inputSchema, and answer with isError what is wrong";
    cx.check(&rule::TOOL_12, &answer, failed || refused, what, expected);
    if failed || refused {
        cx.check(&rule::TOOL_10, &answer, failed, what, expected);
    }
    Ok(())
}

fn is_error(result: &Value) -> bool {
    result.get("isError") == Some(&json!(true))
}

/// Results match the schemas of their tools.
async fn call_tools(cx: &mut Context) -> Result<(), Stop> {
    let until = Instant::now() + ALL_CALLS;
    let (mut without, mut done) = (Vec::new(), 0);
    let tools = callable(cx)?;
    for tool in tools.iter().take(MAX_CALLS) {
        let tool_name = name(tool).unwrap_or_default().to_owned();
        if Instant::now() > until {
            break;
        }
        done += 1;
        let schema = tool.get("inputSchema").and_then(Value::as_object);
        let Some(arguments) = schema.and_then(minimal) else {
            without.push(tool_name);
            continue;
        };
        let session = cx.session().await?;
        match call(session, tool, &arguments, CALL_TIMEOUT).await {
            Some((id, answer)) => judge_output(cx, tool, &id, &answer),
            None => {
                cx.not_verified(&rule::TOOL_06, &format!("no header can repeat arguments of {tool_name}"));
            }
        }
    }
    if done < tools.len() {
        return Err(Stop::NotVerified(format!(
            "{done} of {} tools were called: {MAX_CALLS} at most, and for {} seconds",
            tools.len(),
            ALL_CALLS.as_secs()
        )));
    }
    if let Some(why) = cx.offer.tools.missing.clone() {
        return Err(Stop::NotVerified(why));
    }
    match without.as_slice() {
        [] => Ok(()),
        _ => Err(Stop::Skipped(format!("no arguments are found for {}", without.join(", ")))),
    }
}

/// A result has the structured content that its tool promises.
fn judge_output(cx: &mut Context, tool: &Value, id: &Value, answer: &Answer) {
    let Some(schema) = tool.get("outputSchema").and_then(Value::as_object) else { return };
    let tool = name(tool).unwrap_or_default();
    if answer.result(id).is_none() && (answer.late || answer.ended.is_some()) {
        let why = format!("a call of {tool} is answered with {}", answer.summary(id));
        return cx.not_verified(&rule::TOOL_06, &why);
    }
    let Some(result) = answer.result(id).filter(|result| !is_error(result)) else { return };
    if result.get("resultType").is_some_and(|kind| kind != "complete") {
        return;
    }
    let violation = match output_violation(tool, schema, result) {
        Ok(violation) => violation,
        Err(why) => return cx.not_verified(&rule::TOOL_06, &why),
    };
    let expected = "return structured content that matches outputSchema";
    cx.check(&rule::TOOL_06, answer, violation.is_none(), || violation.clone().unwrap_or_default(), expected);
}

/// How a result does not match, or why that cannot be told.
fn output_violation(tool: &str, schema: &JsonObject, result: &Value) -> Result<Option<String>, String> {
    let Some(content) = result.get("structuredContent") else {
        return Ok(Some(format!("{tool} has an outputSchema, and its result no structuredContent")));
    };
    let validator = SchemaValidator::compile(schema)
        .map_err(|error| format!("the outputSchema of {tool} cannot be compiled: {error}"))?;
    match validator.validate(content) {
        Ok(()) => Ok(None),
        Err(SchemaError::Invalid(why)) => {
            Ok(Some(format!("structuredContent of {tool} does not match its outputSchema: {why}")))
        }
        Err(SchemaError::TooMuchWork(why)) => Err(format!(
            "structuredContent of {tool} is too much work to compare with its outputSchema: {why}"
        )),
    }
}

/// Calls a tool, and cancels the call if it takes too long. `None` where no header can repeat its arguments.
async fn call(
    session: &mut Session,
    tool: &Value,
    arguments: &Value,
    within: Duration,
) -> Option<(Value, Answer)> {
    let token = session.next_id();
    let params = json!({ "name": name(tool)?, "arguments": arguments, "_meta": { "progressToken": token } });
    let (id, message) = session.message("tools/call", params);
    let text = message.to_string();
    let wants = Wants::Response(id.clone());
    let (schema, arguments) = (tool.get("inputSchema")?.as_object()?, arguments.as_object()?);
    let marks = param_headers(schema).ok()?;
    let mut request = session.post(&text);
    for mark in &marks {
        if let Some(value) = mark.value(arguments) {
            request = request.with(&format!("mcp-param-{}", mark.name), &header_text(&value));
        }
    }
    let answer = match &session.connection {
        Connection::Http(_) if !marks.is_empty() => session.send(&request, &wants).await,
        _ => {
            let healthy = session.is_healthy;
            let answer = session.exchange_within(&text, &wants, within).await;
            if answer.late {
                cancel(session, &id).await;
                session.is_healthy = healthy;
            }
            answer
        }
    };
    Some((id, answer))
}

/// Cancels a request. Over HTTP without sessions its connection has ended already, which does so.
async fn cancel(session: &mut Session, id: &Value) {
    let params = json!({ "requestId": id, "reason": "it takes too long" });
    session.notify(&notification("notifications/cancelled", Some(params)).to_string()).await;
}
