//! Rules about prompts and the completion of arguments.

use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

use crate::auditor::checks::values::{
    Violation, block_violation, items, result_type, rules_of, text, violation_unless,
};
use crate::auditor::checks::{Check, Context};
use crate::auditor::conversation::Request;
use crate::auditor::message::Message;
use crate::verdict::Role;

pub(in crate::auditor::checks) static RULES: &[&Rule] =
    &[&rule::PROMPT_01, &rule::PROMPT_03, &rule::PROMPT_05, &rule::COMP_01, &rule::COMP_02];

/// Values of a completion.
const MAX_VALUES: usize = 100;

#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct Prompts;

impl Check for Prompts {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        if let Some(("prompts/get", params)) = message.request() {
            if let Some(arguments) = params.get("arguments") {
                let are_strings = arguments.as_object().is_some_and(|it| it.values().all(Value::is_string));
                let what = "arguments of a prompt that are no strings";
                let expected = "send arguments as an object of strings";
                context.require(&rule::PROMPT_05, are_strings, what, expected);
            }
        } else if let Some(("notifications/prompts/list_changed", _)) = message.notification() {
            if let Some(declared) = context.state.server.declares(&["prompts", "listChanged"]) {
                let what = "notifications/prompts/list_changed of a server that does not declare it";
                let expected = "declare prompts.listChanged, or do not announce changes";
                context.require(&rule::PROMPT_01, declared, what, expected);
            }
        } else if let Some((request, result)) = message.result().filter(|_| message.from == Role::Server) {
            answered(request, result, context);
        }
    }
}

fn answered(request: &Request, result: &Value, context: &mut Context<'_>) {
    match &*request.method {
        "prompts/list" | "prompts/get" => {
            if let Some(declared) = context.state.server.declares(&["prompts"]) {
                let what =
                    "prompts are listed or got at a server that does not declare them, and that answers";
                context.require(&rule::PROMPT_01, declared, what, "declare the prompts capability");
            }
            if let Some(rules) = rules_of(request)
                && request.method == "prompts/get"
                && result_type(result) == "complete"
            {
                let blocks = items(result, "messages").iter().filter_map(|message| message.get("content"));
                for block in blocks.filter(|block| text(block, "type") != Some("text")) {
                    let violation = block_violation(block, rules).or_else(|| media_type_violation(block));
                    context.judge(&rule::PROMPT_03, violation);
                }
            }
        }
        "completion/complete" => {
            if let Some(declared) = context.state.server.declares(&["completions"]) {
                let what = "an argument is completed by a server that does not declare completions";
                context.require(&rule::COMP_01, declared, what, "declare the completions capability");
            }
            // RPC-23 judges a completion without values.
            let values = result.get("completion").and_then(|it| it.get("values")).and_then(Value::as_array);
            if let Some(values) = values {
                let what = "a completion with more than 100 values";
                let expected = "send at most 100 values, and hasMore where there are more";
                context.require(&rule::COMP_02, values.len() <= MAX_VALUES, what, expected);
            }
        }
        _ => {}
    }
}

/// A resource in a prompt has a media type, other than one in a tool's result.
fn media_type_violation(block: &Value) -> Option<Violation> {
    let resource = block.get("resource").filter(|_| text(block, "type") == Some("resource"))?;
    let what = "an embedded resource without a mimeType";
    violation_unless(text(resource, "mimeType").is_some(), what, "name the media type of embedded resources")
}
