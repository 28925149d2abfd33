//! Validators of JSON Schemas (feature `schema`): compiled once, applied often, never fetched from anywhere.
//!
//! Schemas come from peers that cannot be trusted. Compiling and applying one takes time that grows with its size:
//! patterns are matched without backtracking, and the number of its parts is limited.

use std::sync::Arc;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, ValidationError};
use serde_json::Value;

use crate::jsonrpc::excerpt;
use crate::model::JsonObject;

/// A compiled schema.
#[derive(Debug, Clone)]
pub struct SchemaValidator {
    compiled: Arc<jsonschema::Validator>,
}

/// The supported dialects. The first is the default; older SDKs write the others.
const DIALECTS: [(&str, Draft); 3] = [
    ("https://json-schema.org/draft/2020-12/schema", Draft::Draft202012),
    ("https://json-schema.org/draft/2019-09/schema", Draft::Draft201909),
    ("http://json-schema.org/draft-07/schema", Draft::Draft7),
];

/// Most faults that one message names.
const MAX_FAULTS: usize = 5;

/// Most constants that one fault names.
const MAX_CONSTANTS: usize = 20;

/// Most values in a schema, objects and arrays included.
const MAX_VALUES: usize = 20_000;

impl SchemaValidator {
    /// Compiles a schema.
    ///
    /// # Errors
    /// When it refers to anything outside of itself, names an unsupported dialect, is too large, or is no schema.
    pub fn compile(schema: &JsonObject) -> Result<Self, String> {
        let draft = dialect(schema)?;
        let value = Value::Object(schema.clone());
        if parts(&value) > MAX_VALUES {
            return Err(format!("it has more than {MAX_VALUES} parts"));
        }
        let compiled = jsonschema::options()
            .with_draft(draft)
            .with_pattern_options(jsonschema::PatternOptions::regex())
            .build(&value)
            .map_err(|fault| fault.to_string())?;
        Ok(Self { compiled: Arc::new(compiled) })
    }

    /// Validates a value.
    ///
    /// # Errors
    /// What is wrong with it, place by place.
    pub fn validate(&self, value: &Value) -> Result<(), String> {
        if self.compiled.is_valid(value) {
            return Ok(());
        }
        let faults = self.compiled.iter_errors(value).take(MAX_FAULTS);
        let faults: Vec<String> = faults
            .map(|fault| match fault.instance_path().as_str() {
                "" => text_of(&fault),
                path => format!("{}: {}", excerpt(path), text_of(&fault)),
            })
            .collect();
        Err(faults.join("; "))
    }
}

/// What is wrong. Where each alternative is a constant, the constants are named.
fn text_of(fault: &ValidationError<'_>) -> String {
    let Some(mut constants) = constants(fault) else { return excerpt(&fault.to_string()) };
    if constants.len() > MAX_CONSTANTS {
        constants.truncate(MAX_CONSTANTS);
        constants.push("…".to_owned());
    }
    format!("{} is not one of {}", excerpt(&fault.instance().to_string()), constants.join(", "))
}

/// The constants of alternatives that have one each.
fn constants(fault: &ValidationError<'_>) -> Option<Vec<String>> {
    let (ValidationErrorKind::OneOfNotValid { context } | ValidationErrorKind::AnyOf { context }) =
        fault.kind()
    else {
        return None;
    };
    context.iter().map(|faults| faults.iter().find_map(|inner| constant(inner, fault))).collect()
}

/// The constant that a value itself should have been, and not a part of it.
fn constant(fault: &ValidationError<'_>, whole: &ValidationError<'_>) -> Option<String> {
    let is_whole = fault.instance_path().as_str() == whole.instance_path().as_str();
    match fault.kind() {
        ValidationErrorKind::Constant { expected_value } if is_whole => {
            Some(excerpt(&expected_value.to_string()))
        }
        _ => None,
    }
}

/// The dialect that a schema names, or the default.
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

    fn compile(schema: Value) -> Result<SchemaValidator, String> {
        let Value::Object(object) = schema else { panic!("no object") };
        SchemaValidator::compile(&object)
    }

    #[test]
    fn validation_errors_name_their_place() {
        let schema = compile(json!({
            "type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]
        }));
        let schema = schema.unwrap();
        assert!(schema.validate(&json!({"a": 1})).is_ok());
        assert!(schema.validate(&json!({"a": "x"})).unwrap_err().starts_with("/a: "));
        assert!(schema.validate(&json!({})).unwrap_err().contains("\"a\""));
    }

    #[test]
    fn alternatives_that_are_constants_are_named() {
        for keyword in ["oneOf", "anyOf"] {
            let alternatives =
                json!([{"type": "string", "const": "red", "title": "Red"}, {"const": "green"}]);
            let colour = json!({ "properties": {"colour": { keyword: alternatives }} });
            let schema = compile(colour).unwrap();
            assert!(schema.validate(&json!({"colour": "red"})).is_ok());
            let fault = schema.validate(&json!({"colour": "blue"})).unwrap_err();
            assert_eq!(fault, r#"/colour: "blue" is not one of "red", "green""#);
            let fault = schema.validate(&json!({"colour": 7})).unwrap_err();
            assert_eq!(fault, r#"/colour: 7 is not one of "red", "green""#);
            let many: Vec<Value> = (0..1000).map(|number| json!({"const": number})).collect();
            let fault = compile(json!({ keyword: many })).unwrap().validate(&json!("x")).unwrap_err();
            assert!(fault.ends_with(" 18, 19, …") && fault.len() < 200, "{fault}");
            // Alternatives that differ by a member are no constants.
            let kinds = ["a", "b"].map(|kind| json!({"properties": {"kind": {"const": kind}}}));
            let fault =
                compile(json!({ keyword: kinds })).unwrap().validate(&json!({"kind": "c"})).unwrap_err();
            assert!(fault.contains(keyword), "{fault}");
        }
    }

    #[test]
    fn schema_dialects() {
        let pair = |dialect: &str| compile(json!({"$schema": dialect, "items": [{"type": "string"}]}));
        let older = pair("http://json-schema.org/draft-07/schema#").unwrap();
        assert!(older.validate(&json!(["a"])).is_ok());
        assert!(older.validate(&json!([1])).is_err());
        assert!(pair("https://json-schema.org/draft/2019-09/schema").is_ok());
        assert!(pair("https://json-schema.org/draft/2020-12/schema").is_err(), "a list is no schema there");
        assert!(pair("http://json-schema.org/draft-03/schema#").unwrap_err().contains("its dialect is"));
        let outside =
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "file:///etc/hostname"});
        assert!(compile(outside).is_err());
    }

    #[test]
    fn references_are_never_fetched() {
        assert!(compile(json!({"$ref": "http://127.0.0.1:1/schema.json"})).is_err());
        assert!(compile(json!({"$ref": "file:///etc/hostname"})).is_err());
    }

    #[test]
    fn hostile_schemas_are_bounded() {
        let loops = compile(
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        );
        if let Ok(schema) = loops {
            let _ = schema.validate(&json!({}));
        }
        let patient = compile(json!({"type": "string", "pattern": "^(a+)+$"})).unwrap();
        assert!(patient.validate(&json!("a".repeat(50_000) + "b")).is_err());
        let wide = compile(json!({"allOf": vec![json!({"type": "string"}); 9_000]}));
        if let Ok(schema) = wide {
            assert!(schema.validate(&json!("x")).is_ok());
        }
        assert!(
            compile(json!({"allOf": vec![json!({"type": "string"}); 20_000]})).unwrap_err().contains("parts")
        );
    }
}
