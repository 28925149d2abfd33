//! JSON Schemas: compiled once, applied often, never fetched from anywhere.
//!
//! A schema may come from somebody who means harm. Whatever it says, it is compiled and applied in a time that grows
//! with its size: patterns are matched without going back, and there is a limit to how much it may say.

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

use std::sync::Arc;

use refmcp_proto::jsonrpc::excerpt;
use refmcp_proto::model::JsonObject;
use serde_json::Value;

/// A schema, ready to be applied.
#[derive(Debug, Clone)]
pub struct Schema {
    compiled: Arc<jsonschema::Validator>,
}

/// The dialect of schemas that name none, and the only one that is understood.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Faults that one message names at the most.
const MOST_FAULTS: usize = 5;

/// Values inside a schema, its own objects and arrays included, at the most.
const MOST_PARTS: usize = 20_000;

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// When it refers to anything outside of itself, is in a dialect that is not understood, is too large, or is no
    /// schema at all.
    pub fn compile(schema: &JsonObject) -> Result<Self, String> {
        let dialect = schema.get("$schema").and_then(Value::as_str).unwrap_or(DIALECT);
        if dialect.trim_end_matches('#') != DIALECT {
            return Err(format!("its dialect is {dialect}; only {DIALECT} is understood"));
        }
        let value = Value::Object(schema.clone());
        if parts(&value) > MOST_PARTS {
            return Err(format!("it has more than {MOST_PARTS} parts"));
        }
        let compiled = jsonschema::options()
            .with_draft(jsonschema::Draft::Draft202012)
            .with_pattern_options(jsonschema::PatternOptions::regex())
            .build(&value)
            .map_err(|fault| fault.to_string())?;
        Ok(Self { compiled: Arc::new(compiled) })
    }

    /// Checks a value.
    ///
    /// # Errors
    /// What is wrong with it, place by place.
    pub fn check(&self, value: &Value) -> Result<(), String> {
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

fn parts(value: &Value) -> usize {
    1 + match value {
        Value::Object(members) => members.values().map(parts).sum(),
        Value::Array(items) => items.iter().map(parts).sum(),
        _ => 0,
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
    fn nothing_is_fetched() {
        assert!(compile(json!({"$ref": "http://127.0.0.1:1/schema.json"})).is_err());
        assert!(compile(json!({"$ref": "file:///etc/hostname"})).is_err());
    }

    #[test]
    fn schemas_that_mean_harm_do_none() {
        let loops = compile(
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        );
        if let Ok(schema) = loops {
            let _ = schema.check(&json!({}));
        }
        let patient = compile(json!({"type": "string", "pattern": "^(a+)+$"})).unwrap();
        assert!(patient.check(&json!("a".repeat(50_000) + "b")).is_err());
        let wide = compile(json!({"allOf": vec![json!({"type": "string"}); 9_000]}));
        if let Ok(schema) = wide {
            assert!(schema.check(&json!("x")).is_ok());
        }
        assert!(
            compile(json!({"allOf": vec![json!({"type": "string"}); 20_000]})).unwrap_err().contains("parts")
        );
    }
}
