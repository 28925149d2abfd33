//! `call --task`, `call --detach` and `task`: calls of tools that go on at the server, by their ids.

use std::future::IntoFuture;

use anyhow::Result;
use refmcp_client::model::{CallToolResult, Task};
use refmcp_client::{CallError, Error, StartedCall, TaskHandle};
use refmcp_proto::revision::{Method, Tasks};
use serde_json::json;

use super::call::{self, CallLogEntry};
use super::output::{self, WithRawJson};
use super::session::Session;
use crate::args::{ExitReason, OutputFormat, TaskCommand, usage};
use crate::arguments::ArgumentInput;
use crate::ui::error::reworded;
use crate::ui::render;
use crate::ui::text::one_line;

type ToolResult = WithRawJson<CallToolResult>;

/// Calls a tool as a task; shows what comes of it, or its id alone.
pub(super) async fn call(
    session: &Session,
    name: &str,
    words: &ArgumentInput,
    is_detached: bool,
) -> Result<ExitReason> {
    let tool = call::find(session, name).await?;
    let is_experimental = session.client.server().rules().tasks == Tasks::Experimental;
    if is_experimental && render::task_support(&tool).is_none() {
        return Err(usage!("{name} does not run as a task; call it without --task and --detach").into());
    }
    let arguments = session.person.arguments(words, &tool.input_schema).await?;
    let arguments = call::approved(session, &tool, arguments).await?;
    let entry = CallLogEntry::begin(session, name, &arguments);
    let request = call::shown(session, name, session.client.call_tool(name, &arguments));
    let request = request.timeout(session.budget.silence()).total_timeout(session.budget.total());
    let started = session.budget.spend(request.read_as::<ToolResult>().as_task().into_future()).await;
    let handle = match started {
        Ok(StartedCall::Task(handle)) => *handle,
        Ok(StartedCall::Complete(written)) => {
            session.remark("the server has made it no task:");
            entry.end(Ok(written.item.is_error == Some(true)));
            return call::show(session, &written);
        }
        Err(error) => {
            entry.end(Err(&error));
            return Err(session.fault(Method::CallTool.name(), &error));
        }
    };
    if is_detached {
        entry.end(Ok(false));
        return detach(session, &handle);
    }
    session.remark(&format!("task {}", one_line(handle.id())));
    let ended = follow(session, handle).await;
    entry.end(ended.as_ref().map(|written| written.item.is_error == Some(true)));
    show(session, ended)
}

/// Shows the id of a task, and how it goes on.
fn detach(session: &Session, handle: &TaskHandle<ToolResult>) -> Result<ExitReason> {
    if session.name.is_command() {
        session.remark("the server ends with this command; its tasks may not outlive it");
    } else {
        let id = refmcp_client::redact::joined(&[handle.id()]);
        // A command to copy is of use only where it shows what it does.
        if !handle.id().starts_with('-') && one_line(handle.id()) == handle.id() {
            let how = session.name.command_line("refmcp task result", &id);
            session.remark(&format!("what comes of it: {how}"));
        }
    }
    let id = format!("{}\n", one_line(handle.id()));
    session.printer.show(&handle.created(), |_| id)?;
    Ok(ExitReason::Done)
}

/// Carries out a command about tasks.
pub(super) async fn run(session: &Session, command: &TaskCommand) -> Result<ExitReason> {
    match command {
        TaskCommand::List => list(session).await?,
        TaskCommand::Get(id) => {
            let got = session.budget.within(session.client.task(id).get()).await;
            let task = got.map_err(|error| session.fault(Method::GetTask.name(), &error))?;
            session.printer.show(&task, |view| render::task(&task, view))?;
        }
        TaskCommand::Cancel(id) => {
            let cancelled = session.budget.within(session.client.task(id).cancel()).await;
            cancelled.map_err(|error| session.fault(Method::CancelTask.name(), &error))?;
            let is_wish = session.client.server().rules().tasks == Tasks::Extension;
            session.remark(if is_wish { "the server was asked to cancel it" } else { "cancelled" });
            session.printer.show(&json!({}), |_| String::new())?;
        }
        TaskCommand::Result(id) => {
            let handle = session.client.task(id).read_as::<ToolResult>();
            let bar = std::sync::Mutex::new(session.bars.call("task"));
            let handle = handle.on_status(move |task| {
                if let Ok(mut bar) = bar.lock() {
                    bar.say(task.status_message.as_deref().unwrap_or(task.status.as_str()));
                }
            });
            return show(session, follow(session, handle).await);
        }
        TaskCommand::Watch(id) => return watch(session, id).await,
    }
    Ok(ExitReason::Done)
}

async fn list(session: &Session) -> Result<()> {
    let listed = session.list::<WithRawJson<Task>>().await;
    let listed = listed.map_err(|error| {
        let said = session.fault(Method::ListTasks.name(), &error);
        match error {
            Error::Call(CallError::NotInRevision { .. }) => {
                reworded(&said, format!("{said}: tasks are known by their ids alone"))
            }
            _ => said,
        }
    })?;
    let (tasks, texts): (Vec<Task>, Vec<_>) =
        listed.into_iter().map(|written| (written.item, written.text)).unzip();
    let document = json!({ "tasks": texts });
    session.printer.show(&document, |view| {
        render::Rendered::of_list(render::tasks(&tasks, view), tasks.is_empty(), view)
    })
}

/// Waits until a task ends, on what is left of the command's time.
async fn follow(session: &Session, handle: TaskHandle<ToolResult>) -> Result<ToolResult, Error> {
    let handle = handle.timeout(session.budget.silence()).total_timeout(session.budget.total());
    session.budget.spend(handle.result()).await
}

/// Shows each status of a task until it ends.
async fn watch(session: &Session, id: &str) -> Result<ExitReason> {
    let handle = session.client.task(id).read_as::<ToolResult>().timeout(session.shared.timeout);
    let mut statuses = handle.follow();
    while let Some(task) = statuses.next().await {
        match session.shared.output {
            OutputFormat::Text => {
                output::write(render::task_line(&task, session.printer.view()).as_bytes())?;
            }
            OutputFormat::Json => {
                output::write(format!("{}\n", serde_json::to_string(&task)?).as_bytes())?;
            }
            // Each message was printed when it passed.
            OutputFormat::Jsonl => {}
        }
    }
    match statuses.result().await {
        Ok(written) if written.item.is_error == Some(true) => Ok(ExitReason::ToolError),
        Ok(_) => Ok(ExitReason::Done),
        Err(error) => Err(session.fault(Method::GetTaskResult.name(), &error)),
    }
}

fn show(session: &Session, ended: Result<ToolResult, Error>) -> Result<ExitReason> {
    match ended {
        Ok(written) => call::show(session, &written),
        Err(error) => Err(session.fault(Method::GetTaskResult.name(), &error)),
    }
}
