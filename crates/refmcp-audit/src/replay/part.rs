//! Single messages: whose answer each one is, and to which request of the client it belongs.

use serde_json::Value;
use serde_json::value::RawValue;

use super::conversation::{Step, Stream};
use crate::verdict::Role;

/// The member of `_meta` that names a subscription.
pub(super) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// A message; one of a batch by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The step that it belongs to.
    pub step: usize,
    /// The number of its line in the recording.
    pub line: usize,
    /// The connection and, over HTTP, the request that it belongs to.
    pub stream: Stream,
    /// Who sent it.
    pub from: Role,
    /// The text.
    pub text: String,
    /// The same as a value; null where it is no JSON.
    pub value: Value,
    /// What it is.
    pub kind: PartKind,
    /// The request of the client, among the parts, that it belongs to: the one that it answers, reports the progress of, or
    /// came with over HTTP.
    pub owner: Option<usize>,
    /// Whether nothing but the HTTP request that it came with says so.
    pub is_owned_by_stream: bool,
    /// The request of the server, among the parts, that it answers.
    pub answers: Option<usize>,
}

/// What a message is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartKind {
    /// A request.
    Request {
        /// Its id.
        id: Value,
        /// Its method.
        method: String,
    },
    /// A notification.
    Notification {
        /// Its method.
        method: String,
    },
    /// A response.
    Response {
        /// The id of the request; null where there is none.
        id: Value,
    },
    /// No message.
    Other,
}

/// The texts of the messages in a message or a batch, and their values.
pub(super) fn split(text: &str) -> Vec<(String, Value)> {
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    match serde_json::from_str::<Vec<&RawValue>>(text) {
        Ok(batch) => batch.iter().map(|part| (part.get().to_owned(), value(part.get()))).collect(),
        Err(_) => vec![(text.to_owned(), value(text))],
    }
}

/// A message as it stands in a step, which does not know yet where it belongs.
pub(super) fn classified(at: usize, step: &Step, text: String, value: Value) -> Part {
    let id = || value.get("id").cloned();
    let method = value.get("method").and_then(Value::as_str).map(str::to_owned);
    let is_answer = value.get("result").is_some() || value.get("error").is_some();
    let kind = match (method, id()) {
        (Some(method), Some(id)) => PartKind::Request { id, method },
        (Some(method), None) => PartKind::Notification { method },
        (None, id) if is_answer => PartKind::Response { id: id.unwrap_or_default() },
        _ => PartKind::Other,
    };
    let (line, stream, from) = (step.line, step.stream, step.from);
    Part {
        step: at,
        line,
        stream,
        from,
        text,
        value,
        kind,
        owner: None,
        is_owned_by_stream: false,
        answers: None,
    }
}

impl Part {
    /// The method of a request or notification.
    pub fn method(&self) -> Option<&str> {
        match &self.kind {
            PartKind::Request { method, .. } | PartKind::Notification { method } => Some(method),
            _ => None,
        }
    }

    /// Whether it is a request.
    pub fn is_request(&self) -> bool {
        matches!(self.kind, PartKind::Request { .. })
    }

    /// Whether it is a response.
    pub fn is_response(&self) -> bool {
        matches!(self.kind, PartKind::Response { .. })
    }

    /// The parameters.
    pub(super) fn params(&self) -> Option<&Value> {
        self.value.get("params")
    }

    /// The token under which a request wants progress.
    pub(super) fn requested_token(&self) -> Option<&Value> {
        self.params()?.get("_meta")?.get("progressToken")
    }

    /// The token of a progress notification.
    pub(super) fn progress_token(&self) -> Option<&Value> {
        self.params().filter(|_| self.method() == Some("notifications/progress"))?.get("progressToken")
    }

    /// The request that a notification cancels.
    pub(super) fn cancelled(&self) -> Option<&Value> {
        self.params().filter(|_| self.method() == Some("notifications/cancelled"))?.get("requestId")
    }

    /// The id of the `subscriptions/listen` request that a notification belongs to.
    pub(super) fn subscription(&self) -> Option<&Value> {
        self.params()?.get("_meta")?.get(SUBSCRIPTION)
    }

    /// What is asked for by a request, beside its method: the name of a tool or prompt, the URI of a resource.
    pub(super) fn subject(&self) -> Option<&str> {
        let params = self.params()?;
        let of = params.get("ref").unwrap_or(params);
        ["name", "uri", "taskId"].iter().find_map(|member| of.get(member)?.as_str())
    }

    /// The request in short, for people.
    pub(super) fn label(&self) -> String {
        match (self.method(), self.subject()) {
            (Some(method), Some(subject)) => format!("{method} {subject}"),
            (Some(method), None) => method.to_owned(),
            (None, _) if self.is_response() => "a response".to_owned(),
            (None, _) => "input that is no message".to_owned(),
        }
    }
}
