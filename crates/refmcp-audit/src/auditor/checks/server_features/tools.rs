//! Rules about tools: their list, their schemas and their results.

use std::collections::{HashMap, HashSet};

use refmcp_proto::jsonrpc::excerpt;
use refmcp_proto::revision::{Rules, StructuredOutput};
use refmcp_proto::rule::{self, Rule};
use refmcp_proto::schema::{SchemaError, SchemaValidator};
use serde_json::Value;

use crate::auditor::checks::values::{block_violation, is_same, items, result_type, rules_of, text};
use crate::auditor::checks::{Check, Context};
use crate::auditor::conversation::Request;
use crate::auditor::message::Message;
use crate::verdict::Role;

pub(in crate::auditor::checks) static RULES: &[&Rule] = &[
    &rule::TOOL_01,
    &rule::TOOL_02,
    &rule::TOOL_03,
    &rule::TOOL_04,
    &rule::TOOL_05,
    &rule::TOOL_06,
    &rule::TOOL_07,
    &rule::TOOL_14,
    &rule::TOOL_16,
    &rule::T_28,
];

/// Bytes of names that are remembered of one list, and lists that are being read.
const MAX_NAMES: usize = 64 << 10;
const MAX_READINGS: usize = 4;

/// Bytes of output schemas that are remembered; tools beyond them are not judged by theirs.
const MAX_SCHEMAS: usize = 64 << 10;

/// Bytes of a text that is compared with structured content.
const MAX_TEXT: usize = 1 << 20;

#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct Tools {
    /// The names on the pages so far, by the cursor of the next page.
    readings: HashMap<String, Vec<String>>,
    /// The names of the last list that was read to its end, in their order.
    last: Option<Vec<String>>,
    /// The tools with an output schema.
    outputs: HashMap<String, KnownOutput>,
    /// Bytes of their schemas.
    schema_bytes: usize,
}

#[derive(Debug)]
struct KnownOutput {
    output: Output,
    /// Bytes of its schema and of the tool's name.
    bytes: usize,
}

#[derive(Debug)]
enum Output {
    Schema(serde_json::Map<String, Value>),
    Compiled(SchemaValidator),
    /// It cannot be applied.
    Unusable,
}

impl Check for Tools {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        if let Some(("notifications/tools/list_changed", _)) = message.notification() {
            if message.from == Role::Server {
                // What was listed may be different now.
                *self = Self::default();
                if let Some(declared) = context.state.server.declares(&["tools", "listChanged"]) {
                    let what = "notifications/tools/list_changed of a server that does not declare it";
                    let expected = "declare tools.listChanged, or do not announce changes";
                    context.require(&rule::TOOL_02, declared, what, expected);
                }
            }
            return;
        }
        let Some((request, result)) = message.result().filter(|(request, _)| request.from == Role::Client)
        else {
            return;
        };
        if !matches!(&*request.method, "tools/list" | "tools/call") {
            return;
        }
        if let Some(declared) = context.state.server.declares(&["tools"]) {
            let what = "tools are listed or called at a server that does not declare them, and that answers";
            context.require(&rule::TOOL_01, declared, what, "declare the tools capability");
        }
        if request.method == "tools/list" {
            self.listed(request, result, context);
        } else if let Some(rules) = rules_of(request) {
            self.called(request, result, rules, context);
        }
    }
}

impl Tools {
    fn listed(&mut self, request: &Request, result: &Value, context: &mut Context<'_>) {
        let tools = items(result, "tools");
        check_tools(tools, context);
        tools.iter().for_each(|tool| self.remember_output(tool));
        // The pages before are not known where the reading began before the recording.
        let before = match text(&request.params, "cursor") {
            None => Some(Vec::new()),
            Some(cursor) => self.readings.remove(cursor),
        };
        let Some(mut names) = before else { return };
        let before = names.len();
        names.extend(tools.iter().filter_map(|tool| text(tool, "name")).map(str::to_owned));
        let mut seen = HashSet::new();
        let twice = names.iter().enumerate().find(|(at, name)| !seen.insert(*name) && *at >= before);
        if let Some((_, name)) = twice {
            let what = format!("two tools of one list have the name \"{}\"", excerpt(name));
            context.broken(&rule::TOOL_04, what, "give each tool a name of its own");
        }
        if names.iter().map(String::len).sum::<usize>() > MAX_NAMES {
            return;
        }
        match text(result, "nextCursor") {
            Some(next) if self.readings.len() < MAX_READINGS => {
                self.readings.insert(next.to_owned(), names);
            }
            Some(_) => {}
            None => self.finish_list(names, context),
        }
    }

    /// Compares the order with that of the list before, where both have the same tools.
    fn finish_list(&mut self, names: Vec<String>, context: &mut Context<'_>) {
        if let Some(last) = self.last.replace(names)
            && let Some(names) = &self.last
            && last.len() > 1
        {
            let set = |names: &[String]| names.iter().cloned().collect::<HashSet<_>>();
            if set(&last) == set(names) {
                let what = "the same tools are listed in another order than before";
                let expected = "list tools in the same order each time";
                context.require(&rule::TOOL_03, last == *names, what, expected);
            }
        }
    }

