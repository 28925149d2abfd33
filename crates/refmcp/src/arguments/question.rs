//! What can still be asked for: the required arguments that were not typed.

use refmcp_proto::model::JsonObject;
use serde_json::Value;

use super::describe::{expected, plain};
use super::schema::{Walk, alternatives, list, required, text};
use super::typed::typed;

/// One argument to ask for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Question {
    /// The argument.
    pub(crate) name: String,
    /// What it is called, when that is not its name.
    pub(crate) title: Option<String>,
    /// What it is for.
    pub(crate) description: Option<String>,
    /// What is expected, in words.
    pub(crate) expected: String,
    /// What is taken when nothing is typed.
    pub(crate) default: Option<Value>,
    /// What can be chosen from; empty when it is not a choice.
    pub(crate) choices: Vec<String>,
    /// Whether it should not be seen while it is typed.
    pub(crate) secret: bool,
}

/// The required arguments that are missing, in the order in which the schema requires them.
pub(crate) fn questions(schema: &JsonObject, arguments: &JsonObject) -> Vec<Question> {
    required(schema)
        .filter(|name| !arguments.contains_key(*name))
        .map(|name| question(schema, name))
        .collect()
}

/// All arguments that the schema names, in its order.
pub(crate) fn all_questions(schema: &JsonObject) -> Vec<Question> {
    Walk::new(schema).property_names(schema).into_iter().map(|name| question(schema, name)).collect()
}

fn question(root: &JsonObject, name: &str) -> Question {
    let anything = Value::Bool(true);
    let walk = Walk::new(root);
    let schema = walk.property(root, name);
    let resolved = schema.and_then(|schema| walk.resolve(schema));
    let schema = schema.unwrap_or(&anything);
    // What is said beside a reference is meant for this place, so it comes first.
    let says = |key: &str| {
        let here = schema.as_object().and_then(|schema| text(schema, key));
        here.or_else(|| resolved.and_then(|schema| text(schema, key))).map(str::to_owned)
    };
    let default = schema.get("default").or_else(|| resolved.and_then(|schema| schema.get("default")));
    Question {
        name: name.to_owned(),
        title: says("title"),
        description: says("description"),
        expected: expected(root, schema),
        default: default.cloned(),
        choices: resolved.map(choices).unwrap_or_default(),
        secret: says("format").as_deref() == Some("password")
            || resolved.is_some_and(|schema| schema.get("writeOnly") == Some(&Value::Bool(true))),
    }
}

fn choices(schema: &JsonObject) -> Vec<String> {
    let members: Vec<String> = list(schema, "enum").map(plain).collect();
    if !members.is_empty() {
        return members;
    }
    alternatives(schema)
        .map(|choice| choice.get("const").map(plain))
        .collect::<Option<_>>()
        .unwrap_or_default()
}

/// An answer as a value of the argument's type.
///
/// # Errors
///
/// What was expected instead.
pub(crate) fn answer(schema: &JsonObject, question: &Question, answer: &str) -> Result<Value, String> {
    let anything = Value::Bool(true);
    typed(schema, Walk::new(schema).property(schema, &question.name).unwrap_or(&anything), answer)
}
