//! The arguments that a JSON Schema asks for, and what is expected of each. References are followed within the schema itself
//! and nowhere else. A schema may be hostile, so the length of a walk is limited.

use std::cell::Cell;

use refmcp_proto::model::JsonObject;
use serde_json::Value;

use super::value::parse_value;

/// References that are followed from one place; more are taken for a circle.
const MAX_REFERENCES: usize = 16;

/// How deep alternatives may be nested.
pub(super) const DEEPEST: usize = 16;

/// Schemas that one walk looks at; alternatives that refer to each other could go on for ever.
const MAX_STEPS: usize = 10_000;

/// A walk through a schema.
pub(super) struct SchemaWalk<'a> {
    pub(super) root: &'a JsonObject,
    left: Cell<usize>,
}

impl<'a> SchemaWalk<'a> {
    pub(super) fn new(root: &'a JsonObject) -> Self {
        Self { root, left: Cell::new(MAX_STEPS) }
    }

    /// The schema at a place, with a reference there followed. `None` for schemas that are only `true` or `false`, for
    /// references that lead nowhere, outside, or in a circle, and when the walk has become too long.
    pub(super) fn resolve(&self, schema: &'a Value) -> Option<&'a JsonObject> {
        self.left.set(self.left.get().checked_sub(1)?);
        let mut schema = schema.as_object()?;
        for _ in 0..MAX_REFERENCES {
            let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { return Some(schema) };
            schema = lookup(self.root, reference)?;
        }
        None
    }

    /// The schema of a property, those of the schema's alternatives and parts included.
    pub(super) fn property(&self, schema: &'a JsonObject, name: &str) -> Option<&'a Value> {
        self.find_property(schema, name, 0)
    }

    fn find_property(&self, schema: &'a JsonObject, name: &str, depth: usize) -> Option<&'a Value> {
        let own = schema.get("properties").and_then(Value::as_object).and_then(|all| all.get(name));
        if own.is_some() || depth == DEEPEST {
            return own;
        }
        parts(schema)
            .filter_map(|part| self.resolve(part))
            .find_map(|part| self.find_property(part, name, depth + 1))
    }

    /// The names of all properties.
    pub(super) fn property_names(&self, schema: &'a JsonObject) -> Vec<&'a str> {
        let mut names = Vec::new();
        self.collect_names(schema, 0, &mut names);
        names
    }

    fn collect_names(&self, schema: &'a JsonObject, depth: usize, names: &mut Vec<&'a str>) {
        let own = schema.get("properties").and_then(Value::as_object);
        for name in own.into_iter().flat_map(JsonObject::keys) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        if depth < DEEPEST {
            for part in parts(schema).filter_map(|part| self.resolve(part)) {
                self.collect_names(part, depth + 1, names);
            }
        }
    }
}

/// What a reference such as `#/$defs/Point` names.
fn lookup<'a>(root: &'a JsonObject, reference: &str) -> Option<&'a JsonObject> {
    let pointer = reference.strip_prefix('#')?;
    if pointer.is_empty() {
        return Some(root);
    }
    let (first, rest) = pointer.strip_prefix('/')?.split_once('/').unwrap_or((pointer.get(1..)?, ""));
    let member = root.get(&first.replace("~1", "/").replace("~0", "~"))?;
    if rest.is_empty() { member.as_object() } else { member.pointer(&format!("/{rest}"))?.as_object() }
}

/// The schemas that this one is put together from.
fn parts(schema: &JsonObject) -> impl Iterator<Item = &Value> {
    ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|key| list(schema, key))
}

/// The alternatives of a schema.
pub(super) fn alternatives(schema: &JsonObject) -> impl Iterator<Item = &Value> {
    ["anyOf", "oneOf"].into_iter().flat_map(|key| list(schema, key))
}

/// A member that is a list.
pub(super) fn list<'a>(schema: &'a JsonObject, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// The names in `required`.
pub(super) fn required(schema: &JsonObject) -> impl Iterator<Item = &str> {
    list(schema, "required").filter_map(Value::as_str)
}

/// A member that is text.
pub(super) fn text<'a>(schema: &'a JsonObject, key: &str) -> Option<&'a str> {
    schema.get(key).and_then(Value::as_str)
}

