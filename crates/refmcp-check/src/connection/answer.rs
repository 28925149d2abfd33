//! What comes back for something that was sent.

use refmcp_proto::jsonrpc::excerpt;
use serde_json::Value;

use crate::report::Exchange;

/// Until when an answer is read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wants {
    /// Until the response with this id.
    Response(Value),
    /// Until the responses with these ids, in any order, each of its own or all in one batch.
    Responses(Vec<Value>),
    /// Until the first message, whatever it is.
    Message,
    /// Until the first event or line, be it a message or not.
    Anything,
    /// Until the end of an HTTP response.
    Body,
    /// Over HTTP, until the head of the response. The body is read only where it is an error.
    Head,
}

/// What came back.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    /// What was sent and what came back, for people.
    pub(crate) exchange: Exchange,
    /// Over HTTP, the status.
    pub(crate) status: Option<u16>,
    /// Over HTTP, the header fields, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// All messages, in their order; those of a batch one by one.
    pub(crate) messages: Vec<Value>,
    /// The ids of the SSE events that carried them.
    pub(crate) event_ids: Vec<String>,
    /// Whether messages came in an array.
    pub(crate) batch: bool,
    /// What came and is no message.
    pub(crate) junk: Vec<String>,
    /// Why nothing more comes.
    pub(crate) ended: Option<String>,
    /// Whether the time was over before what was wanted came.
    pub(crate) late: bool,
}

impl Answer {
    /// The response with an id.
    pub(crate) fn response(&self, id: &Value) -> Option<&Value> {
        self.messages.iter().find(|message| is_response(message) && message.get("id") == Some(id))
    }

    /// The result of the response with an id.
    pub(crate) fn result(&self, id: &Value) -> Option<&Value> {
        self.response(id)?.get("result")
    }

    /// The error of the response with an id, or of one that names none.
    pub(crate) fn error(&self, id: &Value) -> Option<&Value> {
        let of_request = self.response(id).and_then(|response| response.get("error"));
        of_request.or_else(|| self.nameless().and_then(|response| response.get("error")))
    }

    /// A response without an id, or with null for one.
    pub(crate) fn nameless(&self) -> Option<&Value> {
        self.messages.iter().find(|it| is_response(it) && it.get("id").is_none_or(Value::is_null))
    }

    pub(crate) fn error_code(&self, id: &Value) -> Option<i64> {
        self.error(id)?.get("code")?.as_i64()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// Whether the HTTP status says that the request is refused.
    pub(crate) fn is_refused(&self) -> bool {
        self.status.is_some_and(|status| (400..500).contains(&status))
    }

    /// Takes in a message, or each one of a batch.
    pub(super) fn take(&mut self, value: Value) {
        match value {
            Value::Array(batch) => {
                self.batch = true;
                self.messages.extend(batch);
            }
            message => self.messages.push(message),
        }
    }

    /// Whether what is wanted has come.
    pub(super) fn has(&self, wants: &Wants) -> bool {
        match wants {
            Wants::Response(id) => self.response(id).is_some(),
            Wants::Responses(ids) => ids.iter().all(|id| self.response(id).is_some()),
            Wants::Message => !self.messages.is_empty(),
            Wants::Anything => !self.messages.is_empty() || !self.junk.is_empty(),
            Wants::Body | Wants::Head => false,
        }
    }

    /// How the request with an id was answered, for a violation.
    pub(crate) fn summary(&self, id: &Value) -> String {
        let status = self.status.map(|status| format!("status {status}"));
        let message = match (self.result(id), self.error(id)) {
            (Some(_), _) => Some("a result".to_owned()),
            (None, Some(error)) => Some(match error.get("code") {
                Some(code) => format!("error {}", excerpt(&code.to_string())),
                None => "an error without a code".to_owned(),
            }),
            (None, None) if self.ended.is_some() && self.status.is_none() => {
                Some("the end of the connection".to_owned())
            }
            (None, None) if self.late => Some("no response in time".to_owned()),
            (None, None) => None,
        };
        match (status, message) {
            (Some(status), Some(message)) => format!("{status} and {message}"),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => "nothing".to_owned(),
        }
    }
}

pub(super) fn is_response(message: &Value) -> bool {
    message.get("method").is_none() && (message.get("result").is_some() || message.get("error").is_some())
}

pub(super) fn is_request(message: &Value) -> bool {
    message.get("method").is_some() && message.get("id").is_some()
}

/// What a client without capabilities answers to a request of a server.
pub(super) fn reply_to(request: &Value) -> Value {
    let id = request.get("id").cloned().unwrap_or_default();
    match request.get("method").and_then(Value::as_str) {
        Some("ping") => serde_json::json!({ "jsonrpc": "2.0", "id": id, "result": {} }),
        _ => {
            let error = serde_json::json!({ "code": -32601, "message": "this client has no such method" });
            serde_json::json!({ "jsonrpc": "2.0", "id": id, "error": error })
        }
    }
}
