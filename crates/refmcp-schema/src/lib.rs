//! JSON Schemas: compiled once, applied often, never fetched from anywhere.
//!
//! A schema may come from somebody who means harm. Whatever it says, it is compiled and applied in a time that grows
//! with its size: patterns are matched without going back, and there is a limit to how much it may say.

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

use std::sync::Arc;

use jsonschema::Draft;
use refmcp_proto::jsonrpc::excerpt;
use refmcp_proto::model::JsonObject;
use serde_json::Value;

/// A schema, ready to be applied.
#[derive(Debug, Clone)]
pub struct Schema {
    compiled: Arc<jsonschema::Validator>,
}

/// The dialects that are understood. The first is that of schemas that name none; the others are what older SDKs write.
const DIALECTS: [(&str, Draft); 3] = [
    ("https://json-schema.org/draft/2020-12/schema", Draft::Draft202012),
    ("https://json-schema.org/draft/2019-09/schema", Draft::Draft201909),
    ("http://json-schema.org/draft-07/schema", Draft::Draft7),
];

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
        let draft = dialect(schema)?;
        let value = Value::Object(schema.clone());
        if parts(&value) > MOST_PARTS {
            return Err(format!("it has more than {MOST_PARTS} parts"));
        }
        let compiled = jsonschema::options()
            .with_draft(draft)
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

/// The dialect that a schema names, or the one of those that name none.
fn dialect(schema: &JsonObject) -> Result<Draft, String> {
    let Some(named) = schema.get("$schema").and_then(Value::as_str) else { return Ok(Draft::Draft202012) };
    let known = DIALECTS.iter().find(|(name, _)| *name == named.trim_end_matches('#'));
    known.map(|(_, draft)| *draft).ok_or_else(|| {
        let understood = DIALECTS.map(|(name, _)| name).join(", ");
        format!("its dialect is {}; understood are {understood}", excerpt(named))
    })
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
    fn a_schema_is_read_in_the_dialect_that_it_names() {
        let pair = |dialect: &str| compile(json!({"$schema": dialect, "items": [{"type": "string"}]}));
        let older = pair("http://json-schema.org/draft-07/schema#").unwrap();
        assert!(older.check(&json!(["a"])).is_ok());
        assert!(older.check(&json!([1])).is_err());
        assert!(pair("https://json-schema.org/draft/2019-09/schema").is_ok());
        assert!(pair("https://json-schema.org/draft/2020-12/schema").is_err(), "a list is no schema there");
        assert!(pair("http://json-schema.org/draft-03/schema#").unwrap_err().contains("its dialect is"));
        let outside =
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "file:///etc/hostname"});
        assert!(compile(outside).is_err());
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
