//! Every example of the newest revision's schema must survive reading and writing unchanged.

#![allow(clippy::disallowed_methods, reason = "the examples are files")]

use std::fs;
use std::path::{Path, PathBuf};

use refmcp_proto::model::*;
use refmcp_testkit::unchecked::not_checked;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Reads the value as `T`, writes it again and compares.
fn same<T: Serialize + DeserializeOwned>(json: &Value) -> Result<(), String> {
    // Through text, as on the wire, so that readers which look at the raw text are exercised too.
    let read: T = serde_json::from_str(&json.to_string()).map_err(|error| error.to_string())?;
    let written = serde_json::to_value(&read).map_err(|error| error.to_string())?;
    if &written == json { Ok(()) } else { Err(format!("came back as {written}")) }
}

/// Like [`same`], for a content block of the given type.
fn block(json: &Value, kind: &str) -> Result<(), String> {
    let content: ContentBlock = serde_json::from_value(json.clone()).map_err(|error| error.to_string())?;
    if matches!(content, ContentBlock::Unknown(_)) || content.kind() != kind {
        return Err(format!("was not read as a {kind} block"));
    }
    same::<ContentBlock>(json)
}

/// Like [`same`], for a form field of the kind that `is` tells.
fn field(json: &Value, is: fn(&FieldSchema) -> bool) -> Result<(), String> {
    let field: FieldSchema = serde_json::from_value(json.clone()).map_err(|error| error.to_string())?;
    if is(&field) { same::<FieldSchema>(json) } else { Err("was read as another kind of field".to_owned()) }
}

/// A request or notification: the method is the expected one, and the parameters survive.
fn message<T: Serialize + DeserializeOwned>(json: &Value, method: &str) -> Result<(), String> {
    if json["method"] != method {
        return Err(format!("method is {}, not {method}", json["method"]));
    }
    same::<T>(&json["params"])
}

/// A response: the result survives.
fn response<T: Serialize + DeserializeOwned>(json: &Value) -> Result<(), String> {
    same::<T>(&json["result"])
}

/// A request of a server, which is also what a multi-round result carries.
fn input_request(json: &Value, method: &str) -> Result<(), String> {
    let mut bare = json!({"method": json["method"], "params": json["params"]});
    if bare["params"].is_null() {
        // Only `roots/list` may leave its parameters out, and it is written with empty ones.
        bare["params"] = json!({});
    }
    let request: InputRequest = serde_json::from_value(bare.clone()).map_err(|error| error.to_string())?;
    if request.method() != method {
        return Err(format!("was read as {}, not {method}", request.method()));
    }
    same::<InputRequest>(&bare)
}

/// An error object: the code is the expected one, and there is a message.
fn error(json: &Value, code: i64) -> Result<(), String> {
    if json["code"] != code {
        return Err(format!("code is {}, not {code}", json["code"]));
    }
    if json["message"].is_string() { Ok(()) } else { Err("no message".to_owned()) }
}

