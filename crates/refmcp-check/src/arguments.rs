//! Generates the arguments of a tool call from its JSON Schema: the least that it asks for.

use refmcp_proto::model::JsonObject;
use refmcp_proto::schema::SchemaValidator;
use serde_json::{Map, Value, json};

/// How deep a schema is followed.
const DEEPEST: usize = 12;

/// Most elements of an array, or characters of a text.
const MAX_LENGTH: u64 = 1000;

/// Arguments that fit the schema; `None` where none are found.
pub(crate) fn minimal(schema: &JsonObject) -> Option<Value> {
    let found = Search { root: schema }.object(schema, 0)?;
    SchemaValidator::compile(schema).ok()?.validate(&found).ok()?;
    Some(found)
}

struct Search<'a> {
    root: &'a JsonObject,
}

impl<'a> Search<'a> {
    fn value(&self, schema: &'a Value, depth: usize) -> Option<Value> {
        let schema = match schema {
            Value::Bool(true) => return Some(json!("x")),
            Value::Object(schema) if depth < DEEPEST => schema,
            _ => return None,
        };
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            return self.value(self.lookup(reference)?, depth + 1);
        }
        if let Some(fixed) = schema.get("const").or_else(|| schema.get("default")) {
            return Some(fixed.clone());
        }
        for listed in ["enum", "examples"] {
            if let Some(first) = schema.get(listed).and_then(Value::as_array).and_then(|all| all.first()) {
                return Some(first.clone());
            }
        }
        for choice in ["oneOf", "anyOf"] {
            if let Some(choices) = schema.get(choice).and_then(Value::as_array) {
                return choices.iter().find_map(|choice| self.value(choice, depth + 1));
            }
        }
        if let Some([only]) = schema.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
            return self.value(only, depth + 1);
        }
        let kind = match schema.get("type") {
            Some(Value::Array(kinds)) => kinds.iter().find_map(Value::as_str),
            Some(kind) => kind.as_str(),
            None if schema.contains_key("properties") => Some("object"),
            None => None,
        };
        match kind {
            Some("string") => text(schema),
            Some("integer" | "number") => number(schema),
            Some("boolean") => Some(json!(false)),
            Some("null") => Some(Value::Null),
            Some("array") => self.array(schema, depth),
            Some("object") => self.object(schema, depth),
            None => Some(json!("x")),
            Some(_) => None,
        }
    }

    fn object(&self, schema: &'a JsonObject, depth: usize) -> Option<Value> {
        let mut members = Map::new();
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            let property = schema.get("properties").and_then(|all| all.get(name));
            members.insert(name.to_owned(), self.value(property.unwrap_or(&Value::Bool(true)), depth + 1)?);
        }
        Some(Value::Object(members))
    }

    fn array(&self, schema: &'a JsonObject, depth: usize) -> Option<Value> {
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        if least == 0 {
            return Some(json!([]));
        }
        let item = self.value(schema.get("items").unwrap_or(&Value::Bool(true)), depth + 1)?;
        let count = usize::try_from(least).ok().filter(|_| least <= MAX_LENGTH)?;
        Some(Value::Array(vec![item; count]))
    }

    fn lookup(&self, reference: &str) -> Option<&'a Value> {
        let names = reference.strip_prefix("#/")?.split('/');
        let mut found = None;
        for name in names {
            let name = name.replace("~1", "/").replace("~0", "~");
            found = match found {
                None => self.root.get(&name),
                Some(at) => Value::get(at, &name),
            };
            found?;
        }
        found
    }
}

fn text(schema: &JsonObject) -> Option<Value> {
    let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
    let text = match format {
        "date-time" => "2000-01-01T00:00:00Z".to_owned(),
        "date" => "2000-01-01".to_owned(),
        "time" => "00:00:00Z".to_owned(),
        "email" => "someone@example.org".to_owned(),
        "uri" | "url" | "iri" => "https://example.org/".to_owned(),
        "uuid" => "00000000-0000-4000-8000-000000000000".to_owned(),
        "hostname" => "example.org".to_owned(),
        "ipv4" => "192.0.2.1".to_owned(),
        _ => {
            let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(1);
            let most = schema.get("maxLength").and_then(Value::as_u64).unwrap_or(u64::MAX);
            "x".repeat(usize::try_from(least.max(1).min(most)).ok().filter(|_| least <= MAX_LENGTH)?)
        }
    };
    Some(json!(text))
}

fn number(schema: &JsonObject) -> Option<Value> {
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let step = bound("multipleOf").filter(|step| *step > 0.0).unwrap_or(1.0);
    let least = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|least| least + step));
    let most = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|most| most - step));
    let wanted = match (least, most) {
        (Some(least), _) if least > 1.0 => (least / step).ceil() * step,
        (_, Some(most)) if most < 1.0 => (most / step).floor() * step,
        _ => step.max(1.0),
    };
    let whole = wanted.fract() == 0.0 && wanted.abs() < 9e15;
    // Whole and small enough, so nothing is lost.
    Some(if whole { json!(wanted as i64) } else { json!(wanted) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(schema: &Value) -> Option<Value> {
        minimal(schema.as_object().unwrap())
    }

    fn one(property: &Value) -> Option<Value> {
        of(&json!({ "type": "object", "properties": { "a": property }, "required": ["a"] }))
            .map(|it| it["a"].clone())
    }

    #[test]
    fn only_what_is_required_is_given() {
        let schema = json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": {} }, "required": ["a"] });
        assert_eq!(of(&schema), Some(json!({ "a": "x" })));
        assert_eq!(of(&json!({ "type": "object" })), Some(json!({})));
    }

    #[test]
    fn values_fit_their_limits() {
        for (property, expected) in [
            (json!({ "type": "string", "minLength": 3 }), json!("xxx")),
            (json!({ "type": "string", "enum": ["red", "blue"] }), json!("red")),
            (json!({ "type": "integer" }), json!(1)),
            (json!({ "type": "integer", "minimum": 5, "multipleOf": 4 }), json!(8)),
            (json!({ "type": "number", "maximum": -2 }), json!(-2)),
            (json!({ "type": "integer", "exclusiveMinimum": 10 }), json!(11)),
            (
                json!({ "type": "array", "minItems": 2, "items": { "type": "boolean" } }),
                json!([false, false]),
            ),
            (json!({ "anyOf": [false, { "const": 7 }] }), json!(7)),
            (json!({ "type": ["null", "string"] }), Value::Null),
            (json!({ "type": "string", "format": "date" }), json!("2000-01-01")),
            (json!({}), json!("x")),
        ] {
            assert_eq!(one(&property), Some(expected), "{property}");
        }
    }

    #[test]
    fn references_within_the_schema_are_followed() {
        let schema = json!({
            "type": "object", "properties": { "a": { "$ref": "#/$defs/kind" } }, "required": ["a"],
            "$defs": { "kind": { "type": "object", "properties": { "b": { "const": 1 } }, "required": ["b"] } },
        });
        assert_eq!(of(&schema), Some(json!({ "a": { "b": 1 } })));
    }

    #[test]
    fn nothing_is_given_where_nothing_is_found() {
        for property in [
            json!({ "type": "string", "pattern": "^[0-9]{4}$" }),
            json!({ "$ref": "https://example.org/schema" }),
            json!({ "type": "string", "minLength": 1_000_000 }),
            json!(false),
        ] {
            assert_eq!(one(&property), None, "{property}");
        }
        let endless = json!({ "type": "object", "properties": { "a": { "$ref": "#" } }, "required": ["a"] });
        assert_eq!(of(&endless), None);
    }
}
