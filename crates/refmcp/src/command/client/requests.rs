//! The commands that are one request each.

use std::collections::BTreeMap;
use std::io;

use anyhow::Result;
use refmcp_client::Listable;
use refmcp_client::model::{
    CompleteResult, CompletionArgument, CompletionRef, GetPromptResult, JsonObject, LogLevel, Prompt,
    ReadResourceResult, Resource, ResourceTemplate,
};
use refmcp_proto::revision::Method;
use refmcp_proto::uri_template::variables;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::call;
use super::extra_methods::ExtraMethods;
use super::output::{WithRawJson, laid_out};
use super::session::Session;
use crate::args::{UsageError, usage};
use crate::arguments::{ArgumentInput, ValueSource, json_document, prompt_schema};
use crate::ui::error::{reworded, rpc_of};
use crate::ui::render;
use crate::ui::suggest::{choices, nearest, unknown};
use crate::ui::text::one_line;

/// `read`: a resource.
pub(crate) async fn read(session: &Session, uri: &str) -> Result<()> {
    let request = session.client.read_resource(uri).read_as::<WithRawJson<ReadResourceResult>>();
    let read = match session.ask(request).await {
        Ok(read) => read,
        Err(error) => {
            let said = session.fault(Method::ReadResource.name(), &error);
            return Err(proposing(session, said, uri, |resource: &Resource| &resource.uri).await);
        }
    };
    if read.item.contents.is_empty() {
        session.remark("the resource is empty");
    }
    session
        .printer
        .show_bytes(&read.text, render::exact_bytes(&read.item), |view| render::resource(&read.item, view))
}

/// `prompt`: a prompt, filled in.
pub(crate) async fn prompt(session: &Session, name: &str, words: &ArgumentInput) -> Result<()> {
    let prompts =
        session.list::<Prompt>().await.map_err(|error| session.fault(Method::ListPrompts.name(), &error))?;
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
    let request = session.client.get_prompt(name, &arguments).read_as::<WithRawJson<GetPromptResult>>();
    let got = session.ask(request).await.map_err(|error| session.fault(Method::GetPrompt.name(), &error))?;
    if got.item.messages.is_empty() {
        session.remark("the prompt has no messages");
    }
    session.printer.show(&got.text, |view| render::prompt(&got.item, view))
}

/// `complete`: how an argument may go on.
pub(crate) async fn complete(
    session: &Session,
    of: &CompletionRef,
    argument: &str,
    prefix: &str,
    context: &[(String, String)],
) -> Result<()> {
    let typed = || std::iter::once(argument).chain(context.iter().map(|(name, _)| name.as_str()));
    if let CompletionRef::Resource(template) = of {
        let variables = variables(&template.uri);
        let names: Vec<&str> = variables.iter().map(|variable| variable.name.as_str()).collect();
        check_names("template", "variable", typed(), &names)?;
    }
    let completed_argument = CompletionArgument::new(argument, prefix);
    let known: BTreeMap<String, String> = context.iter().cloned().collect();
    let request = session.client.complete(of, &completed_argument, &known);
    let request = request.read_as::<WithRawJson<CompleteResult>>();
    let completed = session.ask(request).await;
    // A server may refuse the name of an argument, or just know no values for it.
    let is_helped = match &completed {
        Ok(completed) => completed.item.completion.values.is_empty(),
        Err(error) => error.rpc().is_some(),
    };
    let mut unknown = None;
    if let (CompletionRef::Prompt(named), true) = (of, is_helped) {
        // A server that does not list its prompts has nothing to propose.
        let prompts = session.list::<Prompt>().await.unwrap_or_default();
        if let Some(prompt) = prompts.iter().find(|prompt| prompt.name == named.name) {
            let arguments = prompt.arguments.as_deref().unwrap_or_default();
            let names: Vec<&str> = arguments.iter().map(|argument| argument.name.as_str()).collect();
            unknown = check_names("prompt", "argument", typed(), &names).err();
        }
    }
    let WithRawJson { item: result, text } = match (completed, unknown) {
        (Ok(completed), None) => completed,
        (Ok(_), Some(unknown)) => return Err(unknown.into()),
        (Err(error), Some(unknown)) => {
            let said = session.fault(Method::Complete.name(), &error);
            return Err(reworded(&said, format!("{said:#}; {unknown}")));
        }
        (Err(error), None) => {
            let said = session.fault(Method::Complete.name(), &error);
            return Err(match of {
                CompletionRef::Prompt(named) => {
                    proposing(session, said, &named.name, |prompt: &Prompt| &prompt.name).await
                }
                CompletionRef::Resource(named) => {
                    proposing(session, said, &named.uri, |template: &ResourceTemplate| &template.uri_template)
                        .await
                }
            });
        }
    };
    session.printer.show(&text, |view| match view.width {
        // A program that reads would take a remark for a value.
        None => result.completion.values.iter().map(|value| format!("{}\n", one_line(value))).collect(),
        Some(_) => render::completion(&result.completion, view),
    })
}