/// Checks one example by the name of the type it belongs to; `None` when the name has no mapping.
fn check(name: &str, json: &Value) -> Option<Result<(), String>> {
    Some(match name {
        "AudioContent" => block(json, "audio"),
        "BlobResourceContents" | "TextResourceContents" => same::<ResourceContents>(json),
        "BooleanSchema" => field(json, |field| matches!(field, FieldSchema::Boolean(_))),
        "CallToolRequest" => message::<CallToolParams>(json, "tools/call"),
        "CallToolRequestParams" => same::<CallToolParams>(json),
        "CallToolResult" => same::<CallToolResult>(json),
        "CallToolResultResponse" => response::<CallToolResult>(json),
        "CancelledNotification" => message::<CancelledParams>(json, "notifications/cancelled"),
        "CancelledNotificationParams" => same::<CancelledParams>(json),
        "ClientCapabilities" => same::<ClientCapabilities>(json),
        "CompleteRequest" => message::<CompleteParams>(json, "completion/complete"),
        "CompleteRequestParams" => same::<CompleteParams>(json),
        "CompleteResult" => same::<CompleteResult>(json),
        "CompleteResultResponse" => response::<CompleteResult>(json),
        "CreateMessageRequest" => input_request(json, "sampling/createMessage"),
        "CreateMessageRequestParams" => same::<CreateMessageParams>(json),
        "CreateMessageResult" => same::<CreateMessageResult>(json),
        "DiscoverRequest" => message::<RequestParams>(json, "server/discover"),
        "DiscoverResult" => same::<DiscoverResult>(json),
        "DiscoverResultResponse" => response::<DiscoverResult>(json),
        "ElicitRequest" => input_request(json, "elicitation/create"),
        "ElicitRequestFormParams" => same::<ElicitFormParams>(json).and_then(|()| same::<ElicitParams>(json)),
        "ElicitRequestURLParams" => same::<ElicitUrlParams>(json).and_then(|()| same::<ElicitParams>(json)),
        "ElicitResult" => same::<ElicitResult>(json),
        "EmbeddedResource" => block(json, "resource"),
        "GetPromptRequest" => message::<GetPromptParams>(json, "prompts/get"),
        "GetPromptRequestParams" => same::<GetPromptParams>(json),
        "GetPromptResult" => same::<GetPromptResult>(json),
        "GetPromptResultResponse" => response::<GetPromptResult>(json),
        "HeaderMismatchError" => error(&json["error"], -32020),
        "ImageContent" => block(json, "image"),
        "InputRequests" => same::<InputRequests>(json),
        "InputRequiredResult" => same::<InputRequiredResult>(json),
        "InputResponses" => same::<InputResponses>(json),
        "InternalError" => error(json, -32603),
        "InvalidParamsError" => error(json, -32602),
        "ListPromptsRequest" => message::<PaginatedParams>(json, "prompts/list"),
        "ListPromptsResult" => same::<ListPromptsResult>(json),
        "ListPromptsResultResponse" => response::<ListPromptsResult>(json),
        "ListResourceTemplatesRequest" => message::<PaginatedParams>(json, "resources/templates/list"),
        "ListResourceTemplatesResult" => same::<ListResourceTemplatesResult>(json),
        "ListResourceTemplatesResultResponse" => response::<ListResourceTemplatesResult>(json),
        "ListResourcesRequest" => message::<PaginatedParams>(json, "resources/list"),
        "ListResourcesResult" => same::<ListResourcesResult>(json),
        "ListResourcesResultResponse" => response::<ListResourcesResult>(json),
        "ListRootsRequest" => input_request(json, "roots/list"),
        "ListRootsResult" => same::<ListRootsResult>(json),
        "ListToolsRequest" => message::<PaginatedParams>(json, "tools/list"),
        "ListToolsResult" => same::<ListToolsResult>(json),
        "ListToolsResultResponse" => response::<ListToolsResult>(json),
        "LoggingMessageNotification" => message::<LogParams>(json, "notifications/message"),
        "LoggingMessageNotificationParams" => same::<LogParams>(json),
        "MethodNotFoundError" => error(json, -32601),
        "MissingRequiredClientCapabilityError" => {
            error(&json["error"], -32021).and_then(|()| same::<MissingCapabilityData>(&json["error"]["data"]))
        }
        "ModelPreferences" => same::<ModelPreferences>(json),
        "NumberSchema" => field(json, |field| matches!(field, FieldSchema::Number(_))),
        "PaginatedRequestParams" => same::<PaginatedParams>(json),
        "ParseError" => error(json, -32700),
        "ProgressNotification" => message::<ProgressParams>(json, "notifications/progress"),
        "ProgressNotificationParams" => same::<ProgressParams>(json),
        "PromptListChangedNotification" => {
            message::<NotificationParams>(json, "notifications/prompts/list_changed")
        }
        "ReadResourceRequest" => message::<ReadResourceParams>(json, "resources/read"),
        "ReadResourceResult" => same::<ReadResourceResult>(json),
        "ReadResourceResultResponse" => response::<ReadResourceResult>(json),
        "Resource" => same::<Resource>(json),
        "ResourceLink" => block(json, "resource_link"),
        "ResourceListChangedNotification" => {
            message::<NotificationParams>(json, "notifications/resources/list_changed")
        }
        "ResourceUpdatedNotification" => {
            message::<ResourceUpdatedParams>(json, "notifications/resources/updated")
        }
        "ResourceUpdatedNotificationParams" => same::<ResourceUpdatedParams>(json),
        "Root" => same::<Root>(json),
        "SamplingMessage" => same::<SamplingMessage>(json),
        "ServerCapabilities" => same::<ServerCapabilities>(json),
        "StringSchema" => field(json, |field| matches!(field, FieldSchema::Text(_))),
        "SubscriptionsAcknowledgedNotification" => {
            message::<AcknowledgedParams>(json, "notifications/subscriptions/acknowledged")
        }
        "SubscriptionsListenRequest" => message::<ListenParams>(json, "subscriptions/listen"),
        "SubscriptionsListenResult" => same::<SubscriptionsListenResult>(json),
        "SubscriptionsListenResultResponse" => response::<SubscriptionsListenResult>(json),
        "TextContent" => block(json, "text"),
        "TitledMultiSelectEnumSchema" | "UntitledMultiSelectEnumSchema" => {
            field(json, |field| matches!(field, FieldSchema::MultiChoice(_)))
        }
        "TitledSingleSelectEnumSchema" | "UntitledSingleSelectEnumSchema" => {
            field(json, |field| matches!(field, FieldSchema::SingleChoice(_)))
        }
        "Tool" => same::<Tool>(json),
        "ToolListChangedNotification" => {
            message::<NotificationParams>(json, "notifications/tools/list_changed")
        }
        "ToolResultContent" => block(json, "tool_result"),
        "ToolUseContent" => block(json, "tool_use"),
        "UnsupportedProtocolVersionError" => error(&json["error"], -32022)
            .and_then(|()| same::<UnsupportedVersionData>(&json["error"]["data"])),
        _ => return None,
    })
}

/// The entries of a folder, sorted so that failures come in the same order every time.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn every_example_survives_a_round_trip() {
    let root = refmcp_testkit::schema::folder().map(|schemas| schemas.join("2026-07-28/examples"));
    let Some(root) = root.filter(|root| root.is_dir()) else {
        // No package of a registry carries them.
        return not_checked(
            "the official examples of 2026-07-28, since they are not in ../shared/spec/schema beside the checkout",
        );
    };
    let mut checked = 0;
    let mut problems = Vec::new();
    for folder in entries(&root).into_iter().filter(|path| path.is_dir()) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        for file in entries(&folder).into_iter().filter(|path| path.extension().is_some_and(|e| e == "json"))
        {
            let json: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
            checked += 1;
            match check(&name, &json) {
                Some(Ok(())) => {}
                Some(Err(problem)) => problems.push(format!("{}: {problem}", file.display())),
                None => problems.push(format!("{}: no model type for {name}", file.display())),
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(checked > 0, "no examples in {}", root.display());
}
