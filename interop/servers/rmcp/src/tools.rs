//! The tools.

use std::time::Duration;

use rmcp::model::*;
use rmcp::service::{RequestContext, RoleServer, ServiceError};
use serde::Serialize;
use serde_json::{Value, json};

use crate::scenario::{Scenario, is_modern, made};

pub fn listed() -> Value {
    let number = json!({ "type": "number" });
    let nothing = json!({ "type": "object", "properties": {} });
    let plain =
        |name: &str, words: &str| json!({ "name": name, "description": words, "inputSchema": nothing });
    json!([
        { "name": "echo", "description": "Says it back", "inputSchema": {
            "type": "object", "properties": { "message": { "type": "string" } }, "required": ["message"] } },
        { "name": "sum", "description": "Adds two numbers",
          "inputSchema": {
            "type": "object", "properties": { "a": number, "b": number }, "required": ["a", "b"] },
          "outputSchema": { "type": "object", "properties": { "sum": number }, "required": ["sum"] } },
        plain("count", "Counts to three"),
        plain("ask", "Asks for a form"),
        plain("think", "Asks for a model"),
        plain("roots", "Asks for the roots"),
        plain("fail", "Fails"),
        plain("talk", "Logs"),
    ])
}

pub async fn call(
    scenario: &Scenario,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let arguments = request.arguments.clone().map(Value::Object).unwrap_or_default();
    match &*request.name {
        "echo" => Ok(text(arguments["message"].as_str().unwrap_or_default())),
        "sum" => {
            let number = |name: &str| arguments[name].as_i64().unwrap_or_default();
            Ok(CallToolResult::structured(json!({ "sum": number("a") + number("b") })).into())
        }
        "count" => count(&arguments, &context).await,
        "ask" => ask(&request, &context).await,
        "think" => think(&request, &context).await,
        "roots" => roots(&request, &context).await,
        "fail" => Ok(CallToolResult::error(vec![ContentBlock::text("it failed")]).into()),
        "talk" => talk(scenario, &context).await,
        name => Err(ErrorData::invalid_params(format!("no tool {name}"), None)),
    }
}

fn text(words: &str) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(words)]).into()
}

fn lost(error: ServiceError) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

async fn count(
    arguments: &Value,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let steps = arguments["steps"].as_u64().unwrap_or(3);
    let pause = Duration::from_millis(arguments["ms"].as_u64().unwrap_or_default());
    if let Some(token) = context.meta.get_progress_token() {
        for number in 1..=steps {
            let message = format!("at {number}");
            let progress =
                json!({ "progressToken": token, "progress": number, "total": steps, "message": message });
            context.peer.notify_progress(made(progress)?).await.map_err(lost)?;
            tokio::time::sleep(pause).await;
        }
    }
    Ok(text(&format!("counted to {steps}")))
}

/// What the client answered to the question before, where questions are results.
fn answer(request: &CallToolRequestParams) -> Option<Value> {
    let answers = serde_json::to_value(request.input_responses.as_ref()?).ok()?;
    answers.get("it").cloned()
}

fn question(method: &str, params: Value) -> Result<CallToolResponse, ErrorData> {
    let requests = json!({ "it": { "method": method, "params": params } });
    Ok(InputRequiredResult::new(Some(made(requests)?), Some("asked".into())).into())
}

fn as_value(answer: impl Serialize) -> Result<Value, ErrorData> {
    serde_json::to_value(answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

async fn ask(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let form = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "default": "Ada" },
            "age": { "type": "integer", "default": 36 },
            "sure": { "type": "boolean", "default": true },
        },
        "required": ["name"],
    });
    let params = json!({ "mode": "form", "message": "Who are you?", "requestedSchema": form });
    let answer = match answer(request) {
        Some(answer) => answer,
        None if is_modern(context) => return question("elicitation/create", params),
        None => as_value(context.peer.create_elicitation(made(params)?).await.map_err(lost)?)?,
    };
    let content = &answer["content"];
    let (action, name) = (&answer["action"], content["name"].as_str().unwrap_or_default());
    let said =
        format!("{}: {name}, {}, {}", action.as_str().unwrap_or_default(), content["age"], content["sure"]);
    Ok(text(&said))
}

async fn think(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let content = json!({ "type": "text", "text": "six times seven?" });
    let params = json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": 10 });
    let answer = match answer(request) {
        Some(answer) => answer,
        None if is_modern(context) => return question("sampling/createMessage", params),
        None => as_value(context.peer.create_message(made(params)?).await.map_err(lost)?)?,
    };
    Ok(text(&format!("the model says {}", answer["content"]["text"].as_str().unwrap_or_default())))
}

async fn roots(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let answer = match answer(request) {
        Some(answer) => answer,
        None if is_modern(context) => return question("roots/list", json!({})),
        None => as_value(context.peer.list_roots().await.map_err(lost)?)?,
    };
    let roots: Vec<&str> =
        answer["roots"].as_array().into_iter().flatten().filter_map(|root| root["uri"].as_str()).collect();
    Ok(text(&roots.join("\n")))
}

async fn talk(
    scenario: &Scenario,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let wanted = match is_modern(context) {
        true => context.meta.log_level(),
        false => scenario.level.lock().ok().map(|level| *level),
    };
    for (level, words) in [(LoggingLevel::Debug, "a quiet word"), (LoggingLevel::Warning, "a loud word")] {
        if wanted.is_some_and(|wanted| severity(level) >= severity(wanted)) {
            let message = json!({ "level": level, "logger": "scenario", "data": words });
            context.peer.notify_logging_message(made(message)?).await.map_err(lost)?;
        }
    }
    Ok(text("talked"))
}

fn severity(level: LoggingLevel) -> usize {
    use LoggingLevel::{Alert, Critical, Debug, Emergency, Error, Info, Notice, Warning};
    let rising = [Debug, Info, Notice, Warning, Error, Critical, Alert, Emergency];
    rising.into_iter().position(|known| known == level).unwrap_or(rising.len())
}
