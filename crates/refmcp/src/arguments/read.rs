//! Reading the words.

use std::collections::BTreeMap;

use refmcp_proto::model::JsonObject;
use serde_json::Value;

use super::inputs::Inputs;
use super::mistake::{Mistake, Mistakes};
use super::question::{Question, questions};
use super::schema::Walk;
use super::typed::{is_list, list_items, typed};
use super::{ArgumentInput, validate};

/// How alike two names are, from 0 to 1, for one to be proposed instead of the other.
const ALIKE: f64 = 0.8;

/// How many names a dotted key may have.
const DEEPEST_KEY: usize = 32;

/// What was understood so far.
#[derive(Debug)]
pub(crate) struct Reading {
    /// The arguments.
    pub(crate) arguments: JsonObject,
    /// What was not understood.
    pub(crate) mistakes: Vec<Mistake>,
}

/// Reads words as arguments of the types that the schema asks for.
pub(crate) fn read(words: &ArgumentInput, schema: &JsonObject, inputs: &mut Inputs<'_>) -> Reading {
    let mut reading = Reading { arguments: JsonObject::new(), mistakes: Vec::new() };
    if let Some(text) = &words.json {
        match json_document(text, inputs) {
            Ok(Value::Object(arguments)) => reading.arguments = arguments,
            Ok(_) => reading.mistakes.push(Mistake::new("--json", "expected an object")),
            Err(what) => reading.mistakes.push(Mistake::new("--json", what)),
        }
    }
    let mut given: BTreeMap<&str, Vec<(Notation, &str)>> = BTreeMap::new();
    let mut keys = Vec::new();
    for word in &words.words {
        match take_apart(word) {
            Ok((key, notation, value)) => {
                let values = given.entry(key).or_default();
                if values.is_empty() {
                    keys.push(key);
                }
                values.push((notation, value));
            }
            Err(what) => reading.mistakes.push(Mistake::new(word, what)),
        }
    }
    for key in keys {
        let values = given.remove(key).unwrap_or_default();
        if let Err(what) = place(&mut reading.arguments, schema, key, &values, inputs) {
            reading.mistakes.push(Mistake::new(key, what));
        }
    }
    reading
}

impl Reading {
    /// The required arguments that are missing, to be asked for.
    pub(crate) fn questions(&self, schema: &JsonObject) -> Vec<Question> {
        questions(schema, &self.arguments)
    }

    /// The arguments, when all that is required is there and all of it fits.
    ///
    /// # Errors
    ///
    /// Everything that is wrong or missing.
    pub(crate) fn finish(self, schema: &JsonObject) -> Result<JsonObject, Mistakes> {
        let Self { arguments, mut mistakes } = self;
        let missing = questions(schema, &arguments);
        if mistakes.is_empty() && missing.is_empty() {
            mistakes.extend(validate::fault(schema, &arguments));
        }
        // What was not understood is not also missing.
        let wrong: Vec<String> = mistakes.iter().map(|mistake| mistake.key.clone()).collect();
        let missing = missing.into_iter().filter(|question| {
            let inside =
                |key: &String| key.strip_prefix(&question.name).is_some_and(|rest| rest.starts_with('.'));
            !wrong.iter().any(|key| *key == question.name || inside(key))
        });
        mistakes.extend(missing.map(|question| {
            let about = question.description.map(|text| format!(": {text}")).unwrap_or_default();
            Mistake::new(question.name, format!("missing, expected {}{about}", question.expected))
        }));
        if mistakes.is_empty() { Ok(arguments) } else { Err(Mistakes(mistakes)) }
    }
}

/// A value in JSON, or the one in `@FILE`.
///
/// # Errors
///
/// What is wrong with it, and where.
fn json_value(text: &str, inputs: &mut Inputs<'_>) -> Result<Value, String> {
    serde_json::from_str(&inputs.text(text)?).map_err(|fault| format!("is no JSON: {fault}"))
}

/// The same; `-` is what comes from standard input, as `@-` is.
///
/// # Errors
///
/// What is wrong with it, and where.
pub(crate) fn json_document(text: &str, inputs: &mut Inputs<'_>) -> Result<Value, String> {
    json_value(if text == "-" { "@-" } else { text }, inputs)
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notation {
    /// After `=`: a text, typed by the schema.
    Text,
    /// After `:=`: JSON.
    Json,
}

fn take_apart(word: &str) -> Result<(&str, Notation, &str), String> {
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
    inputs: &mut Inputs<'_>,
) -> Result<(), String> {
    let all_json = values.iter().all(|(notation, _)| *notation == Notation::Json);
    let (path, slot) = locate(schema, key, all_json)?;
    let value = match values {
        [(notation, text)] => single(schema, &slot, *notation, text, inputs),
        several if is_list(schema, &slot) => {
            let anything = Value::Bool(true);
            let items = list_items(schema, &slot).flatten().unwrap_or(&anything);
            let values =
                several.iter().map(|(notation, text)| single(schema, items, *notation, text, inputs));
            values.collect::<Result<Vec<_>, _>>().map(Value::Array)
        }
        several => Err(format!("given {} times, but it is no list", several.len())),
    };
    let value = value.map_err(|what| {
        match Walk::new(schema).resolve(&slot).and_then(|schema| schema.get("description")) {
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
    inputs: &mut Inputs<'_>,
) -> Result<Value, String> {
    match notation {
        Notation::Json => json_value(text, inputs),
        Notation::Text if text.starts_with('@') && !text.starts_with("@@") => {
            let content = inputs.text(text)?;
            // A file of text ends in a line break that a number or a word does not have.
            typed(root, schema, &content)
                .or_else(|what| typed(root, schema, content.trim()).map_err(|_| what))
        }
        Notation::Text => typed(root, schema, &inputs.text(text)?),
    }
}

/// The names that lead to the place of a key, and the schema there.
fn locate(root: &JsonObject, key: &str, any: bool) -> Result<(Vec<String>, Value), String> {
    let anything = || Value::Bool(true);
    let walk = Walk::new(root);
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
            let open = known.is_empty() && !is_closed(schema);
            if !(any || wanted || open) {
                return Err(unknown(name, &known));
            }
        }
        schema = slot.and_then(|slot| walk.resolve(slot));
    }
    let path = names.into_iter().map(str::to_owned).collect();
    Ok((path, slot.cloned().unwrap_or_else(anything)))
}

fn is_closed(schema: &JsonObject) -> bool {
    schema.get("additionalProperties") == Some(&Value::Bool(false))
}

/// What to type instead of a name that is not known.
fn unknown(name: &str, known: &[&str]) -> String {
    let alike = |known: &&str| strsim::jaro_winkler(&name.to_lowercase(), &known.to_lowercase());
    let best = known.iter().map(|known| (alike(known), known)).max_by(|(a, _), (b, _)| a.total_cmp(b));
    match best {
        Some((likeness, best)) if likeness >= ALIKE => {
            format!("there is no {name:?}; did you mean {best:?}?")
        }
        Some(_) => format!("there is no {name:?}; there are {}", known.join(", ")),
        None => format!("there is no {name:?}; there are no arguments at all"),
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
