//! Walking a JSON Schema: references are followed within the schema itself, and nowhere else. A schema may be hostile,
//! so the length of a walk is limited.

use std::cell::Cell;

use refmcp_proto::model::JsonObject;
use serde_json::Value;

/// References that are followed from one place; more are taken for a circle.
const MOST_REFERENCES: usize = 16;

/// How deep alternatives may be nested.
pub(super) const DEEPEST: usize = 16;

/// Schemas that one walk looks at; alternatives that refer to each other could go on for ever.
const LONGEST_WALK: usize = 10_000;

/// A walk through a schema.
pub(super) struct SchemaWalk<'a> {
    pub(super) root: &'a JsonObject,
    left: Cell<usize>,
}

impl<'a> SchemaWalk<'a> {
    pub(super) fn new(root: &'a JsonObject) -> Self {
        Self { root, left: Cell::new(LONGEST_WALK) }
    }

    /// The schema at a place, with a reference there followed. `None` for schemas that are only `true` or `false`, for
    /// references that lead nowhere, outside, or in a circle, and when the walk has become too long.
    pub(super) fn resolve(&self, schema: &'a Value) -> Option<&'a JsonObject> {
        self.left.set(self.left.get().checked_sub(1)?);
        let mut schema = schema.as_object()?;
        for _ in 0..MOST_REFERENCES {
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
