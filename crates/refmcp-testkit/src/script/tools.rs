//! Tools, each for one situation.

use refmcp_proto::engine::{CallFailure, Dispatch};
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::model::{
    Annotations, CallToolResult, ContentBlock, Icon, JsonObject, ListToolsResult, LogLevel, Resource,
    ResourceContents, Role, TextContent, Tool, ToolAnnotations,
};
use serde_json::{Value, json};

use super::{Step, done, failed, log, members, progress, questions, tool_params};

/// What calling a tool does.
pub(super) fn call(call: &Dispatch) -> Vec<Step> {
    let (name, arguments) = match tool_params(call) {
        Ok(params) => params,
        Err(error) => return vec![failed(error)],
    };
    match name.as_str() {
        "echo" => vec![echo(&arguments)],
        "fail" => vec![done(CallToolResult::error("it did not work"))],
        "error" => {
            vec![failed(RpcError::new(-31_000, "an error of the tool's own").with_data(json!({ "a": 1 })))]
        }
        "never" => Vec::new(),
        "progress" => vec![
            progress(1.0, "first"),
            progress(1.0, "not further"),
            progress(0.5, "back"),
            progress(f64::NAN, "nowhere"),
            progress(2.5, "second"),
            text("done"),
        ],
        "log" => vec![
            log(LogLevel::Debug, "a detail"),
            log(LogLevel::Info, "a fact"),
            log(LogLevel::Error, "a fault"),
            text("done"),
        ],
        "blocks" => vec![done(blocks())],
        "structured_list" => vec![done(CallToolResult::structured(json!([1, 2])))],
        _ => questions::call(&name, call)
            .unwrap_or_else(|| vec![failed(RpcError::invalid_params(format!("unknown tool: {name}")))]),
    }
}

pub(super) fn text(text: &str) -> Step {
    done(CallToolResult::text(text))
}

fn echo(arguments: &JsonObject) -> Step {
    match arguments.get("message") {
        Some(Value::String(message)) => text(message),
        _ => failed(CallFailure::BadArguments("/message: a string is needed".to_owned())),
    }
}

/// A result with every kind of block, and everything that a block can have.
fn blocks() -> CallToolResult {
    let annotations = Annotations { audience: Some(vec![Role::User]), ..Annotations::new() }
        .last_modified("2026-03-01T08:30:00Z");
    let meta = Some(members(json!({ "example.com/a": 1 })));
    let annotated = TextContent { meta, annotations: Some(annotations), ..TextContent::new("annotated") };
    let link = Resource::new("file:///a.txt", "a").title("The A");
    CallToolResult::structured(json!({ "count": 5 }))
        .block(ContentBlock::Text(annotated))
        .block(ContentBlock::image("AAAA", "image/png"))
        .block(ContentBlock::audio("AAAA", "audio/wav"))
        .block(ContentBlock::embedded(ResourceContents::text("file:///a.txt", "content")))
        .block(ContentBlock::link(link))
}

/// The list of tools: those that show what a revision knows of a tool.
pub(super) fn list() -> ListToolsResult {
    let object = |properties: Value| members(json!({ "type": "object", "properties": properties }));
    let full = Tool {
        title: Some("Blocks".to_owned()),
        annotations: Some(ToolAnnotations::new().read_only(true)),
        icons: Some(vec![Icon::new("https://example.com/icon.png")]),
        output_schema: Some(object(json!({ "count": { "type": "integer" } })).into()),
        meta: Some(members(json!({ "example.com/a": 1 }))),
        ..Tool::new("blocks", "Every kind of block.")
    };
    let any_output = Tool {
        output_schema: Some(members(json!({ "type": "array" })).into()),
        ..Tool::new("structured_list", "A list as structured content.")
    };
    let echo = Tool::new("echo", "Returns the message.")
        .input_schema(object(json!({ "message": { "type": "string" } })));
    ListToolsResult::new(vec![echo, full, any_output])
}
