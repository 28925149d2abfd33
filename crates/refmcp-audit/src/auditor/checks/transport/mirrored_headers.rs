//! Rules about the headers that repeat the body of a request without a session: revision, method, name and marked arguments.

use std::collections::{HashMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use refmcp_proto::jsonrpc::code;
use refmcp_proto::param_headers::{ParamHeader, param_headers};
use refmcp_proto::revision::{Lifecycle, Method, Revision};
use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

use crate::auditor::checks::values::violation_if;
use crate::auditor::checks::{Check, Context};
use crate::auditor::conversation::Stream;
use crate::auditor::message::Message;
use crate::verdict::Role;

pub(in crate::auditor::checks) static RULES: &[&Rule] = &[
    &rule::MHTTP_08,
    &rule::MHTTP_09,
    &rule::MHTTP_13,
    &rule::MHTTP_14,
    &rule::MHTTP_16,
    &rule::MHTTP_17,
    &rule::MHTTP_19,
];

#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct MirroredHeaders {
    /// The marked arguments of each tool that was listed.
    tools: HashMap<String, Vec<ParamHeader>>,
    /// Tools whose call was refused for its headers, since the client listed them.
    refused: HashSet<String>,
}

/// Tools that are remembered; calls of others are not judged.
const MAX_TOOLS: usize = 4096;

/// What stands in a recording for a secret.
const MASK: &str = "***";

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

impl Check for MirroredHeaders {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        let is_stateless = |revision: Option<Revision>| {
            revision.is_some_and(|revision| revision.lifecycle() == Lifecycle::PerRequest)
        };
        if !is_stateless(message.revision) {
            return;
        }
        if let Some((request, result)) = message.result()
            && request.method == "tools/list"
        {
            self.listed(result, context);
        }
        let Some(stream) = context.state.stream(message.stream).filter(|_| context.state.transport == "http")
        else {
            return;
        };
        if let (Role::Client, Some((method, params))) = (message.from, message.request())
            && is_stateless(message.http_revision(stream))
        {
            self.requested(method, params, stream, context);
        }
        if let Some((request, error)) = message.error()
            && request.method == "tools/call"
            && error.get("code").and_then(Value::as_i64) == Some(code::HEADER_MISMATCH)
            && let Some(name) = name_of("tools/call", &request.params)
            && stream.header("mcp-method") == Some("tools/call")
            && stream.header("mcp-protocol-version") == request.revision.map(Revision::as_str)
            && stream.header("mcp-name").is_some_and(|value| compared(value, name) == Comparison::Equal)
            && self.refused.len() < MAX_TOOLS
        {
            self.refused.insert(name.to_owned());
        }
    }
}

impl MirroredHeaders {
    fn listed(&mut self, result: &Value, context: &mut Context<'_>) {
        for tool in result.get("tools").and_then(Value::as_array).into_iter().flatten() {
            let (Some(name), Some(schema)) = (
                tool.get("name").and_then(Value::as_str),
                tool.get("inputSchema").and_then(Value::as_object),
            ) else {
                continue;
            };
            let marked = match param_headers(schema) {
                Ok(marked) if marked.is_empty() => marked,
                Ok(marked) => {
                    context.kept(&rule::MHTTP_14);
                    marked
                }
                Err(why) => {
                    let expected =
                        "mark plain properties of type string, integer or boolean with unique tokens";
                    context.broken(&rule::MHTTP_14, why, expected);
                    continue;
                }
            };
            if self.tools.len() < MAX_TOOLS {
                self.tools.insert(name.to_owned(), marked);
            }
        }
    }

