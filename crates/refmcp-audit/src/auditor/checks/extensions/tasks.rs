//! Rules about tasks as the experimental feature of the protocol.

use std::collections::HashMap;

use refmcp_proto::revision::Tasks as Kind;
use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

use super::task_record::{
    EXTENSION, Names, Progress, Records, id_violation, is_final, judge_failure, judge_shape,
};
use crate::auditor::checks::values::{fingerprint, items, text};
use crate::auditor::checks::{Check, Context};
use crate::auditor::conversation::Request;
use crate::auditor::message::Message;
use crate::verdict::Role;

pub(in crate::auditor::checks) static RULES: &[&Rule] = &[
    &rule::TASK_13,
    &rule::TSK_01,
    &rule::TSK_02,
    &rule::TSK_03,
    &rule::TSK_04,
    &rule::TSK_07,
    &rule::TSK_09,
    &rule::TSK_10,
    &rule::TSK_11,
    &rule::TSK_12,
    &rule::TSK_13,
    &rule::TSK_15,
    &rule::TSK_17,
    &rule::TSK_18,
    &rule::TSK_19,
    &rule::TSK_20,
    &rule::TSK_21,
    &rule::TSK_22,
    &rule::TSK_23,
    &rule::TSK_24,
    &rule::TSK_25,
    &rule::TSK_27,
    &rule::TSK_28,
    &rule::TSK_31,
    &rule::TSK_32,
    &rule::TSK_38,
    &rule::TSK_62,
];

const NAMES: Names = Names { lifetime: "ttl", interval: "pollInterval" };

const RELATED: &str = "io.modelcontextprotocol/related-task";

/// Bytes of names of tools whose `taskSupport` is remembered.
const MAX_NAMES: usize = 64 << 10;

/// Polls of a task that requires input after which its result should have been asked for.
const INPUT_POLLS: u8 = 3;

#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct Tasks {
    tasks: Records<Task>,
    /// The tools that were listed, and whether they can or must be tasks.
    tools: HashMap<String, Support>,
    name_bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Support {
    Forbidden,
    Optional,
    Required,
}

#[derive(Debug, Default)]
struct Task {
    progress: Progress,
    /// The request that became the task.
    method: Option<String>,
    /// It was cancelled by tasks/cancel.
    cancelled: bool,
    /// What tasks/result returned, and when.
    outcome: Option<(u64, u64)>,
    /// The outcome is a result with isError.
    is_error: bool,
    /// tasks/result was sent.
    result_wanted: bool,
    /// Polls while input was required and tasks/result was not sent.
    input_polls: u8,
    /// When tasks/get found it first.
    found: Option<u64>,
    /// When tasks/list lacked it.
    unlisted: Option<u64>,
}

impl Check for Tasks {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        if message.revision.is_none_or(|revision| revision.rules().tasks != Kind::Experimental) {
            return;
        }
        if let Some((method, params)) = message.request() {
            self.asked(message, method, params, context);
        } else if let Some(("notifications/tools/list_changed", _)) = message.notification() {
            self.tools.clear();
        } else if let Some(("notifications/tasks/status", params)) = message.notification() {
            judge_unrelated(params, context);
            judge_shape(params, NAMES, context);
            if let Some(task) = text(params, "taskId").and_then(|id| self.tasks.get(message.from, id)) {
                task.progress.note(params, message.at, NAMES);
                task.progress.told();
            }
        } else if let Some((request, result)) = message.result() {
            self.answered(message, request, result, context);
        } else if let Some((request, error)) = message.error()
            && request.method == "tasks/cancel"
            && self.ended_before(message.from, request)
        {
            let is_right = error.get("code").and_then(Value::as_i64) == Some(-32602);
            let what = "tasks/cancel of an ended task is refused with another code";
            context.require(&rule::TSK_27, is_right, what, "refuse it with -32602");
        }
    }
}

impl Tasks {
    fn asked(&mut self, message: &Message<'_>, method: &str, params: &Value, context: &mut Context<'_>) {
        if let Some(names) = request_type(method) {
            self.asked_for_work(message, params, names, context);
        }
        if method.starts_with("tasks/") {
            judge_unrelated(params, context);
        }
        if matches!(method, "sampling/createMessage" | "elicitation/create") {
            judge_side_request(message, params, context);
        }
        let Some(task) = text(params, "taskId").and_then(|id| self.tasks.get(message.from.peer(), id)) else {
            return;
        };
        let needs_input = task.progress.status == "input_required";
        match method {
            "tasks/get" => {
                task.progress.poll(message.at, context);
                if needs_input && !task.result_wanted {
                    task.input_polls = task.input_polls.saturating_add(1);
                    if task.input_polls == INPUT_POLLS {
                        let what = "a task that requires input is polled, and its result not asked for";
                        let expected = "send tasks/result, on which the requests for input come";
                        context.broken(&rule::TSK_20, what, expected);
                    }
                }
            }
            "tasks/result" => {
                task.result_wanted = true;
                if needs_input {
                    context.kept(&rule::TSK_20);
                }
            }
            _ => task.progress.told(),
        }
    }

