//! What a schema expects, described in a few words.

use refmcp_proto::model::JsonObject;
use serde_json::Value;

use super::schema::{DEEPEST, SchemaWalk, alternatives, list, text, types};

/// Members of an `enum` that are named; of longer ones, so many.
const MOST_MEMBERS: usize = 12;

/// Characters of a description of alternatives.
const LONGEST: usize = 400;

/// What is expected, such as "an integer from 1 to 10" or "one of red, green".
pub(super) fn expected(root: &JsonObject, schema: &Value) -> String {
    at_depth(&SchemaWalk::new(root), schema, 0)
}

fn at_depth<'a>(walk: &SchemaWalk<'a>, schema: &'a Value, depth: usize) -> String {
    let Some(schema) = walk.resolve(schema).filter(|_| depth < DEEPEST) else {
        return "any value".to_owned();
    };
    if let Some(only) = schema.get("const") {
        return plain(only);
    }
    if schema.contains_key("enum") {
        return format!("one of {}", members(list(schema, "enum").map(plain)));
    }
    let choices: Vec<String> = alternatives(schema).map(|choice| at_depth(walk, choice, depth + 1)).collect();
    if alternatives(schema).all(|choice| choice.get("const").is_some()) && !choices.is_empty() {
        return format!("one of {}", members(choices.into_iter()));
    }
    if !choices.is_empty() {
        return one_of(choices);
    }
    let types = types(schema);
    if types.is_empty() {
        let part = list(schema, "allOf").next();
        return part.map_or_else(|| "any value".to_owned(), |part| at_depth(walk, part, depth + 1));
    }
    one_of(types.into_iter().map(|kind| of_type(walk, schema, kind, depth)).collect())
}

fn one_of(mut choices: Vec<String>) -> String {
    choices.dedup();
    if choices.len() > MOST_MEMBERS {
        choices.truncate(MOST_MEMBERS);
        choices.push("…".to_owned());
    }
    let text = choices.join(" or ");
    match text.char_indices().nth(LONGEST) {
        None => text,
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
    }
}

fn members(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = names.take(MOST_MEMBERS + 1).collect();
    if names.len() > MOST_MEMBERS {
        names.truncate(MOST_MEMBERS);
        names.push("…".to_owned());
    }
    names.join(", ")
}

fn of_type<'a>(walk: &SchemaWalk<'a>, schema: &'a JsonObject, kind: &str, depth: usize) -> String {
    match kind {
        "string" => {
            let what =
                text(schema, "format").map_or("a text".to_owned(), |format| format!("a text ({format})"));
            match (schema.get("minLength"), schema.get("maxLength")) {
                (Some(least), Some(most)) => format!("{what} of {least} to {most} characters"),
                (Some(least), None) => format!("{what} of at least {least} characters"),
                (None, Some(most)) => format!("{what} of up to {most} characters"),
                (None, None) => what,
            }
        }
        "integer" => in_range("an integer", schema),
        "number" => in_range("a number", schema),
        "boolean" => "true or false".to_owned(),
        "null" => "null".to_owned(),
        "array" => match schema.get("items") {
            Some(items) => format!("a list, each item {}", at_depth(walk, items, depth + 1)),
            None => "a list".to_owned(),
        },
        "object" => "an object in JSON".to_owned(),
        other => other.to_owned(),
    }
}

fn in_range(what: &str, schema: &JsonObject) -> String {
    let range = match (schema.get("minimum"), schema.get("maximum")) {
        (Some(least), Some(most)) => format!(" from {least} to {most}"),
        (Some(least), None) => format!(" from {least}"),
        (None, Some(most)) => format!(" up to {most}"),
        (None, None) => String::new(),
    };
    let limit = |key, word| schema.get(key).map(|limit| format!(" {word} {limit}")).unwrap_or_default();
    format!("{what}{range}{}{}", limit("exclusiveMinimum", "above"), limit("exclusiveMaximum", "below"))
}

/// A value without the quotes of a text.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
