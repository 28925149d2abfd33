//! Validators of JSON Schemas (feature `schema`): compiled once, applied often, never fetched from anywhere.
//!
//! Schemas and values come from peers that cannot be trusted. The number of a schema's parts is limited, patterns are matched
//! without backtracking, and the work that a value could take is counted before it is validated.

use std::sync::Arc;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, ValidationError};
use serde_json::Value;

use crate::jsonrpc::excerpt;
use crate::model::JsonObject;

mod nodes;
mod pattern;
mod work;

use work::{Allowance, WorkGraph};

/// A compiled schema.
#[derive(Debug, Clone)]
pub struct SchemaValidator {
    compiled: Arc<jsonschema::Validator>,
    work: Arc<WorkGraph>,
}

/// Why a schema cannot be applied, or a value is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// What is wrong, place by place.
    #[error("{0}")]
    Invalid(String),
    /// Finding that out could take too much work. It may be valid.
    #[error("{0}")]
    TooMuchWork(String),
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
    /// When it refers to anything outside of itself, names an unsupported dialect, is no schema, is too large, or could take
    /// too much work for a single value.
    pub fn compile(schema: &JsonObject) -> Result<Self, SchemaError> {
        let draft = dialect(schema).map_err(SchemaError::Invalid)?;
        let value = Value::Object(schema.clone());
        if parts(&value) > MAX_VALUES {
            return Err(SchemaError::TooMuchWork(format!("it has more than {MAX_VALUES} parts")));
        }
        let work = WorkGraph::new(&value).map_err(SchemaError::TooMuchWork)?;
        let compiled = jsonschema::options()
            .with_draft(draft)
            .with_pattern_options(jsonschema::PatternOptions::regex())
            .build(&value)
            .map_err(|error| SchemaError::Invalid(error.to_string()))?;
        Ok(Self { compiled: Arc::new(compiled), work: Arc::new(work) })
    }

    /// Validates a value.
    ///
    /// # Errors
    /// When it does not match the schema, or when it could take too much work to tell.
    pub fn validate(&self, value: &Value) -> Result<(), SchemaError> {
        let allowance = self.work.allowance(value);
        if allowance == Allowance::Nothing {
            let why = "to check it against the schema could take too much work: it is too large or too deep";
            return Err(SchemaError::TooMuchWork(why.to_owned()));
        }
        if self.compiled.is_valid(value) {
            return Ok(());
        }
        if allowance == Allowance::Answer {
            let why = "it does not match the schema, and is too large to say where";
            return Err(SchemaError::Invalid(why.to_owned()));
        }
        let faults = self.compiled.iter_errors(value).take(MAX_FAULTS);
        let faults: Vec<String> = faults
            .map(|error| match error.instance_path().as_str() {
                "" => text_of(&error),
                path => format!("{}: {}", excerpt(path), text_of(&error)),
            })
            .collect();
        Err(SchemaError::Invalid(faults.join("; ")))
    }
}

/// What makes a value no JSON Schema of its dialect; nothing where the dialect is not one of those that are supported, or where the
/// schema is too large to tell.
pub fn schema_violation(schema: &JsonObject) -> Option<String> {
    let draft = dialect(schema).ok()?;
    let value = Value::Object(schema.clone());
    if parts(&value) > MAX_VALUES {
        return None;
    }
    let checked = match draft {
        Draft::Draft7 => jsonschema::draft7::meta::validate(&value),
        Draft::Draft201909 => jsonschema::draft201909::meta::validate(&value),
        _ => jsonschema::draft202012::meta::validate(&value),
    };
    let error = checked.err()?;
    let why = excerpt(&error.to_string());
    Some(match error.instance_path().as_str() {
        "" => why,
        path => format!("{}: {why}", excerpt(path)),
    })
}

