//! The fields of a schema: what to ask a person for, and what to suggest.

use refmcp_proto::model::JsonObject;
use serde_json::Value;

use super::describe::{expected, plain};
use super::schema::{SchemaWalk, alternatives, list, required, text};
use super::value::parse_value;

/// An argument that a schema names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ArgumentField {
    pub(crate) name: String,
    /// Its title, when that is not its name.
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    /// What is expected, in words.
    pub(crate) expected: String,
    /// The value when nothing is typed.
    pub(crate) default: Option<Value>,
    /// The values of an enumeration; empty for other types.
    pub(crate) choices: Vec<String>,
    /// Whether it is hidden while it is typed.
    pub(crate) secret: bool,
    pub(crate) required: bool,
}

/// The required arguments that are missing, in the order in which the schema requires them.
pub(crate) fn missing_fields(schema: &JsonObject, arguments: &JsonObject) -> Vec<ArgumentField> {
    required(schema).filter(|name| !arguments.contains_key(*name)).map(|name| field(schema, name)).collect()
}

/// All arguments that the schema names, in its order.
pub(crate) fn all_fields(schema: &JsonObject) -> Vec<ArgumentField> {
    SchemaWalk::new(schema).property_names(schema).into_iter().map(|name| field(schema, name)).collect()
}

fn field(root: &JsonObject, name: &str) -> ArgumentField {
    let anything = Value::Bool(true);
    let walk = SchemaWalk::new(root);
    let schema = walk.property(root, name);
    let resolved = schema.and_then(|schema| walk.resolve(schema));
    let schema = schema.unwrap_or(&anything);
    // What is said beside a reference is meant for this place, so it comes first.
    let says = |key: &str| {
        let here = schema.as_object().and_then(|schema| text(schema, key));
        here.or_else(|| resolved.and_then(|schema| text(schema, key))).map(str::to_owned)
    };
    let default = schema.get("default").or_else(|| resolved.and_then(|schema| schema.get("default")));
    ArgumentField {
        name: name.to_owned(),
        title: says("title"),
        description: says("description"),
        expected: expected(root, schema),
        default: default.cloned(),
        required: required(root).any(|required| required == name),
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

impl ArgumentField {
    /// The values to suggest.
    pub(crate) fn suggestions(&self) -> Vec<String> {
        if self.choices.is_empty() && self.expected == "true or false" {
            return vec!["false".to_owned(), "true".to_owned()];
        }
        self.choices.clone()
    }

    /// A text as a value of the field's type.
    ///
    /// # Errors
    ///
    /// What was expected instead.
    pub(crate) fn parse(&self, schema: &JsonObject, text: &str) -> Result<Value, String> {
        let field = SchemaWalk::new(schema).property(schema, &self.name);
        parse_value(schema, field.unwrap_or(&Value::Bool(true)), text)
    }
}
