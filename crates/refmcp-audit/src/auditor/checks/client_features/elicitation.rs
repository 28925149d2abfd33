//! Rules about elicitation: modes, forms, actions and contents.

use std::collections::HashSet;

use refmcp_proto::revision::{Elicitation as Kind, Rules, UrlElicitation};
use refmcp_proto::rule;
use refmcp_proto::schema::{SchemaError, SchemaValidator};
use serde_json::{Map, Value};

use crate::auditor::checks::Context;
use crate::auditor::checks::values::{Violation, items, request_capabilities, text, violation_unless};
use crate::auditor::conversation::{Handshake, declares};
use crate::auditor::message::Message;
use crate::verdict::Role;

/// Ids of URL elicitations that are remembered, and the bytes of one; once there are more, they are not judged.
const MAX_IDS: usize = 256;
const MAX_ID: usize = 256;

#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct Elicitation {
    /// The ids of URL elicitations.
    ids: HashSet<String>,
    /// Some ids were not remembered.
    incomplete: bool,
    /// The declaration of a session was judged.
    declared: bool,
}

impl Elicitation {
    /// A message that is neither a request for input nor its answer.
    pub(in crate::auditor::checks) fn message(
        &mut self,
        message: &Message<'_>,
        rules: &Rules,
        context: &mut Context<'_>,
    ) {
        if message.from == Role::Client {
            self.judge_declaration(message, rules, context);
        }
        if let Some((_, error)) = message.error().filter(|_| rules.url_elicitation == UrlElicitation::WithId)
        {
            self.judge_error(error, context);
        }
        if let Some(("notifications/elicitation/complete", params)) = message.notification() {
            let is_known = text(params, "elicitationId").is_some_and(|id| self.ids.contains(id));
            if is_known || (context.state.handshake > Handshake::None && !self.incomplete) {
                let what = "the completion of an elicitation that was not requested";
                context.require(&rule::ELIC_13, is_known, what, "send the elicitationId of the request");
            }
        }
    }

    /// A server asks a user.
    pub(in crate::auditor::checks) fn wanted(
        &mut self,
        params: &Value,
        capabilities: Option<&Value>,
        rules: &Rules,
        context: &mut Context<'_>,
    ) {
        judge_mode(params, capabilities, context);
        if is_url(params) {
            self.judge_url(params, rules, context);
        } else {
            judge_form(params.get("requestedSchema"), rules, context);
        }
    }

    /// A declaration has forms or URLs, or nothing, which means forms.
    fn judge_declaration(&mut self, message: &Message<'_>, rules: &Rules, context: &mut Context<'_>) {
        let capabilities = match message.request() {
            Some((_, params)) if request_capabilities(params).is_some() => request_capabilities(params),
            _ if self.declared || context.state.handshake != Handshake::Ready => None,
            _ => {
                self.declared = true;
                Some(&context.state.client.capabilities)
            }
        };
        let Some(declared) = capabilities.and_then(|it| it.get("elicitation")) else { return };
        let has_modes = declared.as_object().is_some_and(|modes| {
            rules.url_elicitation == UrlElicitation::Unknown
                || modes.is_empty()
                || modes.contains_key("form")
                || modes.contains_key("url")
        });
        let what = "a declaration of elicitation without its modes";
        let expected = "declare elicitation with form, url or both, or as an empty object for forms";
        context.require(&rule::ELIC_01, has_modes, what, expected);
    }

    fn judge_url(&mut self, params: &Value, rules: &Rules, context: &mut Context<'_>) {
        if rules.url_elicitation == UrlElicitation::WithId {
            let id = text(params, "elicitationId");
            let what = "a URL elicitation without an elicitationId";
            context.require(&rule::ELIC_13, id.is_some(), what, "give it an elicitationId");
            self.remember(id);
        }
    }

    fn judge_error(&mut self, error: &Value, context: &mut Context<'_>) {
        if error.get("code").and_then(Value::as_i64) != Some(-32042) {
            return;
        }
        let elicitations = error.get("data").map(|data| items(data, "elicitations")).unwrap_or_default();
        let is_whole =
            |it: &Value| is_url(it) && text(it, "url").is_some() && text(it, "elicitationId").is_some();
        let are_whole = !elicitations.is_empty() && elicitations.iter().all(is_whole);
        let what = "an error -32042 whose data does not list URL elicitations with their ids";
        let expected = "list the URLs in data.elicitations, each with mode, url, message and elicitationId";
        context.require(&rule::ELIC_14, are_whole, what, expected);
        for elicitation in elicitations {
            self.remember(text(elicitation, "elicitationId"));
        }
    }

    fn remember(&mut self, id: Option<&str>) {
        match id {
            Some(id) if id.len() <= MAX_ID && self.ids.len() < MAX_IDS => {
                self.ids.insert(id.to_owned());
            }
            Some(_) => self.incomplete = true,
            None => {}
        }
    }
}

fn is_url(params: &Value) -> bool {
    text(params, "mode") == Some("url")
}

