//! What the recorded client did, in its order, and the numbers of HTTP requests here.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{GET_STREAM, ReplayTransport};
use crate::recording::Header;
use crate::replay::conversation::{Content, NEAR, RecordedConversation, Step, Stream};
use crate::replay::part::Part;
use crate::verdict::Role;

/// Header fields that belong to one connection or machine; those whose values are masked are not sent again either.
pub(super) const OWN_FIELDS: [&str; 11] = [
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "host",
    "keep-alive",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// What the recorded client did.
#[derive(Debug)]
pub(super) struct Item {
    /// The messages of the recording that came before it.
    pub(super) parts_before: usize,
    /// The steps of the recording that came before it.
    pub(super) steps_before: usize,
    pub(super) stream: u64,
    pub(super) what: ItemKind,
}

#[derive(Debug)]
pub(super) enum ItemKind {
    /// A message by its part, or other input; with the headers of the recording where there are any.
    Send { part: Option<usize>, text: String, headers: Option<Vec<Header>> },
    /// An HTTP request without a body.
    Request { method: String, headers: Option<Vec<Header>> },
    /// The client left a stream.
    Leave,
}

/// A plan of what is to be sent.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    recorded: &'a RecordedConversation,
    over: ReplayTransport,
    pub(super) items: Vec<Item>,
    /// Streams here by those of the recording.
    pub(super) streams: HashMap<Stream, u64>,
    pub(super) next_stream: u64,
}

impl<'a> Plan<'a> {
    pub(super) fn new(recorded: &'a RecordedConversation, over: ReplayTransport) -> Self {
        let mut plan = Self { recorded, over, items: Vec::new(), streams: HashMap::new(), next_stream: 1 };
        plan.make();
        plan
    }

    /// Whether heads and streams are those of the recording.
    pub(super) fn has_heads(&self) -> bool {
        self.over == ReplayTransport::Http && self.recorded.transport == "http"
    }

    fn make(&mut self) {
        let recorded = self.recorded;
        let has_heads = self.has_heads();
        for (at, step) in recorded.steps.iter().enumerate() {
            let stream = self.stream_of(step.stream);
            if step.from == Role::Server {
                continue;
            }
            let part = recorded.parts.partition_point(|part| part.step < at);
            let part = Some(part).filter(|part| recorded.parts.get(*part).is_some_and(|it| it.step == at));
            let headers = || has_heads.then(|| request_head(recorded, at));
            let what = match &step.content {
                Content::Message { text, .. } => {
                    ItemKind::Send { part, text: text.clone(), headers: headers() }
                }
                // What was too long to be kept cannot be sent again.
                Content::Invalid(bytes) if !bytes.is_empty() => {
                    let text = String::from_utf8_lossy(bytes).into_owned();
                    ItemKind::Send { part: None, text, headers: headers() }
                }
                Content::Request { method, headers } if has_heads && !has_body(recorded, at) => {
                    ItemKind::Request { method: method.clone(), headers: Some(headers.clone()) }
                }
                Content::Ended if has_heads => ItemKind::Leave,
                _ => continue,
            };
            let is_initialized = part.and_then(|part| recorded.parts.get(part)).and_then(Part::method)
                == Some("notifications/initialized");
            self.add(at, stream, what);
            if self.over == ReplayTransport::Http && !has_heads && is_initialized {
                let method = "GET".to_owned();
                self.add(at + 1, GET_STREAM, ItemKind::Request { method, headers: None });
            }
        }
        if self.over == ReplayTransport::Http && !has_heads {
            let (method, stream) = ("DELETE".to_owned(), self.next_stream);
            self.next_stream += 1;
            self.add(recorded.steps.len(), stream, ItemKind::Request { method, headers: None });
        }
    }

    fn add(&mut self, steps_before: usize, stream: u64, what: ItemKind) {
        let parts_before = self.recorded.parts.partition_point(|part| part.step < steps_before);
        self.items.push(Item { parts_before, steps_before, stream, what });
    }

    /// The number that a stream of the recording has here. Numbers of several connections may be the same.
    fn stream_of(&mut self, stream: Stream) -> u64 {
        let has_numbers = self.has_heads() && stream.1.is_some();
        if has_numbers && stream.1 == Some(GET_STREAM) {
            return GET_STREAM;
        }
        let next = self.next_stream;
        match has_numbers.then(|| self.streams.get(&stream)).flatten() {
            Some(known) => *known,
            None => {
                self.next_stream += 1;
                if has_numbers {
                    self.streams.insert(stream, next);
                }
                next
            }
        }
    }
}

/// The fields of the head before a body.
fn request_head(recorded: &RecordedConversation, body: usize) -> Vec<Header> {
    let Some(stream) = recorded.steps.get(body).map(|step| step.stream) else { return Vec::new() };
    let before = recorded.steps.get(..body).unwrap_or_default().iter().rev().take(NEAR);
    let mut heads = before.filter(|step| step.stream == stream).filter_map(|step| match &step.content {
        Content::Request { headers, .. } => Some(headers.clone()),
        _ => None,
    });
    heads.next().unwrap_or_default()
}

/// Whether a message of the client follows a head.
fn has_body(recorded: &RecordedConversation, head: usize) -> bool {
    let Some((step, rest)) = recorded.steps.get(head..).and_then(<[Step]>::split_first) else { return false };
    let mut same = rest.iter().take(NEAR).filter(|it| it.stream == step.stream && it.from == Role::Client);
    same.next().is_some_and(|it| matches!(it.content, Content::Message { .. } | Content::Invalid(_)))
}

/// What is answered to a request that the recorded client was not asked.
pub(super) fn reply(id: &Value, method: &str) -> String {
    match method {
        "ping" => json!({ "jsonrpc": "2.0", "id": id, "result": {} }),
        _ => {
            let error =
                json!({ "code": -32601, "message": "the client of the recording was not asked this" });
            json!({ "jsonrpc": "2.0", "id": id, "error": error })
        }
    }
    .to_string()
}
