//! What a recorded client asked for, and what its server sent then.

use std::collections::HashMap;

use serde_json::Value;

use super::HttpAnswer;
use crate::replay::conversation::{Content, RecordedConversation};
use crate::replay::json_text::string;
use crate::replay::part::{Part, PartKind};
use crate::verdict::Role;

/// Names of what a recording has that an error lists, and the characters of each.
const MAX_LISTED: (usize, usize) = (12, 80);

/// A request or notification of the recorded client, and what its server sent then.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) is_request: bool,
    pub(super) method: String,
    pub(super) subject: Subject,
    /// Its parameters, without `_meta`.
    pub(super) params: Value,
    /// The revision that it was made in: its own, or that of its session.
    pub(super) version: Option<String>,
    pub(super) line: usize,
    pub(super) acts: Vec<Act>,
    pub(super) is_answered: bool,
    pub(super) status: Option<u16>,
    pub(super) is_stream: bool,
    pub(super) has_session: bool,
}

/// What a request asks for: without it, a request is for the same whatever its parameters are.
pub(super) type Subject = Vec<String>;

/// A message of the recorded server.
#[derive(Debug)]
pub(super) struct Act {
    pub(super) text: String,
    pub(super) event_id: Option<String>,
    pub(super) channel: Channel,
    pub(super) kind: ActKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ActKind {
    Response,
    /// A request of the server; what follows it may wait for the client's response.
    Request {
        is_answered: bool,
    },
    Other,
}

/// Where a message belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channel {
    /// To the request that brought it about.
    Own,
    /// To another request, which is still open: a subscription.
    Of(usize),
    /// To no request.
    General,
}

impl Exchange {
    pub(super) fn http_answer(&self) -> HttpAnswer {
        HttpAnswer { status: self.status, is_stream: self.is_stream, has_session: self.has_session }
    }

    /// The request in short.
    pub(super) fn label(&self) -> String {
        let mut label = self.method.clone();
        for word in &self.subject {
            label += " ";
            label += word;
        }
        shortened(&label)
    }
}

/// The exchanges of a conversation.
pub(super) fn add(conversation: &RecordedConversation, exchanges: &mut Vec<Exchange>) {
    let mut of_part: HashMap<usize, usize> = HashMap::new();
    let agreed =
        conversation.server_parts().find_map(|(_, part)| part.value.pointer("/result/protocolVersion"));
    let agreed = agreed.and_then(Value::as_str).map(str::to_owned);
    // The exchange that came last, which brings about what belongs to no request.
    let mut last = None;
    for (at, part) in conversation.parts.iter().enumerate() {
        match (part.from, &part.kind) {
            (Role::Client, PartKind::Request { method, .. } | PartKind::Notification { method }) => {
                let params = part.params().cloned().unwrap_or_default();
                let head = conversation.response_head(part).filter(|_| conversation.transport == "http");
                let field =
                    |name: &str| head.and_then(|(_, fields)| fields.iter().find(|(known, _)| known == name));
                let is_events = |value: &str| value.starts_with("text/event-stream");
                of_part.insert(at, exchanges.len());
                last = Some(exchanges.len());
                exchanges.push(Exchange {
                    is_request: part.is_request(),
                    method: method.clone(),
                    subject: subject(&params),
                    params: without_meta(&params),
                    version: own_version(&params).map(str::to_owned).or_else(|| agreed.clone()),
                    line: part.line,
                    acts: Vec::new(),
                    is_answered: false,
                    status: head.map(|(status, _)| status),
                    is_stream: field("content-type").is_some_and(|(_, value)| is_events(value)),
                    // A recording of another transport does not know; sessions are the rule.
                    has_session: head.is_none() || field("mcp-session-id").is_some(),
                });
            }
            (Role::Client, _) => {
                last = part.owner.and_then(|owner| of_part.get(&owner).copied()).or(last);
            }
            (Role::Server, kind) => {
                let owner = part.owner.and_then(|owner| of_part.get(&owner).copied());
                let is_open = |at: usize| exchanges.get(at).is_some_and(|it| !it.is_answered);
                let is_late = owner.is_some_and(|owner| Some(owner) != last && part.subscription().is_some());
                let (to, channel) = match (owner, last) {
                    (Some(owner), Some(last)) if is_late && !part.is_response() => (last, Channel::Of(owner)),
                    (Some(owner), _) if is_open(owner) => (owner, Channel::Own),
                    (_, Some(last)) => (last, Channel::General),
                    // Nothing brings it about.
                    (_, None) => continue,
                };
                let kind = match kind {
                    PartKind::Response { .. } if owner.is_some() => ActKind::Response,
                    PartKind::Request { .. } => {
                        ActKind::Request { is_answered: is_answered(conversation, at) }
                    }
                    // A response to nothing cannot be answered again.
                    PartKind::Response { .. } => continue,
                    _ => ActKind::Other,
                };
                let event_id = match conversation.steps.get(part.step).map(|step| &step.content) {
                    Some(Content::Message { event_id, .. }) => event_id.clone(),
                    _ => None,
                };
                if let Some(exchange) = exchanges.get_mut(to) {
                    exchange.is_answered |= kind == ActKind::Response;
                    exchange.acts.push(Act { text: part.text.clone(), event_id, channel, kind });
                }
            }
        }
    }
}

/// Whether the recorded client answered a request of the server before the server sent more for the same.
fn is_answered(conversation: &RecordedConversation, request: usize) -> bool {
    conversation.client_parts().any(|(_, part): (usize, &Part)| part.answers == Some(request))
}

/// What a request asks for.
pub(super) fn subject(params: &Value) -> Subject {
    let members =
        ["/name", "/uri", "/ref/name", "/ref/uri", "/argument/name", "/taskId", "/cursor", "/requestState"];
    let texts = members.iter().filter_map(|member| params.pointer(member)?.as_str());
    texts.map(str::to_owned).collect()
}

/// The revision that a request names.
pub(super) fn own_version(params: &Value) -> Option<&str> {
    params.get("_meta")?.get("io.modelcontextprotocol/protocolVersion")?.as_str()
}

/// Parameters that are compared. `{}` is the same as none.
pub(super) fn without_meta(params: &Value) -> Value {
    let mut params = params.clone();
    if let Some(members) = params.as_object_mut() {
        members.remove("_meta");
    }
    if params.as_object().is_some_and(serde_json::Map::is_empty) { Value::Null } else { params }
}

/// Names, each once.
pub(super) fn listed(names: impl Iterator<Item = String>) -> String {
    let mut known: Vec<String> = Vec::new();
    for name in names.map(|name| shortened(&name)) {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    let left = known.len().saturating_sub(MAX_LISTED.0);
    known.truncate(MAX_LISTED.0);
    match (known.is_empty(), left) {
        (true, _) => "no requests".to_owned(),
        (false, 0) => known.join(", "),
        (false, left) => format!("{} and {left} more", known.join(", ")),
    }
}

pub(super) fn shortened(text: &str) -> String {
    let text = string(text).unwrap_or_else(|| text.to_owned());
    match text.char_indices().nth(MAX_LISTED.1) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
