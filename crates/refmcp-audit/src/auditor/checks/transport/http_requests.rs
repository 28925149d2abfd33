//! Rules about requests over streamable HTTP and their responses: `Accept`, the revision, status, content and order.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use refmcp_proto::http::POST_KINDS;
use refmcp_proto::jsonrpc::code;
use refmcp_proto::revision::{Lifecycle, Revision};
use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

use crate::auditor::checks::values::violation_if;
use crate::auditor::checks::{Check, Context};
use crate::auditor::conversation::{Handshake, State, Stream, header, is_content};
use crate::auditor::message::{Body, Message};
use crate::recording::{Event, EventKind, Header};
use crate::verdict::Role;

pub(in crate::auditor::checks) static RULES: &[&Rule] = &[
    &rule::LIFE_09,
    &rule::LIFE_15,
    &rule::HTTP_01,
    &rule::HTTP_03,
    &rule::HTTP_05,
    &rule::HTTP_06,
    &rule::HTTP_07,
    &rule::HTTP_13,
    &rule::HTTP_14,
    &rule::MHTTP_02,
    &rule::MHTTP_03,
    &rule::MHTTP_04,
    &rule::MHTTP_05,
    &rule::MHTTP_07,
    &rule::MHTTP_11,
];

#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct HttpRequests {
    hasher: RandomState,
    /// Requests whose stream ended without a response: method and parameters, hashed.
    lost: HashSet<u64>,
}

/// Lost requests that are remembered.
const MAX_LOST: usize = 256;

impl Check for HttpRequests {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        let Some(stream) = context.state.stream(message.stream).filter(|_| context.state.transport == "http")
        else {
            return;
        };
        match message.from {
            Role::Client if stream.method == "POST" => self.posted(message, stream, context),
            Role::Client => {}
            Role::Server => answered(message, stream, context),
        }
    }

    fn event(&mut self, event: &Event, context: &mut Context<'_>) {
        if context.state.transport != "http" {
            return;
        }
        if let EventKind::Request { method, headers, .. } = &event.kind {
            // Those of POST are judged with their message.
            match &**method {
                "GET" => asked_for_a_stream(headers, context),
                "DELETE" => check_version(headers, context.state.negotiated, context),
                _ => {}
            }
        }
        let Some(stream) = context.state.stream(event.stream) else { return };
        match &event.kind {
            EventKind::Response { status, headers, .. } if stream.method == "POST" => {
                check_response(*status, headers, stream, context);
            }
            EventKind::Response { status, headers, .. } if stream.method == "GET" => {
                let is_sse = *status == 200 && is_content(headers, "text/event-stream");
                let is_other = matches!(status, 200..300 | 501) && !is_sse;
                if is_sse || is_other || *status == 405 {
                    let expected = "answer GET with text/event-stream, or with 405";
                    let violation =
                        violation_if(is_other, "GET is answered with neither events nor 405", expected);
                    context.judge_in(context.state.negotiated, &rule::HTTP_01, Role::Server, violation);
                }
            }
            EventKind::Ended { direction } if context.state.sender(*direction) == Role::Server => {
                if stream.is_sse() && stream.requests > 0 && stream.responses >= stream.requests {
                    context.judge_in(stream.revision, &rule::HTTP_07, Role::Server, None);
                }
                self.lose(event, stream, context.state);
            }
            EventKind::Failed { .. } => self.lose(event, stream, context.state),
            _ => {}
        }
    }
}

impl HttpRequests {
    /// The client posts a message.
    fn posted(&mut self, message: &Message<'_>, stream: &Stream, context: &mut Context<'_>) {
        let revision = message.http_revision(stream);
        let accepts = POST_KINDS.iter().all(|kind| accepts(&stream.headers, kind));
        let expected = "send Accept: application/json, text/event-stream";
        for rule in [&rule::HTTP_03, &rule::MHTTP_02] {
            let violation =
                violation_if(!accepts, "Accept of a POST does not list both kinds of responses", expected);
            context.judge_in(revision, rule, Role::Client, violation);
        }
        let request = message.request();
        if !matches!(request, Some(("initialize", _))) && message.revision == context.state.negotiated {
            check_version(&stream.headers, context.state.negotiated, context);
        }
        if let Some((method, params)) = request
            && !self.lost.is_empty()
            && self.lost.remove(&self.hasher.hash_one((method, params.to_string())))
        {
            context.judge_in(revision, &rule::MHTTP_07, Role::Client, None);
        }
    }

    /// Nothing more comes on a stream.
    fn lose(&mut self, event: &Event, stream: &Stream, state: &State) {
        if stream.revision.is_none_or(|revision| revision.lifecycle() != Lifecycle::PerRequest) {
            return;
        }
        for (_, request) in state.unanswered(Role::Client).filter(|(_, it)| it.stream == event.stream) {
            if self.lost.len() < MAX_LOST {
                self.lost.insert(self.hasher.hash_one((&*request.method, request.params.to_string())));
            }
        }
    }
}

/// The client asks for a stream by GET.
fn asked_for_a_stream(headers: &[Header], context: &mut Context<'_>) {
    if header(headers, "upgrade").is_some() {
        return;
    }
    check_version(headers, context.state.negotiated, context);
    let violation = violation_if(
        !accepts(headers, "text/event-stream"),
        "Accept of a GET does not list events",
        "send Accept: text/event-stream",
    );
    context.judge_in(context.state.negotiated, &rule::HTTP_13, Role::Client, violation);
    let named = header(headers, "mcp-protocol-version").and_then(|version| version.parse::<Revision>().ok());
    if header(headers, "last-event-id").is_some() {
        let expected = "send the request again under a new id: streams are not resumed";
        let violation = violation_if(true, "GET resumes a stream after an event", expected);
        context.judge_in(named, &rule::MHTTP_07, Role::Client, violation);
    }
}

