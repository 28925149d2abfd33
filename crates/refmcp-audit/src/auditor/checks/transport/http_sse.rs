//! Rules about HTTP+SSE: the event `endpoint`, and which way messages go.

use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

use crate::auditor::checks::values::violation_if;
use crate::auditor::checks::{Check, Context};
use crate::auditor::message::Message;
use crate::recording::{Event, EventKind};
use crate::verdict::Role;

pub(in crate::auditor::checks) static RULES: &[&Rule] =
    &[&rule::SSE_01, &rule::SSE_02, &rule::SSE_03, &rule::SSE_04];

#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct HttpSse {
    /// Whether the stream has begun with an event.
    has_begun: bool,
    /// The path that `endpoint` names.
    endpoint: Option<String>,
}

impl Check for HttpSse {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        let Some(stream) =
            context.state.stream(message.stream).filter(|_| context.state.transport == "http+sse")
        else {
            return;
        };
        let is_post = stream.method == "POST";
        if message.from == Role::Server && (!is_post || stream.status.is_some_and(|it| it < 300)) {
            let expected = "send messages as events named message on the stream";
            let violation = violation_if(is_post, "a message comes in the response to a POST", expected);
            context.judge(&rule::SSE_04, violation);
        }
    }

    fn event(&mut self, event: &Event, context: &mut Context<'_>) {
        let Some(stream) =
            context.state.stream(event.stream).filter(|_| context.state.transport == "http+sse")
        else {
            return;
        };
        match &event.kind {
            EventKind::Request { method, .. } if method == "GET" => *self = Self::default(),
            EventKind::Request { method, target, .. } if method == "POST" => {
                if let Some(endpoint) = &self.endpoint {
                    let path = path_of(target);
                    let is_other = !path.ends_with(endpoint.as_str()) && !endpoint.ends_with(path);
                    let violation = violation_if(
                        is_other,
                        "a message is posted elsewhere",
                        "post to what endpoint names",
                    );
                    context.judge(&rule::SSE_03, violation);
                }
            }
            EventKind::Response { status: status @ (..300 | 405), .. }
                if stream.method == "POST" && self.endpoint.is_some() =>
            {
                let expected = "accept POST at the URI that endpoint names";
                let violation = violation_if(*status == 405, "POST is refused with 405", expected);
                context.judge(&rule::SSE_01, violation);
            }
            EventKind::Message { .. } if stream.method == "GET" => self.begin(false, context),
            EventKind::Sse { name, data, .. } if stream.method == "GET" && !data.is_empty() => {
                let is_endpoint = name.as_deref() == Some("endpoint");
                self.begin(is_endpoint, context);
                if is_endpoint {
                    self.endpoint = Some(path_of(data).to_owned());
                } else if serde_json::from_str::<Value>(data).is_ok_and(|it| it.get("jsonrpc").is_some()) {
                    let what = "a message comes in an event of another name than message";
                    let violation = Some((what.to_owned(), "send messages as events named message"));
                    context.judge(&rule::SSE_04, violation);
                }
            }
            _ => {}
        }
    }
}

impl HttpSse {
    fn begin(&mut self, is_endpoint: bool, context: &mut Context<'_>) {
        if !std::mem::replace(&mut self.has_begun, true) {
            let expected = "begin the stream with an event named endpoint";
            let violation =
                violation_if(!is_endpoint, "the stream begins with another event than endpoint", expected);
            context.judge(&rule::SSE_02, violation);
        }
    }
}

/// The path of a URI or of the target of a request.
fn path_of(uri: &str) -> &str {
    let uri = uri.trim();
    let rest = uri.split_once("://").map_or(uri, |(_, rest)| rest.find('/').map_or("/", |at| &rest[at..]));
    rest.split(['?', '#']).next().unwrap_or_default()
}
