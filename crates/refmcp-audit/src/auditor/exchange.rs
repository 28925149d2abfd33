//! Requests without a response, and HTTP requests with theirs.

use refmcp_proto::jsonrpc::code;
use refmcp_proto::model::keys;
use refmcp_proto::revision::{Lifecycle, Revision};
use serde_json::Value;

use super::message::{Body, Message};
use crate::recording::Header;
use crate::verdict::Role;

/// A request without a response.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) from: Role,
    pub(crate) method: String,
    pub(crate) params: Value,
    pub(crate) at: u64,
    pub(crate) stream: Option<u64>,
    /// The revision that it is judged by.
    pub(crate) revision: Option<Revision>,
    /// Its sender has cancelled it.
    pub(crate) cancelled: bool,
    /// Its HTTP request was refused, failed or ended without the response: its sender may repeat it.
    pub(crate) is_lost: bool,
    /// Its HTTP request was refused: nothing on another stream answers it.
    pub(crate) is_refused: bool,
}

impl Request {
    /// Whether it belongs to no session.
    pub(crate) fn is_stateless(&self) -> bool {
        self.revision.is_some_and(|revision| revision.lifecycle() == Lifecycle::PerRequest)
    }
}

/// An HTTP request and its response.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stream {
    pub(crate) method: String,
    pub(crate) headers: Vec<Header>,
    pub(crate) status: Option<u16>,
    pub(crate) response_headers: Vec<Header>,
    /// Requests of the client in its body.
    pub(crate) requests: usize,
    /// Notifications and responses of the client in its body.
    pub(crate) other_messages: usize,
    /// Responses of the server on it.
    pub(crate) responses: usize,
    /// Whether its body has `initialize`.
    pub(crate) opens_session: bool,
    /// The revision that its body is judged by: for `initialize`, the one that the client wants.
    pub(crate) revision: Option<Revision>,
}

impl Stream {
    /// The value of a header field of the request.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// The revision that the head names.
    pub(crate) fn named_revision(&self) -> Option<Revision> {
        self.header("mcp-protocol-version")?.parse().ok()
    }

    /// The same, where it is one without sessions.
    pub(super) fn stateless_revision(&self) -> Option<Revision> {
        self.named_revision().filter(|revision| revision.lifecycle() == Lifecycle::PerRequest)
    }

    /// Whether the response is a stream of events.
    pub(crate) fn is_sse(&self) -> bool {
        self.status == Some(200) && is_content(&self.response_headers, "text/event-stream")
    }

    /// Whether what the response has is meant as messages: a text beside them, such as `Accepted`, is none.
    pub(crate) fn has_messages(&self) -> bool {
        ["application/json", "text/event-stream"].iter().any(|kind| is_content(&self.response_headers, kind))
    }

    /// Takes note of a message that was checked.
    pub(super) fn take(&mut self, message: &Message<'_>) {
        match (message.from, &message.body) {
            (Role::Client, Body::Request { method, .. }) => {
                self.requests += 1;
                self.opens_session |= *method == "initialize";
                self.revision = message.http_revision(self);
            }
            (Role::Client, _) => {
                self.other_messages += 1;
                self.revision = message.http_revision(self);
            }
            (Role::Server, Body::Response { .. }) => self.responses += 1,
            (Role::Server, _) => {}
        }
    }
}

/// The value of a header field.
pub(crate) fn header<'a>(headers: &'a [Header], name: &str) -> Option<&'a str> {
    headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
}

/// Whether the content is of this type, whatever its parameters.
pub(crate) fn is_content(headers: &[Header], wanted: &str) -> bool {
    let kind = header(headers, "content-type").and_then(|value| value.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case(wanted))
}

/// Whether a response is one that only a server without sessions gives.
pub(crate) fn shows_stateless(result: &Result<&Value, &Value>) -> bool {
    match result {
        Ok(result) => {
            let named = result.get("_meta").and_then(|meta| meta.get(keys::SERVER_INFO));
            named.or(result.get("resultType")).or(result.get("supportedVersions")).is_some()
        }
        Err(error) => matches!(
            error.get("code").and_then(Value::as_i64),
            Some(code::HEADER_MISMATCH | code::MISSING_CAPABILITY | code::UNSUPPORTED_VERSION)
        ),
    }
}
