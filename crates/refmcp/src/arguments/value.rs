//! Parsing one text as a value of the type that a schema asks for.

use refmcp_proto::model::{JsonObject, plain_number};
use serde_json::{Number, Value};

use super::schema::{DEEPEST, SchemaWalk, alternatives, expected, list, types};

/// Parses a text by the schema; of alternatives, the first that fits is taken.
///
/// # Errors
///
/// What was expected instead.
pub(super) fn parse_value(root: &JsonObject, schema: &Value, text: &str) -> Result<Value, String> {
    at_depth(&SchemaWalk::new(root), schema, text, 0)
        .ok_or_else(|| format!("expected {}, not {}", expected(root, schema), quoted(text)))
}

/// The schema of a list's items; `None` when it is no list.
pub(super) fn list_items<'a>(root: &'a JsonObject, schema: &'a Value) -> Option<Option<&'a Value>> {
    items_schema(&SchemaWalk::new(root), schema, 0)
}

fn items_schema<'a>(walk: &SchemaWalk<'a>, schema: &'a Value, depth: usize) -> Option<Option<&'a Value>> {
    let schema = walk.resolve(schema)?;
    if types(schema).contains(&"array") {
        return Some(schema.get("items"));
    }
    if depth == DEEPEST {
        return None;
    }
    alternatives(schema).chain(list(schema, "allOf")).find_map(|part| items_schema(walk, part, depth + 1))
}

/// A text in an error message, cut when it is long.
fn quoted(text: &str) -> String {
    const MAX_CHARACTERS: usize = 40;
    match text.char_indices().nth(MAX_CHARACTERS) {
        None => format!("{text:?}"),
        Some((at, _)) => format!("{:?}…", text.get(..at).unwrap_or_default()),
    }
}

fn at_depth<'a>(walk: &SchemaWalk<'a>, schema: &'a Value, text: &str, depth: usize) -> Option<Value> {
    if *schema == Value::Bool(false) || depth > DEEPEST {
        return None;
    }
    let Some(schema) = walk.resolve(schema) else { return Some(guess(text)) };
    if let Some(only) = schema.get("const") {
        return is_written(only, text).then(|| only.clone());
    }
    if schema.contains_key("enum") {
        return member(schema, text);
    }
    let mut choices = alternatives(schema).peekable();
    if choices.peek().is_some() {
        return choices.find_map(|choice| at_depth(walk, choice, text, depth + 1));
    }
    let types = types(schema);
    if types.is_empty() {
        // A schema that is only put together is as its first part with something to say.
        let part = list(schema, "allOf").find(|part| walk.resolve(part).is_some_and(says_something));
        return part.map_or_else(|| Some(guess(text)), |part| at_depth(walk, part, text, depth + 1));
    }
    types.into_iter().find_map(|kind| of_type(walk, schema, kind, text, depth))
}

fn says_something(schema: &JsonObject) -> bool {
    ["type", "enum", "const", "anyOf", "oneOf", "allOf", "properties", "items"]
        .iter()
        .any(|key| schema.contains_key(*key))
}

fn of_type<'a>(
    walk: &SchemaWalk<'a>,
    schema: &'a JsonObject,
    kind: &str,
    text: &str,
    depth: usize,
) -> Option<Value> {
    match kind {
        "string" => has_length(schema, text).then(|| Value::from(text)),
        "integer" => integer(text).filter(|number| in_range(schema, number)).map(Value::Number),
        "number" => number(text).filter(|number| in_range(schema, number)).map(Value::Number),
        "boolean" => boolean(text).map(Value::Bool),
        "null" => (text == "null").then_some(Value::Null),
        "array" => items(walk, schema, text, depth).map(Value::Array),
        "object" => serde_json::from_str(text).ok().filter(Value::is_object),
        _ => None,
    }
}

/// A value without a type: JSON other than a string, or else the text itself.
fn guess(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(Value::String(_)) | Err(_) => Value::from(text),
        Ok(value) => value,
    }
}

/// The member of an `enum` that the text names, by itself or by its name in `enumNames`.
fn member(schema: &JsonObject, text: &str) -> Option<Value> {
    let by_value = list(schema, "enum").find(|value| is_written(value, text));
    let by_name = || {
        let named = list(schema, "enum").zip(list(schema, "enumNames"));
        named.into_iter().find_map(|(value, name)| (name.as_str() == Some(text)).then_some(value))
    };
    by_value.or_else(by_name).cloned()
}

/// Whether the text stands for the value.
fn is_written(value: &Value, text: &str) -> bool {
    match value {
        Value::String(string) => string == text,
        other => serde_json::from_str::<Value>(text).is_ok_and(|given| given == *other),
    }
}

fn has_length(schema: &JsonObject, text: &str) -> bool {
    let length = text.chars().count() as u64;
    let limit = |key: &str| schema.get(key).and_then(Value::as_u64);
    limit("minLength").is_none_or(|least| length >= least)
        && limit("maxLength").is_none_or(|most| length <= most)
}

fn in_range(schema: &JsonObject, number: &Number) -> bool {
    let limit = |key: &str| schema.get(key).and_then(Value::as_f64);
    let Some(number) = number.as_f64() else { return false };
    limit("minimum").is_none_or(|least| number >= least)
        && limit("maximum").is_none_or(|most| number <= most)
        && limit("exclusiveMinimum").is_none_or(|below| number > below)
        && limit("exclusiveMaximum").is_none_or(|above| number < above)
}

/// A whole number; `1e3` and `2.0` are some too.
fn integer(text: &str) -> Option<Number> {
    if let Ok(number) = text.parse::<i64>() {
        return Some(Number::from(number));
    }
    if let Ok(number) = text.parse::<u64>() {
        return Some(Number::from(number));
    }
    let number: f64 = text.parse().ok()?;
    (number.fract() == 0.0).then(|| plain_number(number)).flatten()
}

fn number(text: &str) -> Option<Number> {
    integer(text).or_else(|| text.parse().ok().and_then(plain_number))
}

fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// The items of a list: JSON, or texts with commas between them.
fn items<'a>(walk: &SchemaWalk<'a>, schema: &'a JsonObject, text: &str, depth: usize) -> Option<Vec<Value>> {
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text).ok();
    }
    if text.is_empty() {
        return Some(Vec::new());
    }
    let schema = schema.get("items");
    let item = |text: &str| {
        schema.map_or_else(|| Some(guess(text)), |schema| at_depth(walk, schema, text, depth + 1))
    };
    text.split(',').map(item).collect()
}
