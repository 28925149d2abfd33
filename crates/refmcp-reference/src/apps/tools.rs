//! The tools of the apps: one that opens each, and those that an app calls itself.

use std::time::Duration;

use refmcp_server::model::{CallToolResult, JsonObject, ResultMeta, UiVisibility};
use refmcp_server::revision::StructuredOutput;
use refmcp_server::{Call, CallError, Json, NoArguments, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{PAGES, Page};

pub(super) fn tools() -> Vec<Tool> {
    let mut tools: Vec<Tool> = PAGES.iter().map(opens).collect();
    let echo = Tool::new("app_echo", "Returns the text that an app sends", echo).title("Echo for apps");
    let for_model = Tool::new("app_for_model", "Says that it was called, which apps may not do", called);
    tools.push(echo.visible_to([UiVisibility::App]));
    tools.push(for_model.title("Tool for the model alone").visible_to([UiVisibility::Model]));
    tools.into_iter().map(|tool| tool.read_only().annotate(|hints| hints.open_world(false))).collect()
}

/// The tool that opens an app.
fn opens(page: &'static Page) -> Tool {
    let name = format!("app_{}", page.name);
    let tool = match page.name {
        "input" => Tool::new(name, page.about, input).output_schema(output_of_input()),
        "cancel" => Tool::new(name, page.about, wait),
        "messages" | "teardown" => Tool::new(name, page.about, move |_: Call, _: Automatic| open(page)),
        _ => Tool::new(name, page.about, move |_: Call, _: NoArguments| open(page)),
    };
    let uri = page.uri();
    let text = format!("This client shows no apps: the verdict on a host is shown by {uri}.");
    tool.title(format!("{} of an app", page.title)).app(uri).text_without_app(text)
}

async fn open(page: &Page) -> Result<String, CallError> {
    Ok(format!("{} is shown beside this call: {}.", page.uri(), page.about))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Automatic {
    /// Whether the app presses its buttons by itself
    #[serde(default, rename = "auto")]
    _auto: bool,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Any text
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Any number
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<f64>,
    /// Any texts
    #[serde(skip_serializing_if = "Option::is_none")]
    list: Option<Vec<String>>,
}

fn output_of_input() -> JsonObject {
    let arguments = json!({ "type": "object", "description": "What the tool was called with" });
    let schema = [
        ("type", "object".into()),
        ("properties", json!({ "arguments": arguments })),
        ("required", json!(["arguments"])),
    ];
    schema.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
}

async fn input(call: Call, arguments: Input) -> Result<CallToolResult, CallError> {
    let has_data = call.peer().rules().structured_output != StructuredOutput::Unknown;
    let members = if has_data { "content, structuredContent and _meta" } else { "content and _meta" };
    let text = format!("ui://refmcp/input compares what it gets with this result, which has {members}.");
    let mut meta = ResultMeta::default();
    meta.extra.insert("refmcp/for-the-app".to_owned(), Value::from("unchanged"));
    let data = json!({ "arguments": arguments });
    Ok(CallToolResult::text(text).structured_content(data).meta(meta))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wait {
    /// How long the call takes, in milliseconds
    #[serde(default = "ten_seconds")]
    #[schemars(range(max = 60_000))]
    ms: u64,
}

fn ten_seconds() -> u64 {
    10_000
}

async fn wait(_: Call, Wait { ms }: Wait) -> Result<String, CallError> {
    sleep(Duration::from_millis(ms)).await;
    Ok(format!("The call was not cancelled in {ms} ms."))
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Echo {
    /// The text to return
    text: String,
}

async fn echo(_: Call, echo: Echo) -> Result<Json<Echo>, CallError> {
    Ok(Json(echo))
}

async fn called(_: Call, _: NoArguments) -> Result<String, CallError> {
    Ok("The tool was called.".to_owned())
}
