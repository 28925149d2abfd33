//! Parsing `KEY=VALUE` words to arguments of the types that a schema asks for, with all that is wrong reported at once.

use std::fmt;

use refmcp_proto::model::JsonObject;
use refmcp_proto::schema::{SchemaError, SchemaValidator};
use serde_json::Value;

use super::ArgumentInput;
use super::schema::{SchemaWalk, missing_fields};
use super::source::ValueSource;
use super::value::{list_items, parse_value};
use crate::ui::suggest::nearest;
use crate::ui::text::one_line;

/// How many names a dotted key may have.
const DEEPEST_KEY: usize = 32;

/// Arguments that are parsed, and errors so far.
pub(crate) struct ParsedArguments {
    pub(crate) arguments: JsonObject,
    pub(crate) errors: Vec<ArgumentError>,
}

/// What is wrong with one argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArgumentError {
    /// The argument, or the word.
    pub(crate) key: String,
    pub(crate) what: String,
}

impl ArgumentError {
    fn new(key: impl Into<String>, what: impl Into<String>) -> Self {
        Self { key: key.into(), what: what.into() }
    }
}

/// All that is wrong with the arguments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) struct ArgumentErrors(pub(crate) Vec<ArgumentError>);

impl fmt::Display for ArgumentErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing was sent, since the arguments do not fit:")?;
        for ArgumentError { key, what } in &self.0 {
            // Names and descriptions are the server's words.
            write!(f, "\n  {}: {}", one_line(key), one_line(what))?;
        }
        Ok(())
    }
}

/// Parses words as arguments of the types that the schema asks for.
pub(crate) fn parse_arguments(
    input: &ArgumentInput,
    schema: &JsonObject,
    source: &mut ValueSource<'_>,
) -> ParsedArguments {
    let mut parsed = ParsedArguments { arguments: JsonObject::new(), errors: Vec::new() };
    if let Some(text) = &input.json {
        match json_document(text, source) {
            Ok(Value::Object(arguments)) => parsed.arguments = arguments,
            Ok(_) => parsed.errors.push(ArgumentError::new("--json", "expected an object")),
            Err(what) => parsed.errors.push(ArgumentError::new("--json", what)),
        }
    }
    // In the order of the first word of each key.
    let mut given: Vec<(&str, Vec<(Notation, &str)>)> = Vec::new();
    for word in &input.words {
        match split_word(word) {
            Ok((key, notation, value)) => match given.iter_mut().find(|(known, _)| *known == key) {
                Some((_, values)) => values.push((notation, value)),
                None => given.push((key, vec![(notation, value)])),
            },
            Err(what) => parsed.errors.push(ArgumentError::new(word, what)),
        }
    }
    for (key, values) in given {
        if let Err(what) = place(&mut parsed.arguments, schema, key, &values, source) {
            parsed.errors.push(ArgumentError::new(key, what));
        }
    }
    parsed
}

impl ParsedArguments {
    /// Whether required arguments are missing, and nothing else is wrong.
    pub(crate) fn lacks_only_required(&self, schema: &JsonObject) -> bool {
        self.errors.is_empty() && !missing_fields(schema, &self.arguments).is_empty()
    }

    /// The arguments, when all that is required is there and all of it fits.
    ///
    /// # Errors
    ///
    /// All that is wrong or missing.
    pub(crate) fn finish(self, schema: &JsonObject) -> Result<JsonObject, ArgumentErrors> {
        let Self { arguments, mut errors } = self;
        let mut missing = missing_fields(schema, &arguments);
        if errors.is_empty() && missing.is_empty() {
            errors.extend(check_schema(schema, &arguments));
        }
        // An argument with an error is not missing.
        missing.retain(|field| {
            let inside = |key: &str| key.strip_prefix(&field.name).is_some_and(|rest| rest.starts_with('.'));
            !errors.iter().any(|error| error.key == field.name || inside(&error.key))
        });
        errors.extend(missing.into_iter().map(|field| {
            let about = field.description.map(|text| format!(": {text}")).unwrap_or_default();
            ArgumentError::new(field.name, format!("missing, expected {}{about}", field.expected))
        }));
        if errors.is_empty() { Ok(arguments) } else { Err(ArgumentErrors(errors)) }
    }
}

/// Checks the arguments as a whole. A schema that cannot be applied, or refers to others, is left to the server.
fn check_schema(schema: &JsonObject, arguments: &JsonObject) -> Option<ArgumentError> {
    let checked =
        SchemaValidator::compile(schema).map(|schema| schema.validate(&Value::Object(arguments.clone())));
    match checked {
        Ok(Ok(())) | Err(SchemaError::Invalid(_)) => None,
        Ok(Err(SchemaError::Invalid(error))) => Some(ArgumentError::new("the arguments", error)),
        Ok(Err(SchemaError::TooMuchWork(why))) | Err(SchemaError::TooMuchWork(why)) => {
            tracing::warn!("the arguments are not checked against the schema of the tool: {why}");
            None
        }
    }
}

