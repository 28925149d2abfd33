//! Tasks: how far they have come, and which tools have them.

use refmcp_proto::model::{Task, TaskStatus, TaskSupport, Tool};

use super::View;
use crate::ui::render::table::Table;
use crate::ui::text::one_line;

/// Whether calls of a tool become tasks, by its entry in the list (2025-11-25).
pub(crate) fn task_support(tool: &Tool) -> Option<&'static str> {
    match tool.execution.as_ref()?.task_support.as_ref()? {
        TaskSupport::Required => Some("runs as a task only"),
        TaskSupport::Optional => Some("can run as a task"),
        TaskSupport::Forbidden | TaskSupport::Other(_) => None,
    }
}

/// Tasks, a line each.
pub(crate) fn tasks(tasks: &[Task], view: &View) -> String {
    let mut table = Table::new(&["ID", "STATUS", "CHANGED", "ABOUT"]);
    for task in tasks {
        let about = task.status_message.as_deref().unwrap_or_default();
        table.row([&task.task_id, status(task), &task.last_updated_at, about]);
    }
    table.render_or("no tasks", view.paint, view.width)
}

/// How far a task has come, with all that the server says of it.
pub(crate) fn task(task: &Task, view: &View) -> String {
    let asks = task.input_requests.iter().flatten();
    let asks = asks.map(|(key, request)| format!("{key} ({})", request.method())).collect::<Vec<_>>();
    let kept = task.ttl_ms.map_or_else(|| "for ever".to_owned(), |ttl| format!("for {} s", seconds(ttl)));
    let facts = [
        ("task", Some(task.task_id.clone())),
        ("status", Some(status(task).to_owned())),
        ("about", task.status_message.clone()),
        ("asks for", Some(asks.join(", ")).filter(|asks| !asks.is_empty())),
        ("error", task.error.as_ref().map(ToString::to_string)),
        ("created", Some(task.created_at.clone())),
        ("changed", Some(task.last_updated_at.clone())),
        ("kept", Some(kept)),
        ("asked for every", task.poll_interval_ms.map(|millis| format!("{} s", seconds(millis)))),
    ];
    let facts = facts.iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
    let line = |(name, value): (&&str, &str)| {
        format!("{}{}\n", view.paint.strong(&format!("{name:<17}")), one_line(value))
    };
    facts.map(line).collect()
}

/// A status of a task that is watched, on one line.
pub(crate) fn task_line(task: &Task, view: &View) -> String {
    let name = match task.status {
        TaskStatus::Completed => view.paint.strong(status(task)),
        TaskStatus::Failed | TaskStatus::Cancelled => view.paint.wrong(status(task)),
        _ => status(task).to_owned(),
    };
    let message = task.status_message.as_deref().map(|message| format!(": {}", one_line(message)));
    format!("{name}{}\n", message.unwrap_or_default())
}

/// The status in words.
fn status(task: &Task) -> &str {
    match &task.status {
        TaskStatus::InputRequired => "input required",
        other => other.as_str(),
    }
}

fn seconds(millis: u64) -> f64 {
    std::time::Duration::from_millis(millis).as_secs_f64()
}
