//! Tools that return content, fail, log and report progress.

use std::time::Duration;

use refmcp_server::model::{CallToolResult, ContentBlock, LogLevel, ResourceContents};
use refmcp_server::{Call, CallError, NoArguments, Tool};
use tokio::time::sleep;

use crate::media;
use crate::tools::fixed;

/// The pause after a message.
const PAUSE: Duration = Duration::from_millis(50);
const LOGGER: &str = "conformance-test-server";

pub(super) fn tools() -> Vec<Tool> {
    let at_once = [
        fixed("test_simple_text", "Simple text", "Returns a simple text", simple_text),
        fixed("test_image_content", "Image content", "Returns an image", picture),
        fixed("test_audio_content", "Audio content", "Returns audio", sound),
        fixed("test_embedded_resource", "Embedded resource", "Returns an embedded resource", embedded),
        fixed("test_multiple_content_types", "Multiple content types", MULTIPLE, multiple_content_types),
        Tool::new("test_error_handling", "Returns a result that tells of an error", error_handling)
            .title("Error handling"),
        Tool::new("test_logging_tool", LOGGING, log_once).title("Logging on request"),
    ];
    let in_time = [
        Tool::new("test_reconnection", RECONNECTION, reconnection).title("Reconnection"),
        Tool::new("test_tool_with_logging", "Sends three log messages while it runs", with_logging)
            .title("Tool with logging"),
        Tool::new("test_tool_with_progress", "Reports progress three times while it runs", with_progress)
            .title("Tool with progress"),
    ];
    at_once.into_iter().map(Tool::inline).chain(in_time).map(Tool::read_only).collect()
}

const MULTIPLE: &str = "Returns text, an image and a resource";
const LOGGING: &str = "Logs; a request that did not ask for log messages gets none";
const RECONNECTION: &str = "Closes its stream before the result where there are streams";

fn simple_text() -> &'static str {
    "This is a simple text response for testing."
}

fn sound() -> ContentBlock {
    ContentBlock::audio(media::base64(media::TONE), media::WAV)
}

fn embedded() -> ContentBlock {
    let contents =
        ResourceContents::text("test://embedded-resource", "This is an embedded resource content.");
    ContentBlock::embedded(contents.mime_type("text/plain"))
}

fn multiple_content_types() -> Vec<ContentBlock> {
    let contents = ResourceContents::text("test://mixed-content-resource", r#"{"test":"data","value":123}"#);
    let resource = ContentBlock::embedded(contents.mime_type("application/json"));
    vec![ContentBlock::text("Multiple content types test:"), picture(), resource]
}

async fn error_handling(_: Call, _: NoArguments) -> Result<CallToolResult, CallError> {
    Err(CallError::new("This tool intentionally returns an error for testing"))
}

async fn log_once(call: Call, _: NoArguments) -> Result<&'static str, CallError> {
    call.log(LogLevel::Info, LOGGER, "Logging tool executed").await;
    Ok("Logging tool completed")
}

async fn reconnection(call: Call, _: NoArguments) -> Result<&'static str, CallError> {
    call.close_stream();
    sleep(PAUSE).await;
    Ok("Reconnection test completed")
}

async fn with_logging(call: Call, _: NoArguments) -> Result<&'static str, CallError> {
    for text in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        call.log(LogLevel::Info, LOGGER, text).await;
        sleep(PAUSE).await;
    }
    Ok("Tool with logging executed successfully")
}

async fn with_progress(call: Call, _: NoArguments) -> Result<&'static str, CallError> {
    for percent in [0.0, 50.0, 100.0] {
        call.progress(percent, Some(100.0), "").await;
        sleep(PAUSE).await;
    }
    Ok("Tool with progress executed successfully")
}

pub(super) fn picture() -> ContentBlock {
    ContentBlock::image(media::base64(media::RED_PIXEL), media::PNG)
}
