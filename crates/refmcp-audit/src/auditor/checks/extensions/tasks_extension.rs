//! Rules about tasks as an extension.

use std::collections::{HashMap, HashSet};

use refmcp_proto::revision::Tasks as Kind;
use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

use super::task_record::{EXTENSION, Names, Progress, Records, id_violation, judge_failure, judge_shape};
use crate::auditor::checks::values::{
    Violation, fingerprint, items, request_capabilities, result_type, text, violation_unless,
};
use crate::auditor::checks::{Check, Context};
use crate::auditor::conversation::{Request, declares};
use crate::auditor::message::Message;
use crate::verdict::Role;

pub(in crate::auditor::checks) static RULES: &[&Rule] = &[
    &rule::TSK_39,
    &rule::TSK_43,
    &rule::TSK_44,
    &rule::TSK_46,
    &rule::TSK_47,
    &rule::TSK_48,
    &rule::TSK_49,
    &rule::TSK_50,
    &rule::TSK_51,
    &rule::TSK_54,
    &rule::TSK_55,
    &rule::TSK_56,
    &rule::TSK_61,
];

const NAMES: Names = Names { lifetime: "ttlMs", interval: "pollIntervalMs" };

/// Input requests of a task that are remembered, and ids of tasks that are listened to.
const MAX_KEYS: usize = 64;
const MAX_LISTENED: usize = 512;

#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct TasksExtension {
    tasks: Records<Task>,
    /// The ids of tasks whose notifications were acknowledged, once an acknowledgement was seen.
    listened: Option<HashSet<String>>,
    /// Some ids were not remembered.
    incomplete: bool,
}

#[derive(Debug, Default)]
struct Task {
    progress: Progress,
    /// When it was created, and its lifetime in milliseconds.
    created: Option<(u64, Option<u64>)>,
    /// tasks/get found it.
    found: bool,
    /// The input requests by their keys.
    keys: HashMap<String, u64>,
    /// The keys whose responses were acknowledged.
    answered: HashSet<String>,
}

impl Check for TasksExtension {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        if message.revision.is_none_or(|revision| revision.rules().tasks != Kind::Extension) {
            return;
        }
        if let Some((method, params)) = message.request() {
            self.asked(message, method, params, context);
        } else if let Some((method, params)) = message.notification() {
            self.notified(message, method, params, context);
        } else if let Some((request, result)) = message.result() {
            self.answered(message, request, result, context);
        } else if let Some((request, error)) = message.error() {
            self.refused(message, request, error.get("code").and_then(Value::as_i64), context);
        }
    }
}

impl TasksExtension {
    fn asked(&mut self, message: &Message<'_>, method: &str, params: &Value, context: &mut Context<'_>) {
        if !is_about_task(method) {
            return;
        }
        let id = text(params, "taskId").unwrap_or_default();
        if let Some(stream) = context.state.stream(message.stream).filter(|_| context.state.has_streams()) {
            let name =
                stream.headers.iter().find(|(name, _)| name == "mcp-name").map(|(_, value)| value.trim());
            // An encoded value is another rule's matter.
            let is_named = name.is_some_and(|name| name == id || name.starts_with("=?"));
            let what = "a request for a task whose Mcp-Name is not the taskId";
            context.require(&rule::TSK_55, is_named, what, "send the taskId as Mcp-Name");
        }
        let Some(task) = self.tasks.get(Role::Server, id) else { return };
        match method {
            "tasks/get" => task.progress.poll(message.at, context),
            "tasks/update" => {
                task.progress.told();
                task.judge_update(params, context);
            }
            _ => task.progress.told(),
        }
    }

    fn notified(&mut self, message: &Message<'_>, method: &str, params: &Value, context: &mut Context<'_>) {
        match method {
            "notifications/subscriptions/acknowledged" => {
                let listened = self.listened.get_or_insert_default();
                for id in params.get("notifications").map(|it| items(it, "taskIds")).unwrap_or_default() {
                    match id.as_str() {
                        Some(id) if id.len() <= 256 && listened.len() < MAX_LISTENED => {
                            listened.insert(id.to_owned());
                        }
                        _ => self.incomplete = true,
                    }
                }
            }
            "notifications/tasks" => {
                let id = text(params, "taskId").unwrap_or_default();
                let is_listened = self.listened.as_ref().is_none_or(|it| it.contains(id)) || self.incomplete;
                let violation = violation_unless(
                    is_listened,
                    "notifications/tasks of a task that no subscription has",
                    "notify of tasks whose ids were acknowledged",
                );
                context.judge(&rule::TSK_56, violation.or_else(|| payload_violation(params)));
                if let Some(task) = self.tasks.get(message.from, id) {
                    task.progress.note(params, message.at, NAMES);
                    task.progress.told();
                    task.note_keys(params, context);
                }
            }
            _ => {}
        }
    }