fn judge_mode(params: &Value, capabilities: Option<&Value>, context: &mut Context<'_>) {
    // A client that asks its user nothing is asked nothing by other rules.
    let Some(declared) = capabilities.and_then(|it| it.get("elicitation")).filter(|it| it.is_object()) else {
        return;
    };
    let is_declared = if is_url(params) {
        declares(declared, &["url"])
    } else {
        // An empty declaration means forms.
        declares(declared, &["form"]) || !declares(declared, &["url"])
    };
    let what = "an elicitation in a mode that the client does not declare";
    context.require(&rule::ELIC_02, is_declared, what, "use the modes that the client declares");
}

fn judge_form(schema: Option<&Value>, rules: &Rules, context: &mut Context<'_>) {
    let fields = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let Some(fields) = fields.filter(|_| schema.is_some_and(|it| text(it, "type") == Some("object"))) else {
        let what = "a requestedSchema that is no object with properties";
        context.broken(&rule::ELIC_04, what, "describe the form as type object with its properties");
        return;
    };
    let is_plain = rules.elicitation == Kind::PlainForms;
    let choice_rule = if is_plain { &rule::ELIC_05 } else { &rule::ELIC_06 };
    context.judge(&rule::ELIC_04, fields.values().find_map(flatness_violation));
    let is_choice = |field: &&Value| {
        ["enum", "oneOf", "default"].iter().any(|it| field.get(it).is_some()) || is_list(field)
    };
    let mut choices = fields.values().filter(is_choice).peekable();
    if choices.peek().is_some() {
        let violation = if is_plain { plain_choice_violation } else { choice_violation };
        context.judge(choice_rule, choices.find_map(violation));
    }
}

fn is_list(field: &Value) -> bool {
    text(field, "type") == Some("array")
}

/// What makes a form more than a flat list of fields.
fn flatness_violation(field: &Value) -> Option<Violation> {
    let expected = "ask for strings, numbers, booleans and choices alone";
    match text(field, "type") {
        Some("string") => {
            let format = text(field, "format");
            let known = format.is_none_or(|it| matches!(it, "email" | "uri" | "date" | "date-time"));
            violation_unless(
                known,
                "a field with a format that forms do not have",
                "use email, uri, date or date-time",
            )
        }
        Some("number" | "integer" | "boolean" | "array") => None,
        _ => Some(("a field that is no string, number, boolean or choice".to_owned(), expected)),
    }
}

/// Plain forms have one kind of choice. Their schema names defaults of booleans alone, and forbids no others.
fn plain_choice_violation(field: &Value) -> Option<Violation> {
    if is_list(field) || field.get("oneOf").is_some() {
        let what = "a choice of several values or with titles, which the revision does not have".to_owned();
        return Some((what, "list the values in enum, and their names in enumNames"));
    }
    None
}

fn choice_violation(field: &Value) -> Option<Violation> {
    let are_titled = |choices: &[Value]| choices.iter().all(|choice| text(choice, "const").is_some());
    let is_known = if is_list(field) {
        let values = field.get("items").unwrap_or(&Value::Null);
        let titled = items(values, "anyOf");
        values.get("enum").is_some_and(Value::is_array) || (!titled.is_empty() && are_titled(titled))
    } else {
        are_titled(items(field, "oneOf"))
    };
    let what = "a choice whose values are neither an enum nor constants with titles";
    violation_unless(
        is_known,
        what,
        "list values by enum, by oneOf with const and title, or in items for several",
    )
}

/// A client answers for its user.
pub(in crate::auditor::checks) fn given(params: &Value, result: &Value, context: &mut Context<'_>) {
    let action = text(result, "action").unwrap_or_default();
    let content = result.get("content");
    let is_form = !is_url(params);
    // An empty object says no more than none.
    let has_content = content.is_some_and(|content| content.as_object().is_none_or(|it| !it.is_empty()));
    let what = match action {
        "accept" if has_content && !is_form => Some("content beside an accepted URL"),
        "decline" | "cancel" if has_content => Some("content beside an action that accepts nothing"),
        "accept" | "decline" | "cancel" => None,
        _ => Some("an action that is neither accept, decline nor cancel"),
    };
    let expected = "answer with accept, decline or cancel, and with content where a form is accepted";
    context.judge(&rule::ELIC_08, what.map(|what| (what.to_owned(), expected)));
    let Some(Value::Object(schema)) = params.get("requestedSchema").filter(|_| is_form && action == "accept")
    else {
        return;
    };
    let empty = Value::Object(Map::new());
    let Ok(validator) = SchemaValidator::compile(schema) else { return };
    match validator.validate(content.unwrap_or(&empty)) {
        Ok(()) => context.kept(&rule::ELIC_16),
        Err(SchemaError::Invalid(_)) => {
            let what = "accepted content that does not fit the requested schema";
            context.broken(&rule::ELIC_16, what, "check what the user entered before it is sent");
        }
        Err(SchemaError::TooMuchWork(_)) => {}
    }
}
