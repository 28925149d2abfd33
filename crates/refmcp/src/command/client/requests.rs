//! The commands that are one request each.

use std::collections::BTreeMap;
use std::io;

use anyhow::Result;
use refmcp_client::model::{
    CompletionArgument, CompletionRef, JsonObject, LogLevel, PromptReference, ResourceTemplateReference,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::output::laid_out;
use super::session::Session;
use super::{call, fault};
use crate::args::{Completable, UsageError};
use crate::arguments::{ArgumentWords, Inputs, json_document, prompt_schema};
use crate::ui::render::{self, ServerSummary};
use crate::ui::text::{multi_line, one_line};

/// `read`: a resource.
pub(crate) async fn read(session: &Session, uri: &str) -> Result<()> {
    let result = session.client.read_resource(uri).await.map_err(|fault| fault::of_request(&fault))?;
    session.printer.show_bytes(&result, render::exact_bytes(&result), |view| render::resource(&result, view))
}

/// `prompt`: a prompt, filled in.
pub(crate) async fn prompt(session: &Session, name: &str, words: &ArgumentWords) -> Result<()> {
    let prompts = session.client.list_prompts().await.map_err(|fault| fault::of_request(&fault))?;
    let Some(prompt) = prompts.iter().find(|prompt| prompt.name == name) else {
        let names: Vec<&str> = prompts.iter().map(|prompt| prompt.name.as_str()).collect();
        return Err(UsageError::new(unknown("prompt", name, &names)).into());
    };
    let schema = prompt_schema(prompt.arguments.as_deref().unwrap_or_default());
    let arguments = session.person.arguments(words, &schema).await?;
    let arguments: BTreeMap<String, String> = arguments
        .into_iter()
        .map(|(name, value)| match value {
            Value::String(text) => (name, text),
            other => (name, other.to_string()),
        })
        .collect();
    let result =
        session.client.get_prompt(name, &arguments).await.map_err(|fault| fault::of_request(&fault))?;
    session.printer.show(&result, |view| render::prompt(&result, view))
}

/// `complete`: how an argument may go on.
pub(crate) async fn complete(
    session: &Session,
    of: &Completable,
    argument: &str,
    prefix: &str,
    context: &[(String, String)],
) -> Result<()> {
    let reference = reference(of);
    let argument =
        CompletionArgument { name: argument.to_owned(), value: prefix.to_owned(), extra: JsonObject::new() };
    let context: BTreeMap<String, String> = context.iter().cloned().collect();
    let request = session.client.complete(&reference, &argument, &context);
    let result = request.await.map_err(|fault| fault::of_request(&fault))?;
    session.printer.show(&result, |view| match view.width {
        // A program that reads would take a remark for a value.
        None => result.completion.values.iter().map(|value| format!("{}\n", one_line(value))).collect(),
        Some(_) => render::completion(&result.completion, view),
    })
}

/// What is completed, as the protocol names it.
pub(crate) fn reference(of: &Completable) -> CompletionRef {
    match of {
        Completable::Prompt(name) => CompletionRef::Prompt(PromptReference {
            name: name.clone(),
            title: None,
            extra: JsonObject::new(),
        }),
        Completable::Template(uri) => {
            CompletionRef::Resource(ResourceTemplateReference { uri: uri.clone(), extra: JsonObject::new() })
        }
    }
}

/// `info`: what the server says of itself.
pub(crate) fn info(session: &Session) -> Result<()> {
    let server = session.client.server();
    let also: Vec<String> =
        server.versions.iter().filter(|version| *version != server.revision.as_str()).cloned().collect();
    let document = json!({
        "serverInfo": server.info,
        "protocolVersion": server.revision.as_str(),
        "supportedVersions": server.versions,
        "capabilities": server.capabilities,
        "instructions": server.instructions,
        "target": session.client.name(),
    });
    session.printer.show(&document, |view| {
        let summary = ServerSummary {
            server: server.info.as_ref(),
            revision: server.revision.as_str(),
            also_speaks: &also,
            transport: session.client.name(),
            capabilities: &server.capabilities,
            instructions: server.instructions.as_deref(),
        };
        render::server_info(&summary, view)
    })
}

/// `raw`: any request.
pub(crate) async fn raw(session: &Session, method: &str, params: Option<&str>) -> Result<()> {
    let params = match params {
        Some(text) => {
            let value = json_document(text, &mut Inputs::new(&mut io::stdin()));
            let value = value.map_err(|what| match what.strip_prefix("is no JSON") {
                Some(why) => UsageError::new(format!("the parameters are no JSON{why}")),
                None => UsageError::new(format!("the parameters: {what}")),
            })?;
            value.as_object().cloned().ok_or_else(|| UsageError::new("the parameters are no JSON object"))?
        }
        None => JsonObject::new(),
    };
    let tool = params.get("name").and_then(Value::as_str).map(str::to_owned);
    let result = match tool.filter(|_| method == "tools/call") {
        Some(tool) => call::raw(session, &tool, params).await,
        None => session.client.raw(method, params).read_as::<Box<RawValue>>().await,
    };
    let result = result.map_err(|fault| fault::of_request(&fault))?;
    session.printer.show(&result, |_| format!("{}\n", multi_line(&laid_out(result.get()))))
}

/// The level from which on log messages are wanted.
pub(crate) async fn set_level(session: &Session, level: LogLevel) -> Result<()> {
    session.set_level(level).await?;
    session.printer.show(&json!({}), |_| String::new())
}

/// So many names are told in one line.
const FEW: usize = 8;

/// Names something that is not there, and what is.
pub(crate) fn unknown(what: &str, name: &str, names: &[&str]) -> String {
    let nearest = names
        .iter()
        .max_by(|one, other| strsim::jaro_winkler(one, name).total_cmp(&strsim::jaro_winkler(other, name)));
    match (names, nearest) {
        ([], _) | (_, None) => format!("the server has no {what}s"),
        (few, _) if few.len() <= FEW => {
            format!("the server has no {what} {name:?}; it has {}", few.join(", "))
        }
        (many, Some(nearest)) => {
            let count = many.len();
            format!("the server has no {what} {name:?}; did you mean {nearest:?}? It has {count} of them")
        }
    }
}
