//! What is remembered of a task, and the shapes that both kinds of tasks share.

use std::collections::HashMap;

use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

use crate::auditor::checks::Context;
use crate::auditor::checks::values::{Violation, text, violation_unless};
use crate::auditor::conversation::Request;
use crate::verdict::Role;

/// What leads to the declaration of the extension.
pub(in crate::auditor::checks) const EXTENSION: [&str; 2] = ["extensions", "io.modelcontextprotocol/tasks"];

/// Tasks of a conversation that are remembered, and the bytes of an id.
const MAX_TASKS: usize = 512;
const MAX_ID: usize = 256;

/// The names of members that differ between the two kinds of tasks.
#[derive(Debug, Clone, Copy)]
pub(in crate::auditor::checks) struct Names {
    pub(in crate::auditor::checks) lifetime: &'static str,
    pub(in crate::auditor::checks) interval: &'static str,
}

/// The tasks of a conversation, by the party that executes them and their id.
#[derive(Debug)]
pub(in crate::auditor::checks) struct Records<T> {
    tasks: HashMap<(Role, String), T>,
}

/// What both kinds of tasks have.
#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct Progress {
    /// The status that was seen last.
    pub(in crate::auditor::checks) status: String,
    /// When a final status was seen first.
    pub(in crate::auditor::checks) ended: Option<u64>,
    /// When the task was asked for last, while nothing else told of it.
    polled: Option<u64>,
    /// The milliseconds between polls.
    interval: Option<u64>,
}

impl<T> Default for Records<T> {
    fn default() -> Self {
        Self { tasks: HashMap::new() }
    }
}

impl<T: Default> Records<T> {
    /// The task with this id, if it has been seen before.
    pub(in crate::auditor::checks) fn get(&mut self, executor: Role, id: &str) -> Option<&mut T> {
        self.tasks.get_mut(&(executor, id.to_owned()))
    }

    /// The task with this id, which is remembered from now on; `None` where there are too many.
    pub(in crate::auditor::checks) fn seen(&mut self, executor: Role, id: &str) -> Option<&mut T> {
        let key = (executor, id.to_owned());
        if id.len() > MAX_ID || (self.tasks.len() >= MAX_TASKS && !self.tasks.contains_key(&key)) {
            return None;
        }
        Some(self.tasks.entry(key).or_default())
    }

    /// The task that a request to its executor names, which is remembered from now on.
    pub(in crate::auditor::checks) fn of_request(
        &mut self,
        executor: Role,
        request: &Request,
    ) -> Option<&mut T> {
        self.seen(executor, text(&request.params, "taskId")?)
    }

    /// The tasks of one party with their ids.
    pub(in crate::auditor::checks) fn of(&mut self, executor: Role) -> impl Iterator<Item = (&str, &mut T)> {
        let own = self.tasks.iter_mut().filter(move |(key, _)| key.0 == executor);
        own.map(|(key, task)| (&*key.1, task))
    }
}

impl Progress {
    /// Takes note of a status in the answer to a request that was sent then, and judges whether it may follow.
    pub(in crate::auditor::checks) fn observe(
        &mut self,
        task: &Value,
        sent: u64,
        now: u64,
        names: Names,
        ending: &'static Rule,
        context: &mut Context<'_>,
    ) {
        let status = text(task, "status").unwrap_or_default();
        let is_known = matches!(status, "working" | "input_required" | "completed" | "failed" | "cancelled");
        // An answer to a request from before the end may be from before the end too.
        let is_late = self.ended.is_some_and(|ended| sent > ended);
        let expected = "keep to the statuses of tasks, and keep a final one";
        if !is_known {
            context.broken(&rule::TSK_12, "a status that does not exist", expected);
        } else if is_late && status != self.status {
            let what = format!("a task that is {} becomes {status}", self.status);
            context.broken(ending, what, expected);
        } else {
            context.kept(&rule::TSK_12);
        }
        self.note(task, now, names);
    }

    /// Takes note of a status.
    pub(in crate::auditor::checks) fn note(&mut self, task: &Value, now: u64, names: Names) {
        let status = text(task, "status").unwrap_or_default();
        if self.ended.is_none() && status.len() <= 16 {
            status.clone_into(&mut self.status);
            self.ended = is_final(status).then_some(now);
        }
        self.interval = task.get(names.interval).and_then(Value::as_u64);
    }

    /// A requestor asks for the task; to ask for one that has ended is no poll. Half of the interval is enough: time passes between sending and receiving.
    pub(in crate::auditor::checks) fn poll(&mut self, now: u64, context: &mut Context<'_>) {
        if let (Some(last), Some(interval), None) = (self.polled, self.interval, self.ended) {
            let is_patient = now.saturating_sub(last).saturating_mul(2) >= interval;
            let what = "tasks/get comes sooner than the poll interval of the task says";
            context.require(&rule::TSK_15, is_patient, what, "wait for the poll interval between requests");
        }
        self.polled = Some(now);
    }

    /// Something else tells of the task: to ask at once is no poll.
    pub(in crate::auditor::checks) fn told(&mut self) {
        self.polled = None;
    }
}

pub(in crate::auditor::checks) fn is_final(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "cancelled")
}

/// Judges the members that each task has.
pub(in crate::auditor::checks) fn judge_shape(task: &Value, names: Names, context: &mut Context<'_>) {
    let lifetime = task.get(names.lifetime);
    let has_lifetime = lifetime.is_some_and(|it| it.is_null() || it.is_number());
    let has_times = text(task, "createdAt").is_some() && text(task, "lastUpdatedAt").is_some();
    let what =
        if has_times { "a task without its lifetime" } else { "a task without createdAt or lastUpdatedAt" };
    let expected = "send createdAt, lastUpdatedAt and the lifetime, null where it is unlimited";
    context.require(&rule::TSK_13, has_times && has_lifetime, what, expected);
}

/// Judges whether tasks/get says why a task failed.
pub(in crate::auditor::checks) fn judge_failure(task: &Value, context: &mut Context<'_>) {
    if text(task, "status") == Some("failed") {
        let what = "a failed task without a statusMessage";
        let expected = "say in statusMessage why it failed";
        context.require(&rule::TSK_38, text(task, "statusMessage").is_some(), what, expected);
    }
}

/// The violation of a new task's id: it is a string that no task before has.
pub(in crate::auditor::checks) fn id_violation(task: &Value, is_known: bool) -> Option<Violation> {
    let expected = "give each task a string of its own as taskId";
    match text(task, "taskId") {
        None => Some(("a task without a taskId that is a string".to_owned(), expected)),
        Some(_) => violation_unless(!is_known, "a new task with the taskId of another one", expected),
    }
}
