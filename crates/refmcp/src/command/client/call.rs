//! `call`: a tool, once the user has agreed to it.

use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use anyhow::Result;
use refmcp_client::model::{CallToolResult, JsonObject, Tool};
use refmcp_client::{CallError, Error, Request, redact};
use serde_json::Value;
use serde_json::value::RawValue;

use super::output::WithRawJson;
use super::session::Session;
use crate::args::{ExitError, ExitReason, UsageError, usage};
use crate::arguments::{ArgumentInput, ValueSource, parse_arguments};
use crate::store::StateFolder;
use crate::store::calls::{CallEntry, Outcome, append};
use crate::store::trust::{Trust, TrustStatus};
use crate::ui::ask::{approve, is_asked_about};
use crate::ui::redact::masked;
use crate::ui::render;
use crate::ui::suggest::unknown;
use refmcp_proto::revision::Method;

/// Calls a tool and shows what it says.
pub(crate) async fn call(session: &Session, name: &str, words: &ArgumentInput) -> Result<ExitReason> {
    let tool = find(session, name).await?;
    let arguments = session.person.arguments(words, &tool.input_schema).await?;
    let arguments = approved(session, &tool, arguments).await?;
    let entry = CallLogEntry::begin(session, name, &arguments);
    let ended = watched(session, name, &arguments).await;
    entry.end(ended.as_ref().map(|written| written.item.is_error == Some(true)));
    show(session, &ended.map_err(|error| session.fault(Method::CallTool.name(), &error))?)
}

/// Shows what a tool says.
pub(super) fn show(session: &Session, written: &WithRawJson<CallToolResult>) -> Result<ExitReason> {
    let WithRawJson { item: result, text } = written;
    // Standard output is for the result alone.
    if result.is_error == Some(true) {
        session.remark("the tool says it failed:");
    } else if result.content.is_empty() && result.structured_content.is_none() {
        session.remark("the tool returned nothing");
    }
    session.printer.show(text, |view| render::tool_result(result, view))?;
    Ok(if result.is_error == Some(true) { ExitReason::ToolError } else { ExitReason::Done })
}

/// The tool of this name.
pub(super) async fn find(session: &Session, name: &str) -> Result<Tool> {
    let tools =
        session.list::<Tool>().await.map_err(|error| session.fault(Method::ListTools.name(), &error))?;
    tools.iter().find(|tool| tool.name == name).cloned().ok_or_else(|| {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        UsageError::new(unknown("tool", name, &names)).into()
    })
}

/// The arguments that the user has agreed to: by an earlier decision, or by asking.
pub(super) async fn approved(session: &Session, tool: &Tool, arguments: JsonObject) -> Result<JsonObject> {
    let trust = StateFolder::from_env().and_then(|folder| Trust::load(&folder)).unwrap_or_else(|error| {
        tracing::warn!("nothing is known of what was decided before: {error:#}");
        Trust::default()
    });
    match trust.tool(session.name.key(), &tool.name) {
        TrustStatus::Disabled => {
            let options = format!("--tool {}", redact::joined(&[&tool.name]));
            let how = session.name.command_line("refmcp trust revoke", &options);
            return Err(usage!("{} was disabled here; to use it again: {how}", tool.name).into());
        }
        TrustStatus::Allowed => return Ok(arguments),
        TrustStatus::Unknown | TrustStatus::Changed => {}
    }
    if !is_asked_about(tool, session.shared.yes) || !session.person.is_there() {
        return Ok(arguments);
    }
    let (server, tool) = (session.name.to_string(), tool.clone());
    let answer = session.person.ask(move |terminal| {
        let check = |arguments: &JsonObject| fits(&tool, arguments);
        approve(terminal, &server, &tool, arguments, &check)
    });
    match answer.await {
        Some(Ok(Some(arguments))) => Ok(arguments),
        Some(Err(error)) => Err(error.into()),
        _ => Err(ExitError::new(ExitReason::Failed, "it was not called").into()),
    }
}

