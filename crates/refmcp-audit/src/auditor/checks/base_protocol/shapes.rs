//! Rule about the members of params and results: those that the schemas of all revisions demand, and their types.
//!
//! The tables leave out what differs between revisions, and members that a rule of their own judges: schemas, content blocks,
//! contents of resources, filters of subscriptions, cursors, tokens and ids of requests, levels of logs, actions of forms, the handshake.

use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

use crate::auditor::checks::values::result_type;
use crate::auditor::checks::{Check, Context};
use crate::auditor::message::{Body, Message};
use crate::verdict::Role;

pub(in crate::auditor::checks) static RULES: &[&Rule] = &[&rule::RPC_23];

/// What a value has to be.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Any,
    Text,
    Number,
    Boolean,
    Object(&'static [Member]),
    List(&'static Shape),
    OneOf(&'static [&'static str]),
}

/// A member of an object.
#[derive(Debug, Clone, Copy)]
struct Member {
    name: &'static str,
    shape: Shape,
    is_required: bool,
}

const fn required(name: &'static str, shape: Shape) -> Member {
    Member { name, shape, is_required: true }
}

const fn optional(name: &'static str, shape: Shape) -> Member {
    Member { name, shape, is_required: false }
}

/// The params of a request or a notification of this party, or the result that answers a request with this method.
type Row = (Role, &'static str, &'static [Member]);

use Shape::{Any, Boolean, List, Number, Object, OneOf, Text};

const ROLE: Shape = OneOf(&["user", "assistant"]);
const URI: &[Member] = &[required("uri", Text)];
const MESSAGE: Shape = Object(&[required("role", ROLE), required("content", Any)]);
const ARGUMENT: Shape =
    Object(&[required("name", Text), optional("description", Text), optional("required", Boolean)]);

static PARAMS: &[Row] = &[
    (Role::Client, "tools/call", &[required("name", Text), optional("arguments", Object(&[]))]),
    (Role::Client, "resources/read", URI),
    (Role::Client, "resources/subscribe", URI),
    (Role::Client, "resources/unsubscribe", URI),
    (Role::Client, "prompts/get", &[required("name", Text)]),
    (
        Role::Client,
        "completion/complete",
        &[
            required("ref", Object(&[required("type", OneOf(&["ref/prompt", "ref/resource"]))])),
            required("argument", Object(&[required("name", Text), required("value", Text)])),
        ],
    ),
    (
        Role::Server,
        "sampling/createMessage",
        &[
            required("messages", List(&MESSAGE)),
            required("maxTokens", Number),
            optional("systemPrompt", Text),
            optional("temperature", Number),
            optional("stopSequences", List(&Text)),
        ],
    ),
    (Role::Server, "elicitation/create", &[required("message", Text)]),
    (Role::Server, "notifications/message", &[required("data", Any), optional("logger", Text)]),
    (Role::Server, "notifications/resources/updated", URI),
];

/// Results, by the party that sends them.
static RESULTS: &[Row] = &[
    (
        Role::Server,
        "tools/list",
        &[required("tools", List(&Object(&[required("name", Text), optional("description", Text)])))],
    ),
    (Role::Server, "tools/call", &[optional("isError", Boolean)]),
    (
        Role::Server,
        "resources/list",
        &[required(
            "resources",
            List(&Object(&[
                required("uri", Text),
                required("name", Text),
                optional("description", Text),
                optional("mimeType", Text),
                optional("size", Number),
            ])),
        )],
    ),
    (
        Role::Server,
        "resources/templates/list",
        &[required(
            "resourceTemplates",
            List(&Object(&[
                required("uriTemplate", Text),
                required("name", Text),
                optional("description", Text),
                optional("mimeType", Text),
            ])),
        )],
    ),
    (
        Role::Server,
        "prompts/list",
        &[required(
            "prompts",
            List(&Object(&[
                required("name", Text),
                optional("description", Text),
                optional("arguments", List(&ARGUMENT)),
            ])),
        )],
    ),
    (Role::Server, "prompts/get", &[required("messages", List(&MESSAGE)), optional("description", Text)]),
    (
        Role::Server,
        "completion/complete",
        &[required(
            "completion",
            Object(&[
                required("values", List(&Text)),
                optional("total", Number),
                optional("hasMore", Boolean),
            ]),
        )],
    ),
    (Role::Client, "roots/list", &[required("roots", List(&Object(&[optional("name", Text)])))]),
    (
        Role::Client,
        "sampling/createMessage",
        &[
            required("role", ROLE),
            required("content", Any),
            required("model", Text),
            optional("stopReason", Text),
        ],
    ),
    (Role::Client, "elicitation/create", &[optional("content", Object(&[]))]),
];

#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct Shapes;

impl Check for Shapes {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        // Without a revision it is not known which methods there are.
        if message.revision.is_none() {
            return;
        }
        let (rows, method, value, subject) = match &message.body {
            Body::Request { method, params, .. } | Body::Notification { method, params } => {
                (PARAMS, *method, *params, "params of")
            }
            Body::Response { request: Some(request), result: Ok(result), .. } if is_whole(result) => {
                (RESULTS, &*request.method, *result, "the result of")
            }
            Body::Response { .. } => return,
        };
        let row = rows.iter().find(|(from, name, _)| (*from, *name) == (message.from, method));
        let Some((_, _, members)) = row else { return };
        let mut path = String::new();
        let violation = object_violation(value, members, &mut path).map(|wrong| match wrong {
            Wrong::Missing => {
                (format!("{subject} {method} without {path}"), format!("send {path} in {subject} {method}"))
            }
            Wrong::Is(expected) => (
                format!("{path} in {subject} {method} is not {expected}"),
                format!("send {path} as {expected}"),
            ),
        });
        let violation = violation.as_ref().map(|(what, expected)| (what.clone(), &**expected));
        context.judge(&rule::RPC_23, violation);
    }
}

/// Whether a result is that of its request, and not a task or a question in its place. One that is no object breaks RPC-06.
fn is_whole(result: &Value) -> bool {
    result.is_object() && result_type(result) == "complete" && result.get("task").is_none()
}

enum Wrong {
    Missing,
    Is(String),
}

/// What is wrong with the members of an object, and where: the path is longer by then. The numbers of items are left out.
fn object_violation(value: &Value, members: &[Member], path: &mut String) -> Option<Wrong> {
    members.iter().find_map(|member| {
        let length = path.len();
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(member.name);
        let wrong = match value.get(member.name) {
            None => member.is_required.then_some(Wrong::Missing),
            Some(value) => violation(value, member.shape, path),
        };
        if wrong.is_none() {
            path.truncate(length);
        }
        wrong
    })
}

fn violation(value: &Value, shape: Shape, path: &mut String) -> Option<Wrong> {
    let is = |holds: bool, expected: &str| (!holds).then(|| Wrong::Is(expected.to_owned()));
    match shape {
        Any => None,
        Text => is(value.is_string(), "a string"),
        Number => is(value.is_number(), "a number"),
        Boolean => is(value.is_boolean(), "a boolean"),
        OneOf(texts) => {
            let holds = value.as_str().is_some_and(|text| texts.contains(&text));
            (!holds).then(|| Wrong::Is(texts.join(" or ")))
        }
        Object(members) => match value.is_object() {
            true => object_violation(value, members, path),
            false => is(false, "an object"),
        },
        List(item) => {
            let Some(items) = value.as_array() else { return is(false, "an array") };
            let length = path.len();
            path.push_str("[]");
            let wrong = items.iter().find_map(|value| violation(value, *item, path));
            if wrong.is_none() {
                path.truncate(length);
            }
            wrong
        }
    }
}