    /// A request that may become a task.
    fn asked_for_work(
        &self,
        message: &Message<'_>,
        params: &Value,
        names: &[&str],
        context: &mut Context<'_>,
    ) {
        let is_task = params.get("task").is_some();
        let Some(declared) = context.state.facts(message.from.peer()).declares(names) else { return };
        if is_task {
            let what = "task for a request whose type the receiver does not list in tasks.requests";
            let expected = "send task for the types that the receiver lists";
            context.require(&rule::TSK_02, declared, what, expected);
        }
        let Some(support) = text(params, "name").and_then(|name| self.tools.get(name)) else { return };
        if declared && message.from == Role::Client {
            let is_allowed = !is_task || *support != Support::Forbidden;
            let what = "a tool that forbids tasks, or does not say, is called as a task";
            let expected = "leave task out unless taskSupport is optional or required";
            context.require(&rule::TSK_03, is_allowed, what, expected);
            if *support == Support::Required {
                let what = "a tool that requires a task is called without one";
                let expected = "send task where taskSupport is required";
                context.require(&rule::TSK_04, is_task, what, expected);
            }
        }
    }

    fn answered(
        &mut self,
        message: &Message<'_>,
        request: &Request,
        result: &Value,
        context: &mut Context<'_>,
    ) {
        match &*request.method {
            "tools/list" => self.listed_tools(result),
            "tasks/get" => self.got(message, request, result, context),
            "tasks/result" => self.ended(message, request, result, context),
            "tasks/cancel" => self.cancelled(message, request, result, context),
            "tasks/list" => self.listed(message, request, result, context),
            method => {
                if request_type(method).is_some() {
                    self.worked(message, request, result, context);
                }
                if let Some(wanted) = related(&request.params)
                    && result.get("task").is_none()
                {
                    let what = "a response that does not name the task that its request names";
                    let expected = "repeat the related-task of the request in _meta of the result";
                    context.require(&rule::TSK_22, related(result) == Some(wanted), what, expected);
                }
            }
        }
    }

    fn listed_tools(&mut self, result: &Value) {
        for tool in items(result, "tools") {
            let Some(name) = text(tool, "name") else { continue };
            let support = match tool.get("execution").and_then(|it| text(it, "taskSupport")) {
                Some("optional") => Support::Optional,
                Some("required") => Support::Required,
                _ => Support::Forbidden,
            };
            if !self.tools.contains_key(name) {
                self.name_bytes += name.len();
            }
            if self.name_bytes <= MAX_NAMES {
                self.tools.insert(name.to_owned(), support);
            }
        }
    }

    /// The answer to a request that may have become a task.
    fn worked(
        &mut self,
        message: &Message<'_>,
        request: &Request,
        result: &Value,
        context: &mut Context<'_>,
    ) {
        let task = result.get("task").filter(|task| task.get("taskId").is_some());
        let is_flat = text(result, "resultType") == Some("task") || result.get("taskId").is_some();
        if message.from == Role::Server
            && context.state.client.declares(&EXTENSION) == Some(true)
            && task.is_none()
        {
            let what = "a task of the extension, which means nothing in this revision";
            let expected = "create tasks where the request has task, or answer with the result";
            context.require(&rule::TSK_62, !is_flat, what, expected);
        }
        let declared =
            request_type(&request.method).and_then(|names| context.state.facts(message.from).declares(names));
        let wanted = request.params.get("task").is_some();
        if wanted && declared == Some(false) {
            let what = "a task of a request type that is not listed in tasks.requests";
            let expected = "ignore task there, and answer with the result";
            context.require(&rule::TSK_07, task.is_none(), what, expected);
        }
        match task {
            Some(_) if !wanted => {
                let what = "a request without task becomes a task";
                context.broken(&rule::TSK_01, what, "create tasks for requests that have task");
            }
            Some(task) => self.created(message, request, task, declared, context),
            None if wanted && declared == Some(true) && !is_flat => {
                let support = text(&request.params, "name").and_then(|name| self.tools.get(name));
                let is_certain = match message.from {
                    Role::Client => true,
                    Role::Server => matches!(support, Some(Support::Optional | Support::Required)),
                };
                if is_certain {
                    let what = "a request with task is answered with the result of its work";
                    context.broken(&rule::TSK_09, what, "answer with the task, and keep the result");
                }
            }
            None => {}
        }
    }