/// Whether arguments that were changed by hand still fit.
fn fits(tool: &Tool, arguments: &JsonObject) -> Result<(), String> {
    let words = ArgumentInput {
        words: Vec::new(),
        json: Some(serde_json::Value::Object(arguments.clone()).to_string()),
    };
    let parsed = parse_arguments(&words, &tool.input_schema, &mut ValueSource::new(&mut std::io::empty()));
    parsed.finish(&tool.input_schema).map(drop).map_err(|errors| errors.to_string())
}

/// Makes the call, with a bar that shows how far it is.
async fn watched(
    session: &Session,
    name: &str,
    arguments: &JsonObject,
) -> Result<WithRawJson<CallToolResult>, Error> {
    session.ask(shown(session, name, session.client.call_tool(name, arguments)).read_as()).await
}

/// The call, with a bar that shows how far it is.
pub(super) fn shown(
    session: &Session,
    name: &str,
    request: Request<CallToolResult>,
) -> Request<CallToolResult> {
    let bar = Arc::new(Mutex::new(session.bars.call(name)));
    let of_task = bar.clone();
    let request = request.on_progress(move |progress| {
        if let Ok(mut bar) = bar.lock() {
            bar.update(&progress.progress, progress.total.as_ref(), progress.message.as_deref());
        }
    });
    request.on_task_status(move |task| {
        if let Ok(mut bar) = of_task.lock() {
            bar.say(task.status_message.as_deref().unwrap_or(task.status.as_str()));
        }
    })
}

/// Makes the call as it was typed. The user is not asked, but the call is logged as any other.
pub(crate) async fn raw(session: &Session, tool: &str, params: JsonObject) -> Result<Box<RawValue>, Error> {
    let arguments = params.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default();
    let entry = CallLogEntry::begin(session, tool, &arguments);
    let ended =
        session.ask(session.client.raw(Method::CallTool.name(), params).read_as::<Box<RawValue>>()).await;
    entry.end(ended.as_ref().map(|result| {
        serde_json::from_str::<Value>(result.get()).is_ok_and(|result| result["isError"] == true)
    }));
    ended
}

/// An entry in the log of calls; a call that is dropped before its end is logged as cancelled.
pub(crate) struct CallLogEntry<'a> {
    session: &'a Session,
    tool: &'a str,
    arguments: &'a JsonObject,
    began: SystemTime,
    clock: Instant,
    ended: bool,
}

impl<'a> CallLogEntry<'a> {
    pub(crate) fn begin(session: &'a Session, tool: &'a str, arguments: &'a JsonObject) -> Self {
        let (began, clock) = (SystemTime::now(), Instant::now());
        Self { session, tool, arguments, began, clock, ended: false }
    }

    /// The result, which may say that the tool has failed, or the error.
    pub(crate) fn end(mut self, has_failed: Result<bool, &Error>) {
        self.ended = true;
        match has_failed {
            Ok(true) => self.write(Outcome::ToolError, None),
            Ok(false) => self.write(Outcome::Ok, None),
            Err(error @ Error::Call(CallError::Rpc(_))) => self.write(Outcome::Error, Some(error)),
            Err(error) => self.write(Outcome::NoAnswer, Some(error)),
        }
    }

    fn write(&self, outcome: Outcome, error: Option<&Error>) {
        let mask_arguments = self.session.shared.mask_arguments;
        let took = self.clock.elapsed();
        let target = self.session.name.to_string();
        let mut entry =
            CallEntry::new(self.began, &target, self.tool, self.arguments, mask_arguments, outcome, took);
        if let Some(error) = error {
            entry = entry.detail(&masked(&error.to_string()));
        }
        if let Err(error) = StateFolder::from_env().and_then(|folder| append(&folder, &entry)) {
            tracing::warn!("the call is not in the log: {error:#}");
        }
    }
}

impl Drop for CallLogEntry<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.write(Outcome::Cancelled, None);
        }
    }
}