    fn remember_output(&mut self, tool: &Value) {
        let Some(name) = text(tool, "name") else { return };
        // A tool that is listed again counts once.
        let known = self.outputs.remove(name);
        self.schema_bytes -= known.map_or(0, |known| known.bytes);
        let Some(Value::Object(schema)) = tool.get("outputSchema") else { return };
        let bytes = name.len() + Value::Object(schema.clone()).to_string().len();
        if self.schema_bytes + bytes <= MAX_SCHEMAS {
            self.schema_bytes += bytes;
            let output = Output::Schema(schema.clone());
            self.outputs.insert(name.to_owned(), KnownOutput { output, bytes });
        }
    }

    fn called(&mut self, request: &Request, result: &Value, rules: &Rules, context: &mut Context<'_>) {
        let is_task = request.params.get("task").is_some() && result.get("task").is_some();
        if is_task || result_type(result) != "complete" {
            return;
        }
        let structured = result.get("structuredContent");
        check_content(result, structured.is_some(), rules, context);
        if result.get("isError").and_then(Value::as_bool) == Some(true) {
            return;
        }
        if let Some(structured) = structured {
            if rules.structured_output == StructuredOutput::Object {
                let what = "structuredContent is no object";
                context.require(&rule::T_28, structured.is_object(), what, "wrap the value in an object");
            }
            let what = "structuredContent is not repeated as text";
            let expected = "add a text block with the same value as JSON";
            context.require(&rule::TOOL_07, is_repeated(structured, result), what, expected);
        }
        let name = text(&request.params, "name").unwrap_or_default();
        if let Some(violation) = self.outputs.get_mut(name).and_then(|known| known.output.check(structured)) {
            let expected = "return what outputSchema describes, or correct outputSchema";
            context.judge(&rule::TOOL_06, violation.map(|what| (what.to_owned(), expected)));
        }
    }
}

impl Output {
    /// What is wrong with structured content; `None` where that cannot be told.
    fn check(&mut self, structured: Option<&Value>) -> Option<Option<&'static str>> {
        if let Self::Schema(schema) = self {
            *self = SchemaValidator::compile(schema).map_or(Self::Unusable, Self::Compiled);
        }
        let Self::Compiled(validator) = self else { return None };
        match structured.map(|structured| validator.validate(structured)) {
            None => Some(Some("a result without structuredContent of a tool that has an outputSchema")),
            Some(Ok(())) => Some(None),
            Some(Err(SchemaError::Invalid(_))) => {
                Some(Some("structuredContent does not conform to the outputSchema of the tool"))
            }
            Some(Err(SchemaError::TooMuchWork(_))) => None,
        }
    }
}

/// Judges the names and schemas of a list; a violation names the first tool that shows it.
fn check_tools(tools: &[Value], context: &mut Context<'_>) {
    let names: Vec<&str> = tools.iter().filter_map(|tool| text(tool, "name")).collect();
    if !names.is_empty() {
        let wrong: Vec<&str> = names.into_iter().filter(|name| !is_tool_name(name)).collect();
        let violation = named(&wrong).map(|tools| {
            let what = format!("the name of {tools} has other characters or another length than names have");
            (what, "name tools with 1 to 128 letters, digits, underscores, hyphens and dots")
        });
        context.judge(&rule::TOOL_04, violation);
    }
    let objects = tools.iter().filter(|tool| tool.is_object());
    let (right, wrong): (Vec<&Value>, Vec<&Value>) = objects.partition(|tool| {
        tool.get("inputSchema").is_some_and(|schema| text(schema, "type") == Some("object"))
    });
    if !right.is_empty() || !wrong.is_empty() {
        let wrong: Vec<&str> = wrong.into_iter().map(|tool| text(tool, "name").unwrap_or_default()).collect();
        let violation = named(&wrong).map(|tools| {
            let what = format!("the inputSchema of {tools} is no schema of type object");
            (what, "set type to object in inputSchema, also for tools without arguments")
        });
        context.judge(&rule::TOOL_05, violation);
    }
}

fn is_tool_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

/// The first of these tools, and how many more there are; nothing where there are none.
fn named(tools: &[&str]) -> Option<String> {
    let (first, others) = tools.split_first()?;
    let first = excerpt(first);
    Some(match others.len() {
        0 => format!("the tool \"{first}\""),
        1 => format!("the tool \"{first}\" and one more"),
        count => format!("the tool \"{first}\" and {count} more"),
    })
}

fn check_content(result: &Value, is_structured: bool, rules: &Rules, context: &mut Context<'_>) {
    let Some(content) = result.get("content").and_then(Value::as_array) else {
        // Structured content without text breaks the rule that it is repeated.
        if !is_structured {
            let what = "a tool's result without content";
            context.broken(&rule::TOOL_16, what, "send content, an empty list where there is none");
        }
        return;
    };
    let violation = content.iter().find_map(|block| block_violation(block, rules));
    context.judge(&rule::TOOL_16, violation);
    let embeds = content.iter().any(|block| text(block, "type") == Some("resource"));
    if embeds && let Some(declared) = context.state.server.declares(&["resources"]) {
        let what = "a result embeds a resource, and the server does not declare resources";
        context.require(&rule::TOOL_14, declared, what, "declare and serve resources");
    }
}

/// Whether a text block is the value as JSON, or the text itself where the value is one.
fn is_repeated(structured: &Value, result: &Value) -> bool {
    let texts = items(result, "content").iter().filter_map(|block| text(block, "text"));
    texts.into_iter().any(|text| {
        let parsed = || serde_json::from_str::<Value>(text).is_ok_and(|value| is_same(&value, structured));
        text.len() > MAX_TEXT || structured.as_str() == Some(text) || parsed()
    })
}