    fn created(
        &mut self,
        message: &Message<'_>,
        request: &Request,
        task: &Value,
        declared: Option<bool>,
        context: &mut Context<'_>,
    ) {
        if declared == Some(true) {
            context.kept(&rule::TSK_01);
        }
        context.kept(&rule::TSK_09);
        let id = text(task, "taskId");
        let is_known = id.is_some_and(|id| self.tasks.get(message.from, id).is_some());
        context.judge(&rule::TSK_10, id_violation(task, is_known));
        let is_working = text(task, "status") == Some("working");
        let what = "a new task that is not working";
        context.require(&rule::TSK_11, is_working, what, "begin with the status working");
        judge_shape(task, NAMES, context);
        if let Some(record) = id.and_then(|id| self.tasks.seen(message.from, id)) {
            *record = Task { method: Some(request.method.clone()), ..Task::default() };
            record.progress.note(task, message.at, NAMES);
        }
    }

    fn got(&mut self, message: &Message<'_>, request: &Request, result: &Value, context: &mut Context<'_>) {
        judge_unrelated(result, context);
        judge_target(request, result, context);
        judge_shape(result, NAMES, context);
        judge_failure(result, context);
        let stream = context.state.stream(message.stream).filter(|_| context.state.has_streams());
        if let Some(stream) = stream.filter(|stream| stream.status.is_some()) {
            let mut types = stream.response_headers.iter().filter(|(name, _)| name == "content-type");
            let is_stream = types.any(|(_, value)| value.starts_with("text/event-stream"));
            let what = "tasks/get is answered on an SSE stream";
            context.require(&rule::TSK_25, !is_stream, what, "answer it with JSON");
        }
        let Some(task) = self.tasks.of_request(message.from, request) else {
            return;
        };
        let status = text(result, "status").unwrap_or_default();
        match task.outcome {
            Some((_, at)) if request.at > at && !is_final(status) => {
                let what = "tasks/result was answered before the task ended";
                context.broken(&rule::TSK_17, what, "answer tasks/result once the task has ended");
            }
            Some((_, at)) if request.at > at => context.kept(&rule::TSK_17),
            _ => {}
        }
        if task.outcome.is_none() || is_final(status) {
            let ending = if task.cancelled { &rule::TSK_28 } else { &rule::TSK_12 };
            task.progress.observe(result, request.at, message.at, NAMES, ending, context);
        }
        task.judge_error(context);
        if task.unlisted.take().is_some_and(|at| request.at > at) {
            let what = "tasks/get finds a task that tasks/list does not have";
            context.broken(&rule::TSK_32, what, "list every task of the requestor");
        }
        task.found.get_or_insert(message.at);
    }

    fn ended(&mut self, message: &Message<'_>, request: &Request, result: &Value, context: &mut Context<'_>) {
        let id = text(&request.params, "taskId");
        let what = "the result of tasks/result does not name its task in _meta";
        let expected = "add related-task with the taskId to _meta of the result";
        context.require(&rule::TSK_19, id.is_some() && related(result) == id, what, expected);
        let Some(task) = id.and_then(|id| self.tasks.seen(message.from, id)) else { return };
        let mut plain = result.clone();
        if let Value::Object(members) = &mut plain {
            members.remove("_meta");
        }
        let outcome = fingerprint(&plain);
        let is_tool = task.method.as_deref() == Some("tools/call");
        let is_result = match task.method.as_deref() {
            Some("tools/call") => plain.get("content").is_some_and(Value::is_array),
            Some("sampling/createMessage") => plain.get("model").is_some() && plain.get("content").is_some(),
            Some("elicitation/create") => plain.get("action").is_some(),
            _ => true,
        };
        let violation = match task.outcome {
            Some((before, _)) if before != outcome => Some("tasks/result returns something else than before"),
            _ if !is_result => Some("tasks/result does not return what the request of its task returns"),
            _ => None,
        };
        let expected = "return exactly what the request would have returned";
        context.judge(&rule::TSK_18, violation.map(|what| (what.to_owned(), expected)));
        task.outcome = Some((outcome, message.at));
        task.is_error = is_tool && plain.get("isError").and_then(Value::as_bool) == Some(true);
        task.judge_error(context);
    }