/// A value in JSON, or the one in `@FILE`.
fn json_value(text: &str, source: &mut ValueSource<'_>) -> Result<Value, String> {
    serde_json::from_str(&source.text(text)?).map_err(|error| format!("is no JSON: {error}"))
}

/// The same; `-` is standard input, as `@-` is.
pub(crate) fn json_document(text: &str, source: &mut ValueSource<'_>) -> Result<Value, String> {
    json_value(if text == "-" { "@-" } else { text }, source)
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notation {
    /// After `=`: a text, typed by the schema.
    Text,
    /// After `:=`: JSON.
    Json,
}

fn split_word(word: &str) -> Result<(&str, Notation, &str), String> {
    let Some((key, value)) = word.split_once('=') else {
        return Err("expected KEY=VALUE or KEY:=JSON".to_owned());
    };
    let (key, notation) = key.strip_suffix(':').map_or((key, Notation::Text), |key| (key, Notation::Json));
    if key.is_empty() { Err("the key is missing".to_owned()) } else { Ok((key, notation, value)) }
}

/// Puts the values of one key where they belong.
fn place(
    arguments: &mut JsonObject,
    schema: &JsonObject,
    key: &str,
    values: &[(Notation, &str)],
    source: &mut ValueSource<'_>,
) -> Result<(), String> {
    let all_json = values.iter().all(|(notation, _)| *notation == Notation::Json);
    let (path, slot) = locate(schema, key, all_json)?;
    let value = match values {
        [(notation, text)] => single(schema, &slot, *notation, text, source),
        several => match list_items(schema, &slot) {
            Some(items) => {
                let items = items.unwrap_or(&Value::Bool(true));
                let values =
                    several.iter().map(|(notation, text)| single(schema, items, *notation, text, source));
                values.collect::<Result<Vec<_>, _>>().map(Value::Array)
            }
            None => Err(format!("given {} times, but it is no list", several.len())),
        },
    };
    let value = value.map_err(|what| {
        match SchemaWalk::new(schema).resolve(&slot).and_then(|schema| schema.get("description")) {
            Some(Value::String(description)) => format!("{what} ({description})"),
            _ => what,
        }
    })?;
    insert(arguments, &path, value)
}

fn single(
    root: &JsonObject,
    schema: &Value,
    notation: Notation,
    text: &str,
    source: &mut ValueSource<'_>,
) -> Result<Value, String> {
    match notation {
        Notation::Json => json_value(text, source).map_err(|what| match text.chars().next() {
            Some('{' | '[' | '"' | '@') => what,
            _ => format!("{what}; a text follows `=` instead of `:=`"),
        }),
        Notation::Text if text.starts_with('@') && !text.starts_with("@@") => {
            let content = source.text(text)?;
            // A file of text ends in a line break that a number or a word does not have.
            parse_value(root, schema, &content)
                .or_else(|what| parse_value(root, schema, content.trim()).map_err(|_| what))
        }
        Notation::Text => parse_value(root, schema, &source.text(text)?),
    }
}

/// The names that lead to the place of a key, and the schema there.
fn locate(root: &JsonObject, key: &str, any: bool) -> Result<(Vec<String>, Value), String> {
    let walk = SchemaWalk::new(root);
    if let Some(schema) = walk.property(root, key) {
        return Ok((vec![key.to_owned()], schema.clone()));
    }
    let names: Vec<&str> = key.split('.').collect();
    if names.len() > DEEPEST_KEY || names.iter().any(|name| name.is_empty()) {
        return Err("expected names with a dot between them".to_owned());
    }
    let mut schema = Some(root);
    let mut slot = None;
    for name in &names {
        slot = schema.and_then(|schema| walk.property(schema, name));
        if let (Some(schema), None) = (schema, slot) {
            let wanted = schema.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false))
                || schema.contains_key("patternProperties");
            let known = walk.property_names(schema);
            let open = known.is_empty() && schema.get("additionalProperties") != Some(&Value::Bool(false));
            if !(any || wanted || open) {
                return Err(unknown(name, &known));
            }
        }
        schema = slot.and_then(|slot| walk.resolve(slot));
    }
    let path = names.into_iter().map(str::to_owned).collect();
    Ok((path, slot.cloned().unwrap_or(Value::Bool(true))))
}

/// What to type instead of a name that is not known.
fn unknown(name: &str, known: &[&str]) -> String {
    match (known, nearest(name, known)) {
        ([], _) => format!("there is no {name:?}; there are no arguments at all"),
        (_, Some(near)) => format!("there is no {name:?}; did you mean {near:?}?"),
        (_, None) => format!("there is no {name:?}; there are {}", known.join(", ")),
    }
}

/// Puts a value at a place, and objects on the way there.
fn insert(arguments: &mut JsonObject, path: &[String], value: Value) -> Result<(), String> {
    let Some((last, on_the_way)) = path.split_last() else { return Ok(()) };
    let mut object = arguments;
    for name in on_the_way {
        let next = object.entry(name.as_str()).or_insert_with(|| Value::Object(JsonObject::new()));
        object =
            next.as_object_mut().ok_or_else(|| format!("{name:?} already has a value that is no object"))?;
    }
    object.insert(last.clone(), value);
    Ok(())
}
