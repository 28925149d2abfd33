//! A message as checks see it.

use refmcp_proto::http::names_stateless;
use refmcp_proto::revision::{Lifecycle, Revision};
use serde_json::Value;

use super::conversation::{Request, Stream};
use crate::verdict::Role;

/// A request, a notification or a response; one of a batch is seen by itself.
#[derive(Debug)]
pub(crate) struct Message<'a> {
    pub(crate) from: Role,
    /// When, in milliseconds.
    pub(crate) at: u64,
    /// The HTTP request that carried it, or whose response did.
    pub(crate) stream: Option<u64>,
    pub(crate) in_batch: bool,
    /// The whole text: that of the batch for a message of one.
    pub(crate) text: &'a str,
    /// The message itself.
    pub(crate) value: &'a Value,
    pub(crate) body: Body<'a>,
    /// The revision that it is judged by, once one is known.
    pub(crate) revision: Option<Revision>,
}

/// The kind of a message and its members. Parameters that are left out are null.
#[derive(Debug)]
pub(crate) enum Body<'a> {
    Request {
        id: &'a Value,
        method: &'a str,
        params: &'a Value,
    },
    Notification {
        method: &'a str,
        params: &'a Value,
    },
    Response {
        /// Null where it is left out.
        id: &'a Value,
        /// The request that it answers.
        request: Option<&'a Request>,
        /// The result, or the error object.
        result: Result<&'a Value, &'a Value>,
    },
}

impl<'a> Body<'a> {
    /// The body of a message; `None` where it is none of the three, or malformed as one of a batch can be.
    pub(super) fn of(value: &'a Value, request: Option<&'a Request>) -> Option<Self> {
        let member = |name| value.get(name);
        let params = member("params").unwrap_or(&Value::Null);
        if member("jsonrpc")? != "2.0" || !matches!(params, Value::Object(_) | Value::Null) {
            return None;
        }
        Some(match (member("method").and_then(Value::as_str), member("id")) {
            (Some(_), Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_))) => {
                return None;
            }
            (Some(method), Some(id)) => Self::Request { id, method, params },
            (Some(method), None) => Self::Notification { method, params },
            (None, id) => {
                let id = id.unwrap_or(&Value::Null);
                let result = match (member("result"), member("error")) {
                    (_, Some(error)) => Err(error),
                    (Some(result), None) => Ok(result),
                    (None, None) => return None,
                };
                Self::Response { id, request, result }
            }
        })
    }
}

impl<'a> Message<'a> {
    /// The revision by which the HTTP request around it is judged: `initialize` comes before one is agreed on, and is judged by
    /// the one that the client wants. One without sessions is named by the body or the header: other clients at the same address
    /// may speak another.
    pub(crate) fn http_revision(&self, stream: &Stream) -> Option<Revision> {
        let (Body::Request { params, .. } | Body::Notification { params, .. }) = self.body else {
            return self.revision;
        };
        if let Some(("initialize", params)) = self.request() {
            return params.get("protocolVersion")?.as_str()?.parse().ok();
        }
        let in_body =
            params.get("_meta").and_then(|meta| meta.get("io.modelcontextprotocol/protocolVersion"));
        let is_named = in_body.is_some() || names_stateless(stream.header("mcp-protocol-version"));
        self.revision.filter(|revision| is_named || revision.lifecycle() == Lifecycle::Handshake)
    }

    /// Whether it is judged by a revision without sessions.
    pub(crate) fn is_stateless(&self) -> bool {
        self.revision.is_some_and(|revision| revision.lifecycle() == Lifecycle::PerRequest)
    }

    /// The method and the parameters, where this is a request.
    pub(crate) fn request(&self) -> Option<(&'a str, &'a Value)> {
        match self.body {
            Body::Request { method, params, .. } => Some((method, params)),
            _ => None,
        }
    }

    /// The method and the parameters, where this is a notification.
    pub(crate) fn notification(&self) -> Option<(&'a str, &'a Value)> {
        match self.body {
            Body::Notification { method, params } => Some((method, params)),
            _ => None,
        }
    }

    /// The request that is answered and its result, where this is a response with a result to a request that is known.
    pub(crate) fn result(&self) -> Option<(&'a Request, &'a Value)> {
        match self.body {
            Body::Response { request: Some(request), result: Ok(result), .. } => Some((request, result)),
            _ => None,
        }
    }

    /// The request that is answered and the error, where this is an error response to a request that is known.
    pub(crate) fn error(&self) -> Option<(&'a Request, &'a Value)> {
        match self.body {
            Body::Response { request: Some(request), result: Err(error), .. } => Some((request, error)),
            _ => None,
        }
    }
}