/// What is wrong. Where each alternative is a constant, the constants are named.
fn text_of(error: &ValidationError<'_>) -> String {
    let Some(mut constants) = constants(error) else { return excerpt(&error.to_string()) };
    if constants.len() > MAX_CONSTANTS {
        constants.truncate(MAX_CONSTANTS);
        constants.push("…".to_owned());
    }
    format!("{} is not one of {}", excerpt(&error.instance().to_string()), constants.join(", "))
}

/// The constants of alternatives that have one each.
fn constants(error: &ValidationError<'_>) -> Option<Vec<String>> {
    let (ValidationErrorKind::OneOfNotValid { context } | ValidationErrorKind::AnyOf { context }) =
        error.kind()
    else {
        return None;
    };
    context.iter().map(|faults| faults.iter().find_map(|inner| constant(inner, error))).collect()
}

/// The constant that a value itself should have been, and not a part of it.
fn constant(error: &ValidationError<'_>, whole: &ValidationError<'_>) -> Option<String> {
    let is_whole = error.instance_path().as_str() == whole.instance_path().as_str();
    match error.kind() {
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

    /// A validator whose errors are texts.
    #[derive(Debug)]
    struct Checked(SchemaValidator);

    impl Checked {
        fn validate(&self, value: &Value) -> Result<(), String> {
            self.0.validate(value).map_err(|error| error.to_string())
        }
    }

    fn compile(schema: Value) -> Result<Checked, String> {
        let Value::Object(object) = schema else { panic!("no object") };
        SchemaValidator::compile(&object).map(Checked).map_err(|error| error.to_string())
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
            let error = schema.validate(&json!({"colour": "blue"})).unwrap_err();
            assert_eq!(error, r#"/colour: "blue" is not one of "red", "green""#);
            let error = schema.validate(&json!({"colour": 7})).unwrap_err();
            assert_eq!(error, r#"/colour: 7 is not one of "red", "green""#);
            let many: Vec<Value> = (0..1000).map(|number| json!({"const": number})).collect();
            let error = compile(json!({ keyword: many })).unwrap().validate(&json!("x")).unwrap_err();
            assert!(error.ends_with(" 18, 19, …") && error.len() < 200, "{error}");
            // Alternatives that differ by a member are no constants.
            let kinds = ["a", "b"].map(|kind| json!({"properties": {"kind": {"const": kind}}}));
            let error =
                compile(json!({ keyword: kinds })).unwrap().validate(&json!({"kind": "c"})).unwrap_err();
            assert!(error.contains(keyword), "{error}");
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
        let patient = compile(json!({"type": "string", "pattern": "^(a+)+$"})).unwrap();
        assert!(patient.validate(&json!("a".repeat(50_000) + "b")).is_err());
        let wide = compile(json!({"allOf": vec![json!({"type": "string"}); 9_000]})).unwrap();
        assert!(wide.validate(&json!("x")).is_ok());
        let circle = json!({"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}});
        for (schema, hint) in [
            (json!({"allOf": vec![json!({"type": "string"}); 20_000]}), "parts"),
            (json!({"$ref": "#/$defs/a", "$defs": circle}), "refers to itself"),
            (fan_out("allOf", 12, 10), "more than 100000 steps"),
            (fan_out("anyOf", 12, 10), "more than 100000 steps"),
            (fan_out("oneOf", 12, 10), "more than 100000 steps"),
            (in_properties(fan_out("allOf", 12, 10)), "more than 100000 steps"),
            (named("$anchor", "#"), "more than 100000 steps"),
            (named("$dynamicAnchor", "#"), "more than 100000 steps"),
            (named("$id", ""), "more than 100000 steps"),
            (named("$id", "http://a/b/"), "more than 100000 steps"),
            (chain(5_000), "in a row"),
            (unevaluated(40), "more than 100000 steps"),
            (json!({"pattern": "((a{100}){100}){100}"}), "patterns are too large"),
        ] {
            let shown = schema.to_string();
            let shown = &shown[..shown.len().min(200)];
            let error = compile(schema).unwrap_err();
            assert!(error.contains(hint), "{shown}: {error}");
        }
    }

    /// Definitions that each apply the one before so many times.
    fn fan_out(keyword: &str, levels: usize, width: usize) -> Value {
        let mut definitions = json!({"0": {"type": "object"}});
        for level in 1..=levels {
            let below = json!({"$ref": format!("#/$defs/{}", level - 1)});
            definitions[level.to_string()] = json!({ keyword: vec![below; width] });
        }
        json!({"$ref": format!("#/$defs/{levels}"), "$defs": definitions})
    }

    /// The same for a member.
    fn in_properties(mut schema: Value) -> Value {
        let definitions = schema["$defs"].take();
        let reference = schema["$ref"].take();
        json!({"$defs": definitions, "properties": {"a": {"items": {"$ref": reference}}}})
    }

    /// The same with names instead of places.
    fn named(keyword: &str, before: &str) -> Value {
        let mut definitions = json!({"0": { keyword: "l0", "type": "object" }});
        let reference = if keyword == "$dynamicAnchor" { "$dynamicRef" } else { "$ref" };
        for level in 1..=12 {
            let below = json!({ reference: format!("{before}l{}", level - 1) });
            definitions[level.to_string()] =
                json!({ keyword: format!("l{level}"), "allOf": vec![below; 10] });
        }
        let mut schema = json!({ reference: format!("{before}l12"), "$defs": definitions });
        if before.starts_with("http") {
            schema["$id"] = json!("http://a/b/c");
        }
        schema
    }

    /// A row of references.
    fn chain(length: usize) -> Value {
        let mut definitions = json!({"0": {"type": "object"}});
        for link in 1..=length {
            definitions[link.to_string()] = json!({"$ref": format!("#/$defs/{}", link - 1)});
        }
        json!({"$ref": format!("#/$defs/{length}"), "$defs": definitions})
    }

    /// Schemas in each other that all look at what the inner ones have evaluated.
    fn unevaluated(levels: usize) -> Value {
        (0..levels).fold(json!({}), |inner, _| json!({"allOf": [inner], "unevaluatedProperties": false}))
    }

    fn too_much(schema: Value, value: &Value) -> bool {
        matches!(compile(schema).unwrap().0.validate(value), Err(SchemaError::TooMuchWork(_)))
    }

    #[test]
    fn values_that_take_too_much_work_are_refused() {
        let deep = |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({"c": inner}));
        // Each level applies the schema twice to the next.
        let child = json!({"properties": {"c": {"$ref": "#"}}});
        let doubling = || json!({"allOf": [child, child]});
        assert!(too_much(doubling(), &deep(60)));
        assert!(!too_much(doubling(), &deep(10)));
        let dynamic = json!({"$dynamicAnchor": "n", "properties": {"c": {"allOf": [{"$dynamicRef": "#n"}, {"$dynamicRef": "#n"}]}}});
        assert!(too_much(dynamic, &deep(60)));
        let recursive = json!({"$schema": DIALECTS[1].0, "properties": {"c": {"allOf": [{"$recursiveRef": "#"}, {"$recursiveRef": "#"}]}}});
        assert!(too_much(recursive, &deep(60)));
        // A list that is compared with another list at each item.
        let many = json!(vec![0; 200_000]);
        let contains: Vec<Value> = (0..500).map(|number| json!({"contains": {"const": number}})).collect();
        assert!(too_much(json!({ "allOf": contains }), &many));
        let enumeration: Vec<usize> = (1..15_000).collect();
        assert!(too_much(json!({"items": {"enum": enumeration}}), &many));
        assert!(too_much(
            json!({"items": {"pattern": "^(.{90}x){90}$"}}),
            &json!(vec!["a".repeat(20_000); 100])
        ));
    }

    #[test]
    fn large_values_of_usual_schemas_are_validated() {
        let record = json!({
            "type": "object",
            "properties": {
                "id": {"type": "string", "pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"},
                "kind": {"enum": ["a", "b", "c"]},
                "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": true}
            },
            "required": ["id"], "additionalProperties": false
        });
        let schema = compile(json!({"type": "array", "items": record, "uniqueItems": true})).unwrap();
        let id = |number: usize| format!("00000000-0000-0000-0000-{number:012}");
        let records: Vec<Value> =
            (0..20_000).map(|number| json!({"id": id(number), "kind": "a", "tags": ["x", "y"]})).collect();
        assert_eq!(schema.validate(&json!(records)), Ok(()));
        let wrong = json!([records, vec![json!({"id": "x"})]].concat());
        assert_eq!(
            schema.validate(&wrong).unwrap_err(),
            "it does not match the schema, and is too large to say where"
        );
        let text = compile(json!({"type": "string", "pattern": "^[A-Za-z0-9+/=]*$"})).unwrap();
        assert_eq!(text.validate(&json!("a".repeat(4 << 20))), Ok(()));
        let tree =
            json!({"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}});
        let forest = |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({"children": [inner, {}]}));
        assert_eq!(compile(tree).unwrap().validate(&forest(60)), Ok(()));
    }

    #[test]
    fn schemas_with_identifiers_are_found_by_them() {
        let children = json!({"type": "array", "items": {"$dynamicRef": "#node"}});
        let tree =
            json!({"$id": "tree", "$dynamicAnchor": "node", "type": "object", "properties": {"c": children}});
        let strict = json!({
            "$id": "http://a/strict-tree", "$dynamicAnchor": "node", "$ref": "tree", "unevaluatedProperties": false,
            "$defs": {"tree": tree}
        });
        let schema = compile(strict).unwrap();
        assert_eq!(schema.validate(&json!({"c": [{"c": []}]})), Ok(()));
        assert!(schema.validate(&json!({"c": [{"d": 1}]})).is_err());
        let item = json!({"$id": "item.json", "type": "string"});
        let schema = compile(json!({"$ref": "item.json", "$defs": {"item": item}})).unwrap();
        assert_eq!(schema.validate(&json!("x")), Ok(()));
    }

    #[test]
    fn values_are_validated_as_deep_as_is_allowed() {
        let links = 90;
        let mut schema = chain(links);
        schema["$defs"]["0"] = json!({"properties": {"c": {"$ref": format!("#/$defs/{links}")}}});
        let schema = compile(schema).unwrap();
        let deep = |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({"c": inner}));
        // The stack of a thread that serves.
        let run = move || {
            assert_eq!(schema.validate(&deep(9)), Ok(()));
            assert!(schema.validate(&deep(100)).is_err());
        };
        std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
    }

    #[test]
    fn what_is_no_schema_is_told_from_what_is_not_known() {
        let violation = |schema: Value| schema_violation(schema.as_object().unwrap());
        let draft = "http://json-schema.org/draft-07/schema#";
        for schema in [
            json!({}),
            json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}}, "required": ["a"]}),
            json!({"$schema": draft, "items": [{"type": "string"}]}),
            json!({"$ref": "https://example.org/elsewhere"}),
            json!({"x-unknown": 5, "format": "none-that-is-known"}),
            json!({"$schema": "https://example.org/a-dialect", "type": 5}),
        ] {
            assert_eq!(violation(schema.clone()), None, "{schema}");
        }
        for schema in [
            json!({"type": "objekt"}),
            json!({"required": "a"}),
            json!({"properties": {"a": {"type": "text"}}}),
            json!({"$schema": draft, "properties": ["a"]}),
        ] {
            assert!(violation(schema.clone()).is_some(), "{schema}");
        }
        let told = violation(json!({"properties": {"a": {"minLength": "1"}}})).unwrap();
        assert!(told.starts_with("/properties/a/minLength: "), "{told}");
    }
}
