//! The commands that are one request each.

use std::collections::BTreeMap;
use std::io;

use anyhow::Result;
use refmcp_client::model::{
    CompleteResult, CompletionArgument, CompletionRef, GetPromptResult, JsonObject, LogLevel, Prompt,
    PromptReference, ReadResourceResult, ResourceTemplateReference,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::call;
use super::output::laid_out;
use super::session::Session;
use super::written::Written;
use crate::args::{Completable, UsageError};
use crate::arguments::{ArgumentWords, Inputs, json_document, prompt_schema};
use crate::ui::render::{self, ServerSummary};
use crate::ui::suggest::unknown;
use crate::ui::text::{multi_line, one_line};

/// `read`: a resource.
pub(crate) async fn read(session: &Session, uri: &str) -> Result<()> {
    let request = session.client.read_resource(uri).read_as::<Written<ReadResourceResult>>();
    let read = session.ask(request).await.map_err(|fault| session.fault("resources/read", &fault))?;
    if read.item.contents.is_empty() {
        session.remark("the resource is empty");
    }
    session
        .printer
        .show_bytes(&read.text, render::exact_bytes(&read.item), |view| render::resource(&read.item, view))
}

/// `prompt`: a prompt, filled in.
pub(crate) async fn prompt(session: &Session, name: &str, words: &ArgumentWords) -> Result<()> {
    let prompts = session.list::<Prompt>().await.map_err(|fault| session.fault("prompts/list", &fault))?;
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
    let request = session.client.get_prompt(name, &arguments).read_as::<Written<GetPromptResult>>();
    let got = session.ask(request).await.map_err(|fault| session.fault("prompts/get", &fault))?;
    if got.item.messages.is_empty() {
        session.remark("the prompt has no messages");
    }
    session.printer.show(&got.text, |view| render::prompt(&got.item, view))
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
    let request = request.read_as::<Written<CompleteResult>>();
    let completed =
        session.ask(request).await.map_err(|fault| session.fault("completion/complete", &fault))?;
    let Written { item: result, text } = completed;
    session.printer.show(&text, |view| match view.width {
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
        None => session.ask(session.client.raw(method, params).read_as::<Box<RawValue>>()).await,
    };
    // What was typed as a request is answered as one: its error is the server's own.
    let result = result.map_err(|fault| session.fault("", &fault))?;
    session.printer.show(&result, |_| format!("{}\n", multi_line(&laid_out(result.get()))))
}

/// The level from which on log messages are wanted.
pub(crate) async fn set_level(session: &Session, level: LogLevel) -> Result<()> {
    session.set_level(level).await?;
    session.printer.show(&json!({}), |_| String::new())
}