/// The server sends a message on a stream.
fn answered(message: &Message<'_>, stream: &Stream, context: &mut Context<'_>) {
    let is_response = matches!(message.body, Body::Response { .. });
    let is_get = stream.method == "GET" && stream.header("last-event-id").is_none();
    if is_get {
        let expected = "send a response on the stream of its request";
        let violation = violation_if(is_response, "a response comes on the GET stream", expected);
        context.judge_in(message.revision, &rule::HTTP_14, Role::Server, violation);
    }
    if stream.method != "POST" {
        return;
    }
    if stream.requests == 0 && stream.other_messages > 0 && stream.status == Some(202) {
        for rule in [&rule::HTTP_05, &rule::MHTTP_03] {
            let violation =
                violation_if(true, "202 has a body", "answer a POST without requests with 202 and no body");
            context.judge_in(stream.revision, rule, Role::Server, violation);
        }
    }
    // A second response is judged as such.
    if stream.requests > 0 && stream.responses >= stream.requests && !is_response {
        for rule in [&rule::HTTP_07, &rule::MHTTP_05] {
            let violation = violation_if(
                true,
                "a message follows the response on its stream",
                "end it with the response",
            );
            context.judge_in(stream.revision, rule, Role::Server, violation);
        }
    }
    if let Some((request, error)) = message.error()
        && error.get("code").and_then(Value::as_i64) == Some(code::METHOD_NOT_FOUND)
        && let Some(status) = stream.status.filter(|_| !stream.is_sse())
    {
        let expected = "answer an unknown method with status 404";
        let violation = violation_if(status != 404, &format!("-32601 comes with status {status}"), expected);
        context.judge_in(request.revision, &rule::MHTTP_11, Role::Server, violation);
    }
}

/// Status and content of the response to a POST.
fn check_response(status: u16, headers: &[Header], stream: &Stream, context: &mut Context<'_>) {
    let (is_success, is_error) = ((200..300).contains(&status), status >= 400);
    if stream.requests == 0 && stream.other_messages > 0 && (is_success || is_error) {
        for rule in [&rule::HTTP_05, &rule::MHTTP_03] {
            let what = format!("a POST without requests is answered with {status}");
            let violation =
                violation_if(is_success && status != 202, &what, "answer it with 202 and no body");
            context.judge_in(stream.revision, rule, Role::Server, violation);
        }
    }
    // Messages of HTTP+SSE that are relayed are answered with 202, on a connection without the handshake.
    let is_stateless = stream.revision.is_some_and(|it| it.lifecycle() == Lifecycle::PerRequest);
    let is_streamable = is_stateless
        || context.state.handshake >= Handshake::Answered
        || stream.header("mcp-session-id").is_some();
    if stream.requests > 0 && (status == 200 || is_success && is_streamable) {
        let is_sse = is_content(headers, "text/event-stream");
        for rule in [&rule::HTTP_06, &rule::MHTTP_04] {
            let is_known = status == 200 && (is_sse || is_content(headers, "application/json"));
            let what = format!("a request is answered with {status} and neither JSON nor events");
            let expected = "answer with application/json or text/event-stream";
            context.judge_in(stream.revision, rule, Role::Server, violation_if(!is_known, &what, expected));
        }
        if is_sse {
            let is_told =
                header(headers, "x-accel-buffering").is_some_and(|it| it.eq_ignore_ascii_case("no"));
            let expected = "send X-Accel-Buffering: no with a stream of events";
            let violation = violation_if(!is_told, "proxies may buffer the stream", expected);
            context.judge_in(stream.revision, &rule::MHTTP_05, Role::Server, violation);
        }
    }
}

/// `MCP-Protocol-Version` must be there, and should be the revision that the session agreed on.
fn check_version(headers: &[Header], agreed: Option<Revision>, context: &mut Context<'_>) {
    let named = header(headers, "mcp-protocol-version");
    let expected = "send MCP-Protocol-Version with the revision of the session";
    let what = "a request after initialize has no MCP-Protocol-Version";
    let violation = violation_if(named.is_none(), what, expected);
    context.judge_in(agreed, &rule::LIFE_09, Role::Client, violation);
    if named.is_some() {
        let what = "MCP-Protocol-Version is not the revision that was agreed on";
        let violation = violation_if(named != agreed.map(Revision::as_str), what, expected);
        context.judge_in(agreed, &rule::LIFE_15, Role::Client, violation);
    }
}

/// Whether `Accept` lists a media type, by itself or in a range.
fn accepts(headers: &[Header], kind: &str) -> bool {
    let family = kind.split('/').next().unwrap_or_default();
    let listed = headers.iter().filter(|(name, _)| name == "accept").flat_map(|(_, value)| value.split(','));
    listed.map(|range| range.split(';').next().unwrap_or_default().trim()).any(|range| {
        range.eq_ignore_ascii_case(kind)
            || range == "*/*"
            || range.strip_suffix("/*").is_some_and(|range| range.eq_ignore_ascii_case(family))
    })
}