/// The types a schema names, or the one that its other members speak of.
pub(super) fn types(schema: &JsonObject) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ if schema.contains_key("properties") => vec!["object"],
        _ if schema.contains_key("items") || schema.contains_key("prefixItems") => vec!["array"],
        _ => Vec::new(),
    }
}

/// Members of an `enum` that are named; of longer ones, so many.
const MAX_MEMBERS: usize = 12;

/// Characters of a description of alternatives.
const MAX_CHARACTERS: usize = 400;

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
        return format!("one of {}", members(list(schema, "enum").map(plain), ", "));
    }
    let choices: Vec<String> = alternatives(schema).map(|choice| at_depth(walk, choice, depth + 1)).collect();
    if alternatives(schema).all(|choice| choice.get("const").is_some()) && !choices.is_empty() {
        return format!("one of {}", members(choices.into_iter(), ", "));
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
    let text = members(choices.into_iter(), " or ");
    match text.char_indices().nth(MAX_CHARACTERS) {
        None => text,
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
    }
}

fn members(names: impl Iterator<Item = String>, between: &str) -> String {
    let mut names: Vec<String> = names.take(MAX_MEMBERS + 1).collect();
    if names.len() > MAX_MEMBERS {
        names.truncate(MAX_MEMBERS);
        names.push("…".to_owned());
    }
    names.join(between)
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

/// An argument that a schema names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ArgumentField {
    pub(crate) name: String,
    /// Its title, when that is not its name.
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    /// What is expected, in words.
    pub(crate) expected: String,
    /// The value when nothing is typed.
    pub(crate) default: Option<Value>,
    /// The values of an enumeration; empty for other types.
    pub(crate) choices: Vec<String>,
    /// Whether it is hidden while it is typed.
    pub(crate) secret: bool,
    pub(crate) required: bool,
}

/// The required arguments that are missing, in the order in which the schema requires them.
pub(crate) fn missing_fields(schema: &JsonObject, arguments: &JsonObject) -> Vec<ArgumentField> {
    required(schema).filter(|name| !arguments.contains_key(*name)).map(|name| field(schema, name)).collect()
}

/// All arguments that the schema names, in its order.
pub(crate) fn all_fields(schema: &JsonObject) -> Vec<ArgumentField> {
    SchemaWalk::new(schema).property_names(schema).into_iter().map(|name| field(schema, name)).collect()
}

fn field(root: &JsonObject, name: &str) -> ArgumentField {
    let anything = Value::Bool(true);
    let walk = SchemaWalk::new(root);
    let schema = walk.property(root, name);
    let resolved = schema.and_then(|schema| walk.resolve(schema));
    let schema = schema.unwrap_or(&anything);
    // What is said beside a reference is meant for this place, so it comes first.
    let says = |key: &str| {
        let here = schema.as_object().and_then(|schema| text(schema, key));
        here.or_else(|| resolved.and_then(|schema| text(schema, key))).map(str::to_owned)
    };
    let default = schema.get("default").or_else(|| resolved.and_then(|schema| schema.get("default")));
    ArgumentField {
        name: name.to_owned(),
        title: says("title"),
        description: says("description"),
        expected: expected(root, schema),
        default: default.cloned(),
        required: required(root).any(|required| required == name),
        choices: resolved.map(choices).unwrap_or_default(),
        secret: says("format").as_deref() == Some("password")
            || resolved.is_some_and(|schema| schema.get("writeOnly") == Some(&Value::Bool(true))),
    }
}

fn choices(schema: &JsonObject) -> Vec<String> {
    let members: Vec<String> = list(schema, "enum").map(plain).collect();
    if !members.is_empty() {
        return members;
    }
    alternatives(schema)
        .map(|choice| choice.get("const").map(plain))
        .collect::<Option<_>>()
        .unwrap_or_default()
}

impl ArgumentField {
    /// The values to suggest.
    pub(crate) fn suggestions(&self) -> Vec<String> {
        if self.choices.is_empty() && self.expected == "true or false" {
            return vec!["false".to_owned(), "true".to_owned()];
        }
        self.choices.clone()
    }

    /// A text as a value of the field's type.
    ///
    /// # Errors
    ///
    /// What was expected instead.
    pub(crate) fn parse(&self, schema: &JsonObject, text: &str) -> Result<Value, String> {
        let field = SchemaWalk::new(schema).property(schema, &self.name);
        parse_value(schema, field.unwrap_or(&Value::Bool(true)), text)
    }
}
