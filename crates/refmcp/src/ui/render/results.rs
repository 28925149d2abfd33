//! The answers to single requests.

use refmcp_proto::model::{
    CallToolResult, Completion, GetPromptResult, LogLevel, LogParams, ReadResourceResult, ResourceBody, Role,
    Tool,
};
use serde_json::Value;

use super::content::{content, lines, pretty, resource_contents, within};
use super::{Rendered, View};
use crate::ui::render::media::decode;
use crate::ui::text::one_line;

/// What a tool says about itself, each to be read after "says it". None of it is checked.
pub(crate) fn hints(tool: &Tool) -> Vec<&'static str> {
    let Some(hints) = &tool.annotations else { return Vec::new() };
    let read_only = hints.read_only_hint == Some(true);
    let unless_read_only = |hint: Option<bool>| hint.filter(|_| !read_only);
    let said = [
        (hints.read_only_hint, "is read-only", "changes things"),
        // The next two mean nothing for a tool that changes nothing.
        (unless_read_only(hints.destructive_hint), "may destroy things", "only adds things"),
        (unless_read_only(hints.idempotent_hint), "has no further effect when repeated", ""),
        (hints.open_world_hint, "reaches out to the world", "stays within its own world"),
    ];
    let said = said.into_iter().filter_map(|(hint, yes, no)| Some(if hint? { yes } else { no }));
    said.filter(|words| !words.is_empty()).collect()
}

/// What a tool returned: every text once. That it failed, or returned nothing, is not part of it.
pub(crate) fn tool_result(result: &CallToolResult, view: &View) -> Rendered {
    let mut out = Rendered::default();
    for (at, block) in result.content.iter().enumerate() {
        content(&mut out, block, &format!(".content[{at}]"), view);
    }
    if let Some(structured) = &result.structured_content
        && !repeats(result, structured)
    {
        out.text.push_str(&lines(&view.text(&pretty(structured))));
    }
    out
}

/// Whether the texts of the result are the structured content once more: all of it in one text, or what its only
/// member `result` holds, in one text or a text for each item, as some libraries wrap what is no object.
fn repeats(result: &CallToolResult, structured: &Value) -> bool {
    let texts: Vec<&str> = result.content.iter().filter_map(|block| block.as_text()).collect();
    if texts.iter().any(|text| says(text, structured)) {
        return true;
    }
    let Some(wrapped) = structured.as_object().filter(|all| all.len() == 1).and_then(|all| all.get("result"))
    else {
        return false;
    };
    let each = wrapped.as_array().is_some_and(|items| {
        items.len() == texts.len() && texts.iter().zip(items).all(|(text, item)| says(text, item))
    });
    each || texts.iter().any(|text| says(text, wrapped))
}

/// Whether a text is a value: as JSON, or as it is.
fn says(text: &str, value: &Value) -> bool {
    value.as_str() == Some(text)
        || serde_json::from_str::<Value>(text).is_ok_and(|other| is_same(&other, value))
}

/// Whether two values are the same, however their numbers are written.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let there = |(name, value)| other.get(name).is_some_and(|other| is_same(value, other));
            one.len() == other.len() && one.iter().all(there)
        }
        (one, other) => one == other,
    }
}

/// What was read.
pub(crate) fn resource(result: &ReadResourceResult, view: &View) -> Rendered {
    let mut out = Rendered::default();
    for (at, contents) in result.contents.iter().enumerate() {
        if at > 0 && !view.is_piped {
            out.text.push('\n');
        }
        resource_contents(&mut out, contents, &format!(".contents[{at}]"), view);
    }
    out
}

/// What was read, byte for byte, for an output that is no terminal; `None` unless it is one piece.
pub(crate) fn exact_bytes(result: &ReadResourceResult) -> Option<Vec<u8>> {
    let [only] = result.contents.as_slice() else { return None };
    match &only.body {
        ResourceBody::Text(text) => Some(text.clone().into_bytes()),
        ResourceBody::Blob(data) => decode(data).ok(),
    }
}

/// The messages of a prompt; for a program, their texts.
pub(crate) fn prompt(result: &GetPromptResult, view: &View) -> Rendered {
    let mut out = Rendered::default();
    if let Some(description) = &result.description {
        out.note(&view.paint.faint(&one_line(description)), view);
        if !view.is_piped {
            out.text.push('\n');
        }
    }
    let roles = result.messages.iter().map(|message| match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    });
    if view.is_piped && result.messages.len() > 1 {
        let roles = roles.clone().collect::<Vec<_>>().join(", ");
        out.note(&format!("[messages] {roles}; -o json has each with its role"), view);
    }
    for ((at, message), role) in result.messages.iter().enumerate().zip(roles) {
        let mut inner = Rendered::default();
        content(&mut inner, &message.content, &format!(".messages[{at}].content"), view);
        out.notes.push_str(&inner.notes);
        if !view.is_piped {
            out.text.push_str(&format!("{}\n", view.paint.strong(&format!("{role}:"))));
        }
        out.text.push_str(&within(&inner.text, view));
    }
    out
}

/// Proposals, a line each.
pub(crate) fn completion(completion: &Completion, view: &View) -> String {
    let mut out: String = completion.values.iter().map(|value| format!("{}\n", one_line(value))).collect();
    let shown = completion.values.len() as u64;
    let note = match completion.total.filter(|total| *total > shown) {
        Some(total) => Some(format!("{} more", total - shown)),
        None if completion.has_more == Some(true) => Some("and more".to_owned()),
        None if shown == 0 => Some("no proposals".to_owned()),
        None => None,
    };
    if let Some(note) = note {
        out.push_str(&view.paint.faint(&format!("({note})")));
        out.push('\n');
    }
    out
}

/// A log message of the server's, on one line.
pub(crate) fn log_message(params: &LogParams, view: &View) -> String {
    let level = params.level.as_str();
    let level = match params.level {
        LogLevel::Debug | LogLevel::Info => view.paint.faint(level),
        LogLevel::Notice | LogLevel::Warning => view.paint.careful(level),
        LogLevel::Error | LogLevel::Critical | LogLevel::Alert | LogLevel::Emergency => {
            view.paint.wrong(level)
        }
    };
    let logger = params.logger.as_deref().map(|logger| format!(" {}", one_line(logger))).unwrap_or_default();
    let said = params.data.as_str().map_or_else(|| params.data.to_string(), str::to_owned);
    format!("[server{logger}] {level}: {}\n", one_line(&said))
}
