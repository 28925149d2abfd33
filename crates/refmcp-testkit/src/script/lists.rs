//! Resources and prompts, and their lists.

use refmcp_proto::engine::{CallFailure, Dispatch};
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::model::{
    Annotations, ContentBlock, GetPromptParams, GetPromptResult, Icon, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, Prompt, PromptArgument, PromptMessage,
    ReadResourceParams, ReadResourceResult, Resource, ResourceContents, ResourceTemplate, SubscribeParams,
};
use serde_json::json;

use super::questions::{name_question, open_questions};
use super::{Step, ask, done, empty, failed, members, params};

const KNOWN: &str = "file:///a.txt";
const FOLDER: &str = "file:///folder";
const ASKING: &str = "file:///who-are-you.txt";

pub(super) fn read(call: &Dispatch) -> Step {
    let uri = match params::<ReadResourceParams>(call) {
        Ok(params) => params.uri,
        Err(error) => return failed(error),
    };
    match uri.as_str() {
        KNOWN => {
            let meta = Some(members(json!({ "example.com/a": 1 })));
            done(ReadResourceResult::new(vec![ResourceContents {
                meta,
                ..ResourceContents::text(KNOWN, "content")
            }]))
        }
        ASKING => match open_questions(call, vec![name_question("name")]) {
            Ok(answers) => done(ReadResourceResult::text(ASKING, answers)),
            Err(open) => ask(open),
        },
        _ => failed(CallFailure::ResourceNotFound { uri }),
    }
}

/// Agrees to subscriptions for resources that exist.
pub(super) fn subscribe(call: &Dispatch) -> Step {
    match params::<SubscribeParams>(call) {
        Ok(params) if params.uri == KNOWN || params.uri == FOLDER => empty(),
        Ok(params) => failed(CallFailure::ResourceNotFound { uri: params.uri }),
        Err(error) => failed(error),
    }
}

pub(super) fn get_prompt(call: &Dispatch) -> Step {
    let params: GetPromptParams = match params(call) {
        Ok(params) => params,
        Err(error) => return failed(error),
    };
    match params.name.as_str() {
        "media" => done(
            GetPromptResult::new(vec![PromptMessage::user(ContentBlock::audio("AAAA", "audio/wav"))])
                .message(PromptMessage::assistant(ContentBlock::link(Resource::new(KNOWN, "a")))),
        ),
        "ask" => match open_questions(call, vec![name_question("name")]) {
            Ok(answers) => done(GetPromptResult::new(vec![PromptMessage::user(ContentBlock::text(answers))])),
            Err(open) => ask(open),
        },
        name => failed(RpcError::invalid_params(format!("unknown prompt: {name}"))),
    }
}

pub(super) fn resources() -> ListResourcesResult {
    let full = Resource {
        annotations: Some(Annotations::new().last_modified("2026-03-01T08:30:00Z").priority(0.5)),
        icons: Some(vec![Icon::new("https://example.com/icon.png")]),
        meta: Some(members(json!({ "example.com/a": 1 }))),
        ..Resource::new(KNOWN, "a").title("The A")
    };
    ListResourcesResult::new(vec![full])
}

pub(super) fn templates() -> ListResourceTemplatesResult {
    let full = ResourceTemplate {
        icons: Some(vec![Icon::new("https://example.com/icon.png")]),
        meta: Some(members(json!({ "example.com/a": 1 }))),
        ..ResourceTemplate::new("file:///{name}.txt", "text").title("Texts")
    };
    ListResourceTemplatesResult::new(vec![full])
}

pub(super) fn prompts() -> ListPromptsResult {
    let argument = PromptArgument { title: Some("Topic".to_owned()), ..PromptArgument::new("topic") };
    let full = Prompt {
        title: Some("Media".to_owned()),
        icons: Some(vec![Icon::new("https://example.com/icon.png")]),
        meta: Some(members(json!({ "example.com/a": 1 }))),
        ..Prompt::new("media").argument(argument)
    };
    ListPromptsResult::new(vec![full])
}
