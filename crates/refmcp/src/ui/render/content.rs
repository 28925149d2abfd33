//! The blocks that results and messages are made of.

use refmcp_proto::model::{ContentBlock, Resource, ResourceBody, ResourceContents};
use serde_json::Value;

use super::View;
use super::lists::bytes;
use crate::ui::render::media::Shown;
use crate::ui::text::{indent, multi_line, one_line};

/// How deep blocks within blocks are shown.
const DEEPEST: usize = 4;

/// One block, ending in a line break.
pub(crate) fn content(block: &ContentBlock, view: &View) -> String {
    nested(block, view, 0)
}

fn nested(block: &ContentBlock, view: &View, depth: usize) -> String {
    match block {
        ContentBlock::Text(block) => lines(&multi_line(&block.text)),
        ContentBlock::Image(block) => media("image", &block.data, &block.mime_type, view),
        ContentBlock::Audio(block) => media("audio", &block.data, &block.mime_type, view),
        ContentBlock::ResourceLink(resource) => link(resource, view),
        ContentBlock::Resource(block) => resource_contents(&block.resource, view),
        ContentBlock::ToolUse(block) => {
            let input = multi_line(&pretty(&Value::Object(block.input.clone()))).into_owned();
            format!("[calls the tool {}]\n{}\n", one_line(&block.name), indent(&input, "  "))
        }
        ContentBlock::ToolResult(block) if depth < DEEPEST => {
            let failed = if block.is_error == Some(true) { ", which failed" } else { "" };
            let inner: String = block.content.iter().map(|block| nested(block, view, depth + 1)).collect();
            format!(
                "[result of the tool call {}{failed}]\n{}\n",
                one_line(&block.tool_use_id),
                indent(&inner, "  ")
            )
        }
        ContentBlock::ToolResult(_) => "[result of a tool call, nested too deep to be shown]\n".to_owned(),
        ContentBlock::Unknown(block) => {
            let shown = multi_line(&pretty(&Value::Object(block.clone()))).into_owned();
            format!("[content of an unknown kind]\n{}\n", indent(&shown, "  "))
        }
    }
}

/// What was read at an address, with the address above it.
pub(super) fn resource_contents(contents: &ResourceContents, view: &View) -> String {
    let kind = contents.mime_type.as_deref().map(|kind| format!("  {}", one_line(kind))).unwrap_or_default();
    let address = view.paint.value(&one_line(&contents.uri));
    let body = match &contents.body {
        ResourceBody::Text(text) => lines(&multi_line(text)),
        ResourceBody::Blob(data) => {
            media("data", data, contents.mime_type.as_deref().unwrap_or_default(), view)
        }
    };
    format!("{address}{kind}\n{body}")
}

/// A value as JSON with line breaks.
pub(super) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
}

/// A text that ends in a line break.
pub(super) fn lines(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

fn link(resource: &Resource, view: &View) -> String {
    let name = one_line(resource.title.as_ref().unwrap_or(&resource.name)).into_owned();
    let kind = resource.mime_type.as_deref().map(|kind| one_line(kind).into_owned());
    let size = resource.size.map(bytes);
    let about = resource.description.as_deref().map(|text| one_line(text).into_owned());
    let notes: Vec<String> = [Some(name), kind, size, about].into_iter().flatten().collect();
    format!("[link] {}  {}\n", view.paint.value(&one_line(&resource.uri)), notes.join(", "))
}

fn media(what: &str, data: &str, mime_type: &str, view: &View) -> String {
    let kind = one_line(mime_type);
    match view.media.show(data, mime_type) {
        Ok(Shown::Inline(sequence)) => format!("{sequence}\n"),
        Ok(Shown::Saved(path, length)) => {
            let length = bytes(length as u64);
            format!("[{what} {kind}, {length}] saved to {}\n", view.paint.value(&path.display().to_string()))
        }
        Ok(Shown::LeftOut(length)) => {
            let length = bytes(length as u64);
            format!("[{what} {kind}, {length}] not shown: no terminal is there; --output json has the data\n")
        }
        Err(fault) => {
            let fault = fault.to_string();
            format!(
                "[{what} {kind}] {}\n",
                view.paint.wrong(&format!("cannot be shown: {}", one_line(&fault)))
            )
        }
    }
}