    fn answered(
        &mut self,
        message: &Message<'_>,
        request: &Request,
        result: &Value,
        context: &mut Context<'_>,
    ) {
        let method = &*request.method;
        let is_task = result_type(result) == "task";
        if is_about_task(method) {
            if is_undeclared(request) {
                let what = format!("{method} that does not declare the extension is answered");
                context.broken(&rule::TSK_54, what, "refuse it with -32021");
            }
            let what = "a result about a task that is not complete";
            let expected = "set resultType to complete; task is for the result that creates one";
            context.require(&rule::TSK_43, result_type(result) == "complete", what, expected);
        } else if is_task && method != "tools/call" {
            let what = format!("{method} is answered with a task");
            context.broken(&rule::TSK_43, what, "create tasks for tools/call alone");
        }
        match method {
            "tools/call" if is_task => self.created(message, request, result, context),
            "tasks/get" => self.got(message, request, result, context),
            "tasks/update" | "tasks/cancel" => {
                let members = result.as_object().into_iter().flat_map(|it| it.keys());
                let is_empty = members.into_iter().all(|name| matches!(&**name, "resultType" | "_meta"));
                let what = format!("{method} is answered with more than an acknowledgement");
                context.require(&rule::TSK_51, is_empty, &what, "answer with an empty result");
                self.acknowledged(request);
            }
            "tasks/result" => {
                let what = "tasks/result, which the extension does not have, is answered";
                context.broken(&rule::TSK_61, what, "refuse it with -32601");
            }
            "server/discover" => {
                let capabilities = result.get("capabilities").unwrap_or(&Value::Null);
                if declares(capabilities, &EXTENSION) || declares(capabilities, &["tasks"]) {
                    let what = "the tasks capability of an older revision is declared";
                    let expected = "declare the extension and no tasks capability";
                    context.require(&rule::TSK_61, !declares(capabilities, &["tasks"]), what, expected);
                }
            }
            _ => {}
        }
    }

    fn created(&mut self, message: &Message<'_>, request: &Request, task: &Value, context: &mut Context<'_>) {
        let what = "a task for a request that does not declare the extension";
        let expected = "answer with the result, or refuse the request with -32021";
        context.require(&rule::TSK_39, !is_undeclared(request), what, expected);
        context.kept(&rule::TSK_43);
        let id = text(task, "taskId");
        let is_known = id.is_some_and(|id| self.tasks.get(message.from, id).is_some());
        context.judge(&rule::TSK_10, id_violation(task, is_known));
        judge_shape(task, NAMES, context);
        if let Some(record) = id.and_then(|id| self.tasks.seen(message.from, id)) {
            let lifetime = task.get("ttlMs").and_then(Value::as_u64);
            *record = Task { created: Some((message.at, lifetime)), ..Task::default() };
            record.progress.note(task, message.at, NAMES);
        }
    }

    fn got(&mut self, message: &Message<'_>, request: &Request, task: &Value, context: &mut Context<'_>) {
        judge_shape(task, NAMES, context);
        judge_failure(task, context);
        let has_error = task.get("error").is_some_and(Value::is_object);
        if text(task, "status") == Some("failed") && !has_error && task.get("result").is_some() {
            let what = "a task with a result is failed";
            let expected = "let it be completed, also where the result has isError";
            context.broken(&rule::TSK_47, what, expected);
        } else {
            let violation = payload_violation(task);
            if violation.is_none() && task.get("result").is_some_and(|result| result.get("isError").is_some())
            {
                context.kept(&rule::TSK_47);
            }
            context.judge(&rule::TSK_46, violation);
        }
        let Some(record) = self.tasks.of_request(message.from, request) else {
            return;
        };
        record.found = true;
        if record.created.is_some() {
            context.kept(&rule::TSK_44);
        }
        record.progress.observe(task, request.at, message.at, NAMES, &rule::TSK_12, context);
        record.note_keys(task, context);
    }

