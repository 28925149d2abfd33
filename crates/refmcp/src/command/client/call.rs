//! `call`: a tool, once somebody has agreed to it.

use std::sync::Mutex;
use std::time::{Instant, SystemTime};

use anyhow::Result;
use refmcp_client::model::{CallToolResult, JsonObject, Tool};
use refmcp_client::{CallError, Error};
use serde_json::Value;
use serde_json::value::RawValue;

use super::approval;
use super::session::Session;
use super::written::Written;
use crate::args::{ExitReason, UsageError};
use crate::arguments::ArgumentInput;
use crate::store::StateFolder;
use crate::store::calls::{CallEntry, Outcome, append};
use crate::ui::redact::masked;
use crate::ui::render;
use crate::ui::suggest::unknown;

/// Calls a tool and shows what it says.
pub(crate) async fn call(session: &Session, name: &str, words: &ArgumentInput) -> Result<ExitReason> {
    let tool = find(session, name).await?;
    let arguments = session.person.arguments(words, &tool.input_schema).await?;
    let arguments = approval::approved(session, &tool, arguments).await?;
    let note = Note::begin(session, name, &arguments);
    let ended = watched(session, name, &arguments).await;
    note.end(ended.as_ref().map(|written| &written.item));
    let Written { item: result, text } = ended.map_err(|fault| session.fault("tools/call", &fault))?;
    // Standard output is for the result alone.
    if result.is_error == Some(true) {
        session.remark("the tool says it failed:");
    } else if result.content.is_empty() && result.structured_content.is_none() {
        session.remark("the tool returned nothing");
    }
    session.printer.show(&text, |view| render::tool_result(&result, view))?;
    Ok(if result.is_error == Some(true) { ExitReason::ToolError } else { ExitReason::Done })
}

/// The tool of this name.
async fn find(session: &Session, name: &str) -> Result<Tool> {
    let tools = session.list::<Tool>().await.map_err(|fault| session.fault("tools/list", &fault))?;
    tools.iter().find(|tool| tool.name == name).cloned().ok_or_else(|| {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        UsageError::new(unknown("tool", name, &names)).into()
    })
}

/// Makes the call, with a bar that shows how far it is.
async fn watched(
    session: &Session,
    name: &str,
    arguments: &JsonObject,
) -> Result<Written<CallToolResult>, Error> {
    let bar = Mutex::new(session.bars.call(name));
    let request = session.client.call_tool(name, arguments).on_progress(move |progress| {
        if let Ok(mut bar) = bar.lock() {
            bar.update(&progress.progress, progress.total.as_ref(), progress.message.as_deref());
        }
    });
    session.ask(request.read_as()).await
}

/// Makes the call as it was typed. Nobody is asked, but it is written down as any other.
pub(crate) async fn raw(session: &Session, tool: &str, params: JsonObject) -> Result<Box<RawValue>, Error> {
    let arguments = params.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default();
    let note = Note::begin(session, tool, &arguments);
    let ended = session.ask(session.client.raw("tools/call", params).read_as::<Box<RawValue>>()).await;
    let result = match &ended {
        Ok(result) => {
            let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
            let is_error = result.get("isError").and_then(Value::as_bool).unwrap_or(false);
            Ok(CallToolResult::default().is_error(is_error))
        }
        Err(fault) => Err(fault),
    };
    note.end(result.as_ref().map_err(|fault| *fault));
    ended
}

/// A call that goes into the log, also when nobody waits for its end.
pub(crate) struct Note<'a> {
    session: &'a Session,
    tool: &'a str,
    arguments: &'a JsonObject,
    began: SystemTime,
    clock: Instant,
    ended: bool,
}

impl<'a> Note<'a> {
    pub(crate) fn begin(session: &'a Session, tool: &'a str, arguments: &'a JsonObject) -> Self {
        let (began, clock) = (SystemTime::now(), Instant::now());
        Self { session, tool, arguments, began, clock, ended: false }
    }

    pub(crate) fn end(mut self, ended: Result<&CallToolResult, &Error>) {
        self.ended = true;
        match ended {
            Ok(result) if result.is_error == Some(true) => self.write(Outcome::ToolError, None),
            Ok(_) => self.write(Outcome::Ok, None),
            Err(fault @ Error::Call(CallError::Rpc(_))) => self.write(Outcome::Error, Some(fault)),
            Err(fault) => self.write(Outcome::NoAnswer, Some(fault)),
        }
    }

    fn write(&self, outcome: Outcome, fault: Option<&Error>) {
        let mask_arguments = self.session.shared.mask_arguments;
        let took = self.clock.elapsed();
        let target = self.session.name.to_string();
        let mut entry =
            CallEntry::new(self.began, &target, self.tool, self.arguments, mask_arguments, outcome, took);
        if let Some(fault) = fault {
            entry = entry.detail(&masked(&fault.to_string()));
        }
        if let Err(fault) = StateFolder::from_env().and_then(|folder| append(&folder, &entry)) {
            tracing::warn!("the call is not in the log: {fault:#}");
        }
    }
}

impl Drop for Note<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.write(Outcome::Cancelled, None);
        }
    }
}