    fn requested(&mut self, method: &str, params: &Value, stream: &Stream, context: &mut Context<'_>) {
        let in_header = stream.header("mcp-protocol-version");
        match params.get("_meta").and_then(|meta| meta.get(VERSION)).and_then(Value::as_str) {
            Some(version) => {
                let header = ("mcp-protocol-version", in_header);
                check_equal(&rule::MHTTP_08, header, version, "protocolVersion of _meta", context);
            }
            None if in_header.is_some() => {
                let what = "mcp-protocol-version repeats a protocolVersion that _meta does not have";
                context.broken(&rule::MHTTP_08, what, "send the same revision in both");
            }
            None => {}
        }
        check_equal(&rule::MHTTP_09, ("mcp-method", stream.header("mcp-method")), method, "method", context);
        let name = name_of(method, params);
        // The ids of tasks have a rule of their own.
        if let Some(name) = name.filter(|_| !method.starts_with("tasks/")) {
            check_equal(
                &rule::MHTTP_09,
                ("mcp-name", stream.header("mcp-name")),
                name,
                "name or uri",
                context,
            );
        }
        if method == "tools/list" && !self.refused.is_empty() {
            self.refused.clear();
            context.kept(&rule::MHTTP_19);
        }
        let Some(tool) = name.filter(|_| method == "tools/call") else { return };
        if self.refused.remove(tool) {
            let what = "a call that was refused for its headers is sent again without listing the tools";
            context.broken(&rule::MHTTP_19, what, "list the tools again before the next call");
        }
        let arguments = params.get("arguments").unwrap_or(&Value::Null);
        for marked in self.tools.get(tool).into_iter().flatten() {
            check_argument(marked, arguments, stream, context);
        }
    }
}

/// An argument that the tool marks, and its header.
fn check_argument(marked: &ParamHeader, arguments: &Value, stream: &Stream, context: &mut Context<'_>) {
    let field = format!("mcp-param-{}", marked.name.to_ascii_lowercase());
    let header = stream.header(&field);
    let argument = marked.path.iter().try_fold(arguments, |value, name| value.get(name));
    let text = match argument {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(truth)) => truth.to_string(),
        Some(Value::Number(number)) => {
            let found = header.and_then(|header| header.parse::<f64>().ok());
            // Numbers are compared by value: 42 and 42.0 are equal.
            match header.filter(|_| found.is_some() && found == number.as_f64()) {
                Some(header) => header.to_owned(),
                None => number.to_string(),
            }
        }
        Some(Value::Array(_) | Value::Object(_)) => return,
        None | Some(Value::Null) => {
            let what = format!("{field} stands for an argument that is absent");
            let violation = violation_if(header.is_some(), &what, "leave out headers of absent arguments");
            return context.judge(&rule::MHTTP_17, violation);
        }
    };
    check_equal(&rule::MHTTP_13, (&field, header), &text, "its argument", context);
}

/// A header that has to be what a member of the body is. One that is masked counts as equal.
fn check_equal(
    rule: &'static Rule,
    (field, value): (&str, Option<&str>),
    wanted: &str,
    member: &str,
    context: &mut Context<'_>,
) {
    let expected = "repeat the body in the headers";
    let Some(value) = value else {
        return context.broken(rule, format!("there is no {field}"), expected);
    };
    let encoding = "send values that are no plain ASCII in base64, as =?base64?...?=";
    match compared(value, wanted) {
        Comparison::Equal => {
            if value != wanted && !value.contains(MASK) {
                context.kept(&rule::MHTTP_16);
            }
            context.kept(rule);
        }
        Comparison::Differs => context.broken(rule, format!("{field} is not {member}"), expected),
        Comparison::NotEncoded => {
            context.broken(&rule::MHTTP_16, format!("{field} is no plain ASCII"), encoding);
        }
        Comparison::BadBase64 => {
            context.broken(&rule::MHTTP_16, format!("{field} is no base64 of UTF-8"), encoding);
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    Differs,
    /// The value has characters that need to be encoded, or had blanks around it, which are lost.
    NotEncoded,
    BadBase64,
}

fn compared(value: &str, wanted: &str) -> Comparison {
    let encoded = value.strip_prefix("=?base64?").and_then(|value| value.strip_suffix("?="));
    let is_plain = value.chars().all(|character| matches!(character, ' '..='~' | '\t'));
    let decoded =
        encoded.map(|encoded| STANDARD.decode(encoded).ok().and_then(|it| String::from_utf8(it).ok()));
    match decoded {
        _ if value.contains(MASK) => Comparison::Equal,
        Some(None) => Comparison::BadBase64,
        Some(Some(text)) if text == wanted => Comparison::Equal,
        Some(Some(_)) => Comparison::Differs,
        None if !is_plain => Comparison::NotEncoded,
        None if value == wanted => Comparison::Equal,
        None if value == wanted.trim() => Comparison::NotEncoded,
        None => Comparison::Differs,
    }
}

/// What `Mcp-Name` repeats: the name or the URI that a request is about.
fn name_of<'a>(method: &str, params: &'a Value) -> Option<&'a str> {
    params.get(Method::known(method)?.name_member()?)?.as_str()
}