    fn acknowledged(&mut self, request: &Request) {
        let Some(task) = text(&request.params, "taskId").and_then(|id| self.tasks.get(Role::Server, id))
        else {
            return;
        };
        let Some(Value::Object(responses)) = request.params.get("inputResponses") else { return };
        let known = responses.keys().filter(|key| task.keys.contains_key(*key));
        task.answered.extend(known.cloned());
    }

    fn refused(
        &mut self,
        message: &Message<'_>,
        request: &Request,
        code: Option<i64>,
        context: &mut Context<'_>,
    ) {
        let method = &*request.method;
        match code {
            Some(-32021) if is_about_task(method) && is_undeclared(request) => {
                context.kept(&rule::TSK_54);
            }
            Some(-32601) if method == "tasks/result" => context.kept(&rule::TSK_61),
            Some(-32602) if method == "tasks/get" && !is_undeclared(request) => {
                let task = text(&request.params, "taskId").and_then(|id| self.tasks.get(message.from, id));
                let Some((at, lifetime)) = task.and_then(|task| task.created.filter(|_| !task.found)) else {
                    return;
                };
                if lifetime.is_none_or(|lifetime| message.at < at.saturating_add(lifetime)) {
                    let what = "tasks/get does not find a task that was just created";
                    context.broken(&rule::TSK_44, what, "store a task before its id is sent");
                }
            }
            _ => {}
        }
    }
}

impl Task {
    /// Each key stands for the same request whenever it is shown.
    fn note_keys(&mut self, task: &Value, context: &mut Context<'_>) {
        let Some(Value::Object(requests)) = task.get("inputRequests") else { return };
        let mut is_same = true;
        for (key, request) in requests {
            let request = fingerprint(request);
            match self.keys.get(key) {
                Some(known) => is_same &= *known == request,
                None if self.keys.len() < MAX_KEYS && key.len() <= 256 => {
                    self.keys.insert(key.clone(), request);
                }
                None => {}
            }
        }
        let what = "a key of inputRequests stands for another request than before";
        context.require(&rule::TSK_48, is_same, what, "use a new key for each request of a task");
    }

    fn judge_update(&self, params: &Value, context: &mut Context<'_>) {
        let Some(Value::Object(responses)) = params.get("inputResponses") else { return };
        let is_complete = self.keys.len() < MAX_KEYS;
        // What the task wanted before the recording is not known.
        if self.keys.is_empty() || !is_complete {
            return;
        }
        let is_bare = |response: &Value| {
            response.is_object() && response.get("jsonrpc").is_none() && response.get("result").is_none()
        };
        let what = if responses.keys().all(|key| self.keys.contains_key(key)) {
            (!responses.values().all(is_bare))
                .then_some("a response to an input request that is no bare result")
        } else {
            Some("a key of inputResponses that the task does not have")
        };
        let expected = "answer open keys with the results of their methods";
        context.judge(&rule::TSK_50, what.map(|what| (what.to_owned(), expected)));
        let is_twice = responses.keys().any(|key| self.answered.contains(key));
        let what = "an input request that was answered is answered again";
        context.require(&rule::TSK_49, !is_twice, what, "answer each key once, however often it is shown");
    }
}

fn is_about_task(method: &str) -> bool {
    matches!(method, "tasks/get" | "tasks/update" | "tasks/cancel")
}

/// Whether the request declares neither the extension nor the tasks of older revisions, which it may still get.
fn is_undeclared(request: &Request) -> bool {
    let declared = request_capabilities(&request.params);
    declared.is_some_and(|it| !declares(it, &EXTENSION) && !declares(it, &["tasks"]))
}

/// What a task lacks that belongs to its status.
fn payload_violation(task: &Value) -> Option<Violation> {
    let member = match text(task, "status") {
        Some("input_required") => "inputRequests",
        Some("completed") => "result",
        Some("failed") => "error",
        _ => return None,
    };
    let has_it = task.get(member).is_some_and(Value::is_object);
    let what = format!("a task without the {member} that belongs to its status");
    violation_unless(has_it, &what, "send inputRequests, result or error with the status that it belongs to")
}
