//! Tools that return content, fail, log and report progress.

use std::time::Duration;

use refmcp_server::model::{CallToolResult, ContentBlock, LogLevel, ResourceContents};
use refmcp_server::{Call, CallError, NoArguments, Tool};
use tokio::time::sleep;

use crate::media;

/// The pause between two messages.
const PAUSE: Duration = Duration::from_millis(50);
const LOGGER: &str = "conformance-test-server";

pub(super) fn tools() -> Vec<Tool> {
    let at_once = [
        Tool::new("test_simple_text", "Returns a simple text", simple_text).title("Simple text"),
        Tool::new("test_image_content", "Returns an image", image).title("Image content"),
        Tool::new("test_audio_content", "Returns audio", audio).title("Audio content"),
        Tool::new("test_embedded_resource", "Returns an embedded resource", embedded_resource)
            .title("Embedded resource"),
        Tool::new(
            "test_multiple_content_types",
            "Returns text, an image and a resource",
            multiple_content_types,
        )
        .title("Multiple content types"),
        Tool::new("test_error_handling", "Returns a result that tells of an error", error_handling)
            .title("Error handling"),
        Tool::new(
            "test_logging_tool",
            "Logs; a request that did not ask for log messages gets none",
            log_once,
        )
        .title("Logging on request"),
    ];
    let in_time = [
        Tool::new(
            "test_reconnection",
            "Closes its stream before the result where there are streams",
            reconnection,
        )
        .title("Reconnection"),
        Tool::new("test_tool_with_logging", "Sends three log messages while it runs", with_logging)
            .title("Tool with logging"),
        Tool::new("test_tool_with_progress", "Reports progress three times while it runs", with_progress)
            .title("Tool with progress"),
    ];
    at_once.into_iter().map(Tool::inline).chain(in_time).map(Tool::read_only).collect()
}

async fn simple_text(_: Call, _: NoArguments) -> Result<&'static str, CallError> {
    Ok("This is a simple text response for testing.")
}

async fn image(_: Call, _: NoArguments) -> Result<ContentBlock, CallError> {
    Ok(picture())
}

async fn audio(_: Call, _: NoArguments) -> Result<ContentBlock, CallError> {
    Ok(ContentBlock::audio(media::base64(media::TONE), media::WAV))
}

async fn embedded_resource(_: Call, _: NoArguments) -> Result<ContentBlock, CallError> {
    let contents =
        ResourceContents::text("test://embedded-resource", "This is an embedded resource content.");
    Ok(ContentBlock::embedded(contents.mime_type("text/plain")))
}

async fn multiple_content_types(_: Call, _: NoArguments) -> Result<Vec<ContentBlock>, CallError> {
    let contents = ResourceContents::text("test://mixed-content-resource", r#"{"test":"data","value":123}"#);
    let resource = ContentBlock::embedded(contents.mime_type("application/json"));
    Ok(vec![ContentBlock::text("Multiple content types test:"), picture(), resource])
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
    call.log(LogLevel::Info, LOGGER, "Tool execution started").await;
    sleep(PAUSE).await;
    call.log(LogLevel::Info, LOGGER, "Tool processing data").await;
    sleep(PAUSE).await;
    call.log(LogLevel::Info, LOGGER, "Tool execution completed").await;
    Ok("Tool with logging executed successfully")
}

async fn with_progress(call: Call, _: NoArguments) -> Result<&'static str, CallError> {
    call.progress(0.0, Some(100.0), "").await;
    sleep(PAUSE).await;
    call.progress(50.0, Some(100.0), "").await;
    sleep(PAUSE).await;
    call.progress(100.0, Some(100.0), "").await;
    Ok("Tool with progress executed successfully")
}

pub(super) fn picture() -> ContentBlock {
    ContentBlock::image(media::base64(media::RED_PIXEL), media::PNG)
}
