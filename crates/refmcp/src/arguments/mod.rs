//! Arguments of tools and prompts: parsed from words by the schema, and checked before anything is sent.

mod parse;
mod schema;
mod source;
mod value;

pub(crate) use parse::{json_document, parse_arguments};
pub(crate) use schema::{ArgumentField, all_fields, missing_fields};
pub(crate) use source::ValueSource;

use refmcp_proto::model::{JsonObject, PromptArgument};
use refmcp_proto::uri_template::variables;
use serde_json::{Value, json};

/// Arguments as they were typed.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
pub(crate) struct ArgumentInput {
    /// `KEY=VALUE` and `KEY:=JSON`.
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) words: Vec<String>,
    /// An object of arguments in JSON, or `@FILE`, or `-` for standard input.
    #[arg(long)]
    pub(crate) json: Option<String>,
}

/// The arguments of a prompt as a schema: strings, and nothing else.
pub(crate) fn prompt_schema(arguments: &[PromptArgument]) -> JsonObject {
    let property = |argument: &PromptArgument| {
        let texts = [("title", &argument.title), ("description", &argument.description)].into_iter();
        let texts = texts.filter_map(|(key, text)| text.as_deref().map(|text| (key, text)));
        let members = texts.chain([("type", "string")]);
        let schema = members.map(|(key, text)| (key.to_owned(), Value::from(text))).collect();
        (argument.name.clone(), Value::Object(schema))
    };
    let required = arguments.iter().filter(|argument| argument.required == Some(true));
    let required: Vec<&str> = required.map(|argument| argument.name.as_str()).collect();
    let properties: JsonObject = arguments.iter().map(property).collect();
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), Value::from("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.insert("required".to_owned(), json!(required));
    schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    schema
}

/// The variables of a resource template as a schema.
pub(crate) fn template_schema(uri: &str) -> JsonObject {
    let arguments = variables(uri).into_iter().map(|variable| PromptArgument::new(variable.name));
    prompt_schema(&arguments.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests;
