//! JSON Schemas of Rust types, reduced to the keywords that all clients understand.
//!
//! What schemars derives is right and not what clients expect: an `Option` is a type or null although the member may be
//! left out, the variants of an enumeration stand without a type beside them. Programs that turn schemas into forms or
//! into the schemas of a model look for one plain `type`.

use refmcp_proto::model::JsonObject;
use schemars::generate::{Contract, SchemaSettings};
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

/// The schema of a type whose values are read (`Deserialize`) or written (`Serialize`); which members are required
/// depends on it.
pub(crate) fn schema_of<T: JsonSchema>(contract: Contract) -> JsonObject {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.contract = contract;
    });
    let schema = SchemaGenerator::new(settings).into_root_schema_for::<T>();
    match schema.to_value() {
        Value::Object(mut object) => {
            // The name of a Rust type says nothing to a client.
            object.remove("title");
            object.remove("description");
            simplify(&mut object);
            object
        }
        // A type that takes anything has the schema `true`.
        _ => JsonObject::new(),
    }
}

/// Brings a schema and all within it into the plain form.
fn simplify(schema: &mut JsonObject) {
    for keyword in ["properties", "patternProperties", "$defs"] {
        let inner = schema.get_mut(keyword).and_then(Value::as_object_mut);
        inner
            .into_iter()
            .flat_map(|inner| inner.values_mut())
            .filter_map(Value::as_object_mut)
            .for_each(simplify);
    }
    for keyword in ["oneOf", "anyOf", "allOf", "prefixItems"] {
        let inner = schema.get_mut(keyword).and_then(Value::as_array_mut);
        inner.into_iter().flatten().filter_map(Value::as_object_mut).for_each(simplify);
    }
    for keyword in ["items", "additionalProperties", "not"] {
        schema.get_mut(keyword).and_then(Value::as_object_mut).into_iter().for_each(simplify);
    }
    let required: Vec<String> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect())
        .unwrap_or_default();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        let optional = properties.iter_mut().filter(|(name, _)| !required.contains(name));
        optional.filter_map(|(_, property)| property.as_object_mut()).for_each(forget_null);
    }
    forget_number_format(schema);
    add_type(schema);
}

/// Takes `null` out of the schema of a member that may be left out: that says the same.
fn forget_null(property: &mut JsonObject) {
    let is_null = |schema: &Value| schema.get("type").and_then(Value::as_str) == Some("null");
    if let Some(Value::Array(types)) = property.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            property.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = property.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    for keyword in ["anyOf", "oneOf"] {
        let Some(Value::Array(branches)) = property.get_mut(keyword) else { continue };
        branches.retain(|branch| !is_null(branch));
        if let [Value::Object(only)] = branches.as_slice() {
            let only = only.clone();
            property.remove(keyword);
            // What stands beside the branches is about this member, and goes first.
            for (key, value) in only {
                property.entry(key).or_insert(value);
            }
        }
    }
    if property.get("default").is_some_and(Value::is_null) {
        property.remove("default");
    }
    add_type(property);
}

/// Says beside values and alternatives which type all of them have, if it is one.
fn add_type(schema: &mut JsonObject) {
    if schema.contains_key("type") {
        return;
    }
    let of_values = schema.get("const").map(type_of).or_else(|| {
        let values = schema.get("enum")?.as_array()?;
        one(values.iter().map(type_of))
    });
    let of_branches = || {
        let branches = ["oneOf", "anyOf"].iter().find_map(|keyword| schema.get(*keyword)?.as_array())?;
        let types: Option<Vec<&str>> = branches.iter().map(|branch| branch.get("type")?.as_str()).collect();
        one(types?.into_iter())
    };
    if let Some(name) = of_values.or_else(of_branches).map(str::to_owned) {
        schema.insert("type".to_owned(), name.into());
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The one that all are.
fn one<'a>(mut names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let first = names.next()?;
    names.all(|name| name == first).then_some(first)
}

/// Names of Rust's number types are no formats that others know, and some validators complain about them.
fn forget_number_format(schema: &mut JsonObject) {
    let is_number = schema.get("type").is_some_and(|kind| {
        let names = |name: &Value| matches!(name.as_str(), Some("integer" | "number"));
        names(kind) || kind.as_array().is_some_and(|kinds| kinds.iter().any(names))
    });
    if is_number {
        schema.remove("format");
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_have_no_format() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is of interest")]
        struct Numbers {
            count: u64,
            most: Option<usize>,
            shares: Vec<f64>,
        }

        let schema = serde_json::to_string(&schema_of::<Numbers>(Contract::Deserialize)).unwrap();
        assert!(
            schema.contains("integer") && schema.contains("number") && !schema.contains("format"),
            "{schema}"
        );
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Wanted {
        #[serde(skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
        #[serde(default)]
        size: Option<Size>,
        colour: Option<Colour>,
        inner: Option<Inner>,
        many: Vec<Option<u8>>,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Inner {
        note: Option<String>,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Colour {
        Red,
        Blue,
    }

    /// How large
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    #[schemars(inline)]
    enum Size {
        /// Fits a pocket
        Small,
        /// Does not
        Large,
    }

    #[test]
    fn what_may_be_left_out_is_not_null_as_well() {
        let schema = Value::Object(schema_of::<Wanted>(Contract::Deserialize));
        let properties = &schema["properties"];
        assert_eq!(schema["required"], json!(["many"]));
        assert_eq!(properties["tag"], json!({ "type": "string" }));
        assert_eq!(properties["size"]["type"], "string");
        assert_eq!(properties["size"].get("default"), None);
        assert!(
            !schema.to_string().replace(&properties["many"].to_string(), "").contains("null"),
            "{schema}"
        );
        assert_eq!(properties["many"]["items"]["type"], json!(["integer", "null"]), "nothing else says this");
        assert_eq!(schema["$defs"]["Colour"]["type"], "string");
        assert_eq!(schema["$defs"]["Inner"]["properties"]["note"], json!({ "type": "string" }));
    }

    #[test]
    fn what_is_always_written_may_be_null() {
        let schema = Value::Object(schema_of::<Wanted>(Contract::Serialize));
        assert_eq!(schema["required"], json!(["size", "colour", "inner", "many"]));
        assert_eq!(schema["properties"]["tag"], json!({ "type": "string" }));
        let check = refmcp_proto::schema::SchemaValidator::compile(&schema_of::<Wanted>(Contract::Serialize))
            .unwrap();
        let nothing = Wanted { tag: None, size: None, colour: None, inner: None, many: vec![None] };
        check.validate(&serde_json::to_value(nothing).unwrap()).unwrap();
    }

    #[test]
    fn alternatives_say_which_type_they_are() {
        #[derive(Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "lowercase")]
        #[expect(dead_code, reason = "only its schema is of interest")]
        enum Tagged {
            Text { text: String },
            Number { number: f64 },
        }
        #[derive(Deserialize, JsonSchema)]
        #[serde(untagged)]
        #[expect(dead_code, reason = "only its schema is of interest")]
        enum Mixed {
            Text(String),
            Number(f64),
        }
        let size = Value::Object(schema_of::<Size>(Contract::Deserialize));
        assert_eq!((&size["type"], size["oneOf"].as_array().map(Vec::len)), (&json!("string"), Some(2)));
        assert_eq!(schema_of::<Tagged>(Contract::Deserialize)["type"], "object");
        assert_eq!(schema_of::<Mixed>(Contract::Deserialize).get("type"), None, "there is no one type");
    }
}