/// Whether all names that were typed are among those that there are.
///
/// # Errors
///
/// One is not; the error says what may have been meant.
pub(crate) fn check_names<'a>(
    whole: &str,
    part: &str,
    mut typed: impl Iterator<Item = &'a str>,
    names: &[&str],
) -> Result<(), UsageError> {
    let Some(name) = typed.find(|name| !names.contains(name)) else { return Ok(()) };
    let there = choices(name, names, "it has").unwrap_or_else(|| "it has none".to_owned());
    Err(usage!("the {whole} has no {part} {name:?}; {there}"))
}

/// An error that the server answered with; where it has no such thing, with the name that may have been meant.
async fn proposing<T: Listable>(
    session: &Session,
    said: anyhow::Error,
    name: &str,
    name_of: impl Fn(&T) -> &String,
) -> anyhow::Error {
    if rpc_of(&said).is_none() {
        return said;
    }
    // A server that does not list them has nothing to propose.
    let listed = session.list::<T>().await.unwrap_or_default();
    let names: Vec<&str> = listed.iter().map(|item| name_of(item).as_str()).collect();
    match nearest(name, &names).filter(|_| !names.contains(&name)) {
        Some(near) => reworded(&said, format!("{said:#}; did you mean {}?", one_line(near))),
        None => said,
    }
}

/// The members of the answer to `server/discover` or `initialize` that are shown as the server wrote them.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OpeningAnswer {
    server_info: Option<Box<RawValue>>,
    capabilities: Option<Box<RawValue>>,
    #[serde(rename = "_meta")]
    meta: Option<OpeningMeta>,
}

#[derive(Deserialize)]
struct OpeningMeta {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    server_info: Option<Box<RawValue>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InfoDocument<'a> {
    server_info: Option<Box<RawValue>>,
    protocol_version: &'a str,
    supported_versions: &'a [String],
    capabilities: Option<Box<RawValue>>,
    instructions: Option<&'a str>,
    target: &'a str,
}

/// `info`: what the server says of itself.
pub(crate) fn info(session: &Session) -> Result<()> {
    let server = session.client.server();
    let OpeningAnswer { server_info, capabilities, meta } =
        serde_json::from_str(&server.result).unwrap_or_default();
    let document = InfoDocument {
        server_info: server_info.or_else(|| meta?.server_info),
        protocol_version: server.revision.as_str(),
        supported_versions: &server.versions,
        capabilities,
        instructions: server.instructions.as_deref(),
        target: session.client.name(),
    };
    session.printer.show(&document, |view| render::server_info(&server, session.client.name(), view))
}

/// `raw`: any request.
pub(crate) async fn raw(session: &Session, method: &str, params: Option<&str>) -> Result<()> {
    let params = match params {
        Some(text) => {
            let value = json_document(text, &mut ValueSource::new(&mut io::stdin()));
            let value = value.map_err(|what| match what.strip_prefix("is no JSON") {
                Some(why) => usage!("the parameters are no JSON{why}"),
                None => usage!("the parameters: {what}"),
            })?;
            value.as_object().cloned().ok_or_else(|| UsageError::new("the parameters are no JSON object"))?
        }
        None => JsonObject::new(),
    };
    let tool = params.get("name").and_then(Value::as_str).map(str::to_owned);
    let result = match tool.filter(|_| method == Method::CallTool.name()) {
        Some(tool) => call::raw(session, &tool, params).await,
        None => session.ask(session.client.raw(method, params).read_as::<Box<RawValue>>()).await,
    };
    // What was typed as a request is answered as one: its error is the server's own.
    let result = result.map_err(|error| session.fault("", &error))?;
    session.printer.show(&result, |view| format!("{}\n", view.text(&laid_out(result.get()))))
}

/// The level from which on log messages are wanted.
pub(crate) async fn set_level(session: &Session, level: LogLevel) -> Result<()> {
    session.set_level(level).await?;
    session.printer.show(&json!({}), |_| String::new())
}

/// `metadata`: what a server says of itself beyond the protocol.
pub(crate) async fn metadata(session: &Session) -> Result<()> {
    ExtraMethods::METADATA.require(session)?;
    let request = session.client.raw("metadata/get", JsonObject::new()).read_as::<Box<RawValue>>();
    let written = session.ask(request).await.map_err(|error| session.fault("metadata/get", &error))?;
    let members: Value = serde_json::from_str(written.get())?;
    session.printer.show(&written, |view| render::metadata(&members, view))
}
