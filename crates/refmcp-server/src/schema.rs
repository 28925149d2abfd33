//! JSON Schemas: made from types, compiled once, never fetched from anywhere.

use std::sync::Arc;

use refmcp_proto::jsonrpc::excerpt;
use refmcp_proto::model::JsonObject;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

/// A schema, ready to be applied.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    compiled: Arc<jsonschema::Validator>,
}

/// The dialect of schemas that name none, and the only one that is understood.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Faults that one message names at the most.
const MOST_FAULTS: usize = 5;

impl Schema {
    /// Compiles a schema; one that refers to anything outside of itself is refused.
    pub(crate) fn compile(schema: &JsonObject) -> Result<Self, String> {
        let dialect = schema.get("$schema").and_then(Value::as_str).unwrap_or(DIALECT);
        if dialect.trim_end_matches('#') != DIALECT {
            return Err(format!("its dialect is {dialect}; only {DIALECT} is understood"));
        }
        let value = Value::Object(schema.clone());
        let compiled = jsonschema::options()
            .with_draft(jsonschema::Draft::Draft202012)
            .build(&value)
            .map_err(|fault| fault.to_string())?;
        Ok(Self { compiled: Arc::new(compiled) })
    }

    /// What is wrong with a value, place by place.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        if self.compiled.is_valid(value) {
            return Ok(());
        }
        let faults = self.compiled.iter_errors(value).take(MOST_FAULTS);
        let faults: Vec<String> = faults
            .map(|fault| match fault.instance_path().as_str() {
                "" => excerpt(&fault.to_string()),
                path => format!("{}: {}", excerpt(path), excerpt(&fault.to_string())),
            })
            .collect();
        Err(faults.join("; "))
    }
}

/// The schema of a type, as an object of its own.
pub(crate) fn schema_of<T: JsonSchema>() -> Arc<JsonObject> {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.meta_schema = None)
        .with_transform(RecursiveTransform(forget_number_formats));
    let schema = SchemaGenerator::new(settings).into_root_schema_for::<T>();
    match schema.to_value() {
        Value::Object(mut object) => {
            // The name of a Rust type says nothing to a client.
            object.remove("title");
            object.remove("description");
            Arc::new(object)
        }
        // A type that takes anything has the schema `true`.
        _ => Arc::new(JsonObject::new()),
    }
}

/// Names of Rust's number types are no formats that others know, and some validators complain about them.
fn forget_number_formats(schema: &mut schemars::Schema) {
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
    use serde_json::json;

    use super::*;

    fn compile(schema: Value) -> Result<Schema, String> {
        let Value::Object(object) = schema else { panic!("no object") };
        Schema::compile(&object)
    }

    #[test]
    fn faults_name_their_place() {
        let schema = compile(json!({
            "type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]
        }));
        let schema = schema.unwrap();
        assert!(schema.check(&json!({"a": 1})).is_ok());
        assert!(schema.check(&json!({"a": "x"})).unwrap_err().starts_with("/a: "));
        assert!(schema.check(&json!({})).unwrap_err().contains("\"a\""));
    }

    #[test]
    fn numbers_have_no_format() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is of interest")]
        struct Numbers {
            count: u64,
            most: Option<usize>,
            shares: Vec<f64>,
        }

        let schema = serde_json::to_string(&*schema_of::<Numbers>()).unwrap();
        assert!(
            schema.contains("integer") && schema.contains("number") && !schema.contains("format"),
            "{schema}"
        );
    }

    #[test]
    fn nothing_is_fetched() {
        assert!(compile(json!({"$ref": "http://127.0.0.1:1/schema.json"})).is_err());
        assert!(compile(json!({"$ref": "file:///etc/hostname"})).is_err());
    }
}
