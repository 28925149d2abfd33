//! The blocks that results and messages are made of.

use refmcp_proto::model::{ContentBlock, JsonObject, Resource, ResourceBody, ResourceContents};
use serde_json::Value;

use super::lists::bytes;
use super::{Rendered, View};
use crate::ui::render::media::Shown;
use crate::ui::text::{indent, one_line};

/// How deep blocks within blocks are shown.
const DEEPEST: usize = 4;

/// Adds one block, which is at this path of the result, ending in a line break.
pub(super) fn content(out: &mut Rendered, block: &ContentBlock, path: &str, view: &View) {
    nested(out, block, path, view, 0);
}

fn nested(out: &mut Rendered, block: &ContentBlock, path: &str, view: &View, depth: usize) {
    match block {
        ContentBlock::Text(block) => out.text.push_str(&lines(&view.text(&block.text))),
        ContentBlock::Image(block) => {
            media(out, "image", &block.data, &block.mime_type, &format!("{path}.data"), view);
        }
        ContentBlock::Audio(block) => {
            media(out, "audio", &block.data, &block.mime_type, &format!("{path}.data"), view);
        }
        ContentBlock::ResourceLink(resource) => link(out, resource, view),
        ContentBlock::Resource(block) => {
            resource_contents(out, &block.resource, &format!("{path}.resource"), view);
        }
        ContentBlock::ToolUse(block) => {
            out.note(&format!("[calls the tool {}]", one_line(&block.name)), view);
            json(out, &block.input, view);
        }
        ContentBlock::ToolResult(block) if depth < DEEPEST => {
            let failed = if block.is_error == Some(true) { ", which failed" } else { "" };
            out.note(&format!("[result of the tool call {}{failed}]", one_line(&block.tool_use_id)), view);
            let mut inner = Rendered::default();
            for (at, block) in block.content.iter().enumerate() {
                nested(&mut inner, block, &format!("{path}.content[{at}]"), view, depth + 1);
            }
            out.notes.push_str(&inner.notes);
            out.text.push_str(&within(&inner.text, view));
        }
        ContentBlock::ToolResult(_) => {
            out.note("[result of a tool call, nested too deep to be shown]", view);
        }
        ContentBlock::Unknown(block) => {
            out.note("[content of an unknown kind]", view);
            json(out, block, view);
        }
    }
}

/// Adds what was read at an address, with the address above it.
pub(super) fn resource_contents(out: &mut Rendered, contents: &ResourceContents, path: &str, view: &View) {
    let kind = contents.mime_type.as_deref().map(|kind| format!("  {}", one_line(kind))).unwrap_or_default();
    let address = view.paint.value(&one_line(&contents.uri));
    let what = if view.is_piped { "[resource] " } else { "" };
    out.note(&format!("{what}{address}{kind}"), view);
    match &contents.body {
        ResourceBody::Text(text) => out.text.push_str(&lines(&view.text(text))),
        ResourceBody::Blob(data) => {
            let kind = contents.mime_type.as_deref().unwrap_or_default();
            media(out, "data", data, kind, &format!("{path}.blob"), view);
        }
    }
}

/// A value as JSON with line breaks.
pub(super) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
}

/// A text that ends in a line break.
pub(super) fn lines(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

fn json(out: &mut Rendered, members: &JsonObject, view: &View) {
    out.text.push_str(&within(&view.text(&pretty(&Value::Object(members.clone()))), view));
}

/// A text below its heading; a program gets the text alone.
pub(super) fn within(text: &str, view: &View) -> String {
    if view.is_piped { lines(text) } else { format!("{}\n", indent(text, "  ")) }
}

fn link(out: &mut Rendered, resource: &Resource, view: &View) {
    let name = one_line(resource.title.as_ref().unwrap_or(&resource.name)).into_owned();
    let kind = resource.mime_type.as_deref().map(|kind| one_line(kind).into_owned());
    let size = resource.size.map(bytes);
    let about = resource.description.as_deref().map(|text| one_line(text).into_owned());
    let notes: Vec<String> = [Some(name), kind, size, about].into_iter().flatten().collect();
    let address = one_line(&resource.uri);
    if view.is_piped {
        // The address is what the block holds.
        out.text.push_str(&format!("{address}\n"));
    }
    out.note(&format!("[link] {}  {}", view.paint.value(&address), notes.join(", ")), view);
}

/// Adds what is no text. `path` leads to its base64 in the result.
fn media(out: &mut Rendered, what: &str, data: &str, mime_type: &str, path: &str, view: &View) {
    let kind = one_line(mime_type);
    let kind = if kind.is_empty() { what.to_owned() } else { format!("{what} {kind}") };
    let note = match view.media.show(data, mime_type) {
        Ok(Shown::Inline(sequence)) => sequence,
        Ok(Shown::Saved(path, length)) => {
            let length = bytes(length as u64);
            format!("[{kind}, {length}] saved to {}", view.paint.value(&path.display().to_string()))
        }
        Ok(Shown::LeftOut(length)) => {
            let length = bytes(length as u64);
            format!(
                "[{kind}, {length}] is no text and is left out; to save it, add \
                 -o json | jq -r '{path}' | base64 -d > FILE"
            )
        }
        Err(error) => {
            let error = format!("cannot be shown: {}", one_line(&error.to_string()));
            format!("[{kind}] {}", view.paint.wrong(&error))
        }
    };
    out.note(&note, view);
}