    fn cancelled(
        &mut self,
        message: &Message<'_>,
        request: &Request,
        result: &Value,
        context: &mut Context<'_>,
    ) {
        judge_unrelated(result, context);
        if self.ended_before(message.from, request) {
            let what = "tasks/cancel of an ended task is answered with a result";
            context.broken(&rule::TSK_27, what, "refuse it with -32602");
            return;
        }
        judge_shape(result, NAMES, context);
        let is_cancelled = text(result, "status") == Some("cancelled");
        let what = "tasks/cancel is answered with a task that is not cancelled";
        context.require(&rule::TSK_28, is_cancelled, what, "cancel the task before answering");
        if let Some(task) = self.tasks.of_request(message.from, request) {
            task.cancelled = is_cancelled;
            task.progress.note(result, message.at, NAMES);
        }
    }

    fn listed(
        &mut self,
        message: &Message<'_>,
        request: &Request,
        result: &Value,
        context: &mut Context<'_>,
    ) {
        judge_unrelated(result, context);
        let next = result.get("nextCursor");
        let what = "nextCursor of tasks/list is no string";
        let expected = "leave nextCursor out on the last page";
        context.require(&rule::TSK_31, next.is_none_or(Value::is_string), what, expected);
        let listed = items(result, "tasks");
        for task in listed {
            judge_shape(task, NAMES, context);
        }
        if next.is_some() || text(&request.params, "cursor").is_some() {
            return;
        }
        for (id, task) in self.tasks.of(message.from) {
            if task.found.is_some_and(|found| request.at > found) {
                if listed.iter().any(|it| text(it, "taskId") == Some(id)) {
                    context.kept(&rule::TSK_32);
                } else {
                    // It may have expired; that tasks/get still finds it would say otherwise.
                    task.unlisted = Some(message.at);
                }
            }
        }
    }

    /// Whether the task of a request had ended before the request was sent.
    fn ended_before(&mut self, executor: Role, request: &Request) -> bool {
        let task = text(&request.params, "taskId").and_then(|id| self.tasks.get(executor, id));
        task.and_then(|task| task.progress.ended).is_some_and(|ended| request.at > ended)
    }
}

impl Task {
    /// A result with isError fails a task.
    fn judge_error(&self, context: &mut Context<'_>) {
        if self.is_error && self.progress.ended.is_some() {
            let what = "a task whose result has isError is completed";
            let is_failed = self.progress.status != "completed";
            context.require(&rule::TASK_13, is_failed, what, "let such a task be failed");
        }
    }
}

/// What leads to the declaration of a request type that may become a task.
fn request_type(method: &str) -> Option<&'static [&'static str]> {
    Some(match method {
        "tools/call" => &["tasks", "requests", "tools", "call"],
        "sampling/createMessage" => &["tasks", "requests", "sampling", "createMessage"],
        "elicitation/create" => &["tasks", "requests", "elicitation", "create"],
        _ => return None,
    })
}

/// The task that `_meta` of parameters or of a result names.
fn related(value: &Value) -> Option<&str> {
    text(value.get("_meta")?.get(RELATED)?, "taskId")
}

/// Judges a message that names its task by its parameters.
fn judge_unrelated(value: &Value, context: &mut Context<'_>) {
    let is_named = value.get("_meta").is_some_and(|meta| meta.get(RELATED).is_some());
    let what = "related-task on a message that names its task already";
    context.require(&rule::TSK_23, !is_named, what, "leave related-task out here");
}

/// Judges a response to a request that names one task by its parameters, and another in `_meta`.
fn judge_target(request: &Request, result: &Value, context: &mut Context<'_>) {
    let id = text(&request.params, "taskId");
    if related(&request.params).is_some_and(|other| Some(other) != id) {
        let what = "a response that tells of another task than params.taskId names";
        let expected = "tell of the task in params.taskId, whatever _meta says";
        context.require(&rule::TSK_24, text(result, "taskId") == id, what, expected);
    }
}

/// A request on the stream of tasks/result is caused by that task.
fn judge_side_request(message: &Message<'_>, params: &Value, context: &mut Context<'_>) {
    let mut waiting = context.state.unanswered(message.from.peer()).map(|(_, request)| request);
    let carrier = waiting.find(|request| {
        context.state.has_streams() && request.stream == message.stream && request.method == "tasks/result"
    });
    let Some(id) = carrier.and_then(|request| text(&request.params, "taskId")) else { return };
    let what = "a request on the stream of tasks/result that does not name the task";
    let expected = "add related-task with the taskId to _meta of the request";
    context.require(&rule::TSK_21, related(params) == Some(id), what, expected);
}
