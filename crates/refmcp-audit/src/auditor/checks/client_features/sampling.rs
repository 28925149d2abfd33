//! Rules about sampling.

use refmcp_proto::revision::Rules;
use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

use crate::auditor::checks::Context;
use crate::auditor::checks::values::{Violation, items, text, violation_unless};
use crate::auditor::conversation::declares;

/// A server asks for a sample.
pub(in crate::auditor::checks) fn wanted(
    params: &Value,
    capabilities: Option<&Value>,
    rules: &Rules,
    context: &mut Context<'_>,
) {
    // A client that does not sample at all is asked nothing by other rules.
    if let Some(capabilities) = capabilities.filter(|it| declares(it, &["sampling"])) {
        if params.get("tools").is_some() || params.get("toolChoice").is_some() {
            let what = "tools for a client that does not declare sampling.tools";
            let expected = "leave tools and toolChoice out, or ask a client that declares sampling.tools";
            context.require(&rule::SAMP_04, declares(capabilities, &["sampling", "tools"]), what, expected);
        }
        if let Some(included) = text(params, "includeContext") {
            let is_allowed = included == "none" || declares(capabilities, &["sampling", "context"]);
            let what = "includeContext for a client that does not declare sampling.context";
            let expected = "leave includeContext out, or set it to none";
            context.require(&rule::SAMP_06, is_allowed, what, expected);
        }
    }
    let messages = items(params, "messages");
    let violation = messages.iter().find_map(|message| shape_violation(message.get("content"), rules));
    let is_shaped = violation.is_none();
    context.judge(shape_rule(rules), violation);
    let uses_tools = messages.iter().any(|message| blocks(message).any(|block| tool_kind(block).is_some()));
    if uses_tools && is_shaped && rules.sampling_tools {
        let violation = messages.iter().enumerate().find_map(|(at, message)| {
            let before = at.checked_sub(1).and_then(|before| messages.get(before));
            pairing_violation(message, before)
        });
        context.judge(&rule::SAMP_05, violation);
    }
}

/// A client answers with a sample.
pub(in crate::auditor::checks) fn given(result: &Value, rules: &Rules, context: &mut Context<'_>) {
    let violation = shape_violation(result.get("content"), rules);
    let is_shaped = violation.is_none();
    context.judge(shape_rule(rules), violation);
    if is_shaped && rules.sampling_tools && blocks(result).any(|block| tool_kind(block).is_some()) {
        let has_results = blocks(result).any(|block| tool_kind(block) == Some("tool_result"));
        let what = "a sample that holds a tool result";
        let expected = "return what the model says or the tools that it uses; the server has the results";
        context.require(&rule::SAMP_05, !has_results, what, expected);
    }
}

/// Content is one block, or several once there are tools.
fn shape_rule(rules: &Rules) -> &'static Rule {
    if rules.sampling_tools { &rule::SAMP_09 } else { &rule::SAMP_11 }
}

fn shape_violation(content: Option<&Value>, rules: &Rules) -> Option<Violation> {
    let is_block = |block: &Value| match text(block, "type") {
        Some("text") => text(block, "text").is_some(),
        Some("audio") => rules.audio,
        Some("tool_use" | "tool_result") => rules.sampling_tools,
        Some(_) => true,
        None => false,
    };
    match content {
        Some(Value::Array(blocks)) if rules.sampling_tools => violation_unless(
            blocks.iter().all(is_block),
            "content that is no list of blocks",
            "send blocks with their types",
        ),
        Some(block @ Value::Object(_)) => violation_unless(
            is_block(block),
            "content of a type that the revision does not have",
            "send a block of the revision",
        ),
        _ => Some((
            "content that is no block of the revision".to_owned(),
            "send one block, or several where the revision has that",
        )),
    }
}

/// The blocks of a message.
fn blocks(message: &Value) -> impl Iterator<Item = &Value> {
    let (one, several) = match message.get("content") {
        Some(Value::Array(blocks)) => (None, blocks.as_slice()),
        content => (content, [].as_slice()),
    };
    one.into_iter().chain(several)
}

fn tool_kind(block: &Value) -> Option<&str> {
    text(block, "type").filter(|kind| matches!(*kind, "tool_use" | "tool_result"))
}

fn ids<'a>(message: &'a Value, kind: &'static str, member: &'static str) -> Vec<&'a str> {
    let of_kind = blocks(message).filter(move |block| text(block, "type") == Some(kind));
    of_kind.filter_map(|block| text(block, member)).collect()
}

/// What is wrong between a message and the one before: tool uses have their results next, and results stand alone.
fn pairing_violation(message: &Value, before: Option<&Value>) -> Option<Violation> {
    let results = ids(message, "tool_result", "toolUseId");
    if !results.is_empty() && blocks(message).any(|block| tool_kind(block) != Some("tool_result")) {
        let expected = "put tool results into a message of their own";
        return Some(("a message with tool results and other content".to_owned(), expected));
    }
    let uses = before.map(|before| ids(before, "tool_use", "id")).unwrap_or_default();
    let are_paired = uses.iter().all(|id| results.contains(id)) && results.iter().all(|id| uses.contains(id));
    let what = "tool uses and the tool results of the next message differ";
    violation_unless(are_paired, what, "answer each tool use in the next message by its id")
}
