//! `POST`: a message of the client. What the message says about itself decides which lifecycle it belongs to; headers
//! alone never do.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use refmcp_proto::engine::server::{stated_revision, unstated_revision};
use refmcp_proto::jsonrpc::{Incoming, Limits, Message, Params, RequestId, RpcError, code, decode};
use refmcp_proto::revision::{Lifecycle, Method, Resumption, Revision, Rules};
use refmcp_server::Connection;
use serde_json::{Value, json};

use crate::conversation::Conversation;
use crate::endpoint::{Endpoint, Inner};
use crate::sessions::{HttpSession, Kind};
use crate::sse::{self, Style};
use crate::stream::{EventStream, Next};
use crate::{headers, status};

pub(crate) async fn post(State(endpoint): State<Endpoint>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let endpoint = &endpoint.inner;
    if let Err(refusal) = check_kinds(&parts.headers) {
        return refusal.into_response();
    }
    let body = match read(endpoint, body).await {
        Ok(body) => body,
        Err(refusal) => return refusal.into_response(),
    };
    let limits = Limits { message_bytes: endpoint.options.body_bytes, ..Limits::default() };
    match decode(&body, &limits) {
        Err(fault) => status::error(StatusCode::BAD_REQUEST, fault.id.as_ref(), &fault.error),
        Ok(Incoming::Batch(_)) => batch(endpoint, &parts.headers, &body).await,
        Ok(Incoming::One(message)) => one(endpoint, &parts, message).await,
    }
}

/// A request that is turned away before its message is looked at.
pub(crate) type Refusal = (StatusCode, Cow<'static, str>);

fn check_kinds(headers: &HeaderMap) -> Result<(), Refusal> {
    check_body(headers)?;
    if !headers::accepts(headers, "application/json") || !headers::accepts(headers, "text/event-stream") {
        let why = "Accept must allow application/json and text/event-stream";
        return Err((StatusCode::NOT_ACCEPTABLE, why.into()));
    }
    Ok(())
}

/// Whether the body is of a kind that is understood here.
pub(crate) fn check_body(headers: &HeaderMap) -> Result<(), Refusal> {
    let refuse = |why: &'static str| Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, why.into()));
    if headers.contains_key(header::CONTENT_ENCODING) {
        return refuse("Content-Encoding is not understood here");
    }
    if !headers::is_json(headers) {
        return refuse("Content-Type must be application/json in UTF-8");
    }
    Ok(())
}

async fn read(endpoint: &Inner, body: Body) -> Result<Bytes, Refusal> {
    let most = endpoint.options.body_bytes;
    match tokio::time::timeout(endpoint.options.body_timeout, to_bytes(body, most)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => Err((StatusCode::PAYLOAD_TOO_LARGE, format!("at most {most} bytes").into())),
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "the body took too long".into())),
    }
}

/// One message, of whichever lifecycle.
async fn one(endpoint: &Arc<Inner>, parts: &Parts, message: Message<'_>) -> Response {
    let headers = &parts.headers;
    let named = match headers::value(headers, &headers::PROTOCOL_VERSION) {
        Ok(named) => named,
        Err(why) => return bad_request(&message, &RpcError::invalid_request(why)),
    };
    let stated = match params(&message).map(stated_revision).transpose() {
        Ok(stated) => stated.flatten(),
        Err(error) => return bad_request(&message, &error),
    };
    if let Some(version) = stated {
        return stateless(endpoint, parts, &version, message).await;
    }
    // Without a word in the body, a header can still say that the body should have had one.
    match named.map(str::parse::<Revision>) {
        Some(Ok(revision)) if revision.lifecycle() == Lifecycle::PerRequest => match message {
            Message::Request(_) => bad_request(&message, &unstated_revision()),
            Message::Notification(_) | Message::Response(_) => status::accepted(),
        },
        Some(Err(_)) => bad_request(&message, &unsupported(endpoint, named.unwrap_or_default())),
        _ => in_session(endpoint, parts, message).await,
    }
}

fn params<'a>(message: &'a Message<'_>) -> Option<&'a Params<'a>> {
    match message {
        Message::Request(request) => Some(&request.params),
        Message::Notification(notification) => Some(&notification.params),
        Message::Response(_) => None,
    }
}

fn bad_request(message: &Message<'_>, error: &RpcError) -> Response {
    status::error(StatusCode::BAD_REQUEST, id_of(message), error)
}

fn id_of<'a>(message: &'a Message<'_>) -> Option<&'a RequestId> {
    match message {
        Message::Request(request) => Some(&request.id),
        Message::Notification(_) | Message::Response(_) => None,
    }
}

fn unsupported(endpoint: &Inner, requested: &str) -> RpcError {
    let supported: Vec<&str> = endpoint.config.revisions.iter().map(|revision| revision.as_str()).collect();
    RpcError::new(code::UNSUPPORTED_VERSION, "unsupported MCP-Protocol-Version")
        .with_data(json!({ "supported": supported, "requested": requested }))
}

/// A message that stands for itself.
async fn stateless(endpoint: &Arc<Inner>, parts: &Parts, version: &str, message: Message<'_>) -> Response {
    let headers = &parts.headers;
    let Message::Request(request) = &message else { return status::accepted() };
    let params: Value =
        request.params.text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    if let Err(error) = headers::check_mirrored(headers, version, &request.method, &params) {
        return bad_request(&message, &error);
    }
    let method = Method::known(&request.method);
    if method == Some(Method::CallTool)
        && let Err(error) = headers::check_arguments(headers, &endpoint.server, &params)
    {
        return bad_request(&message, &error);
    }
    let conversation = endpoint.converse(connection(parts));
    if method == Some(Method::Listen) {
        endpoint.listens(&conversation);
    }
    let stream = conversation.open_stream(Some(request.id.clone()));
    let guard = BreaksOff { conversation: conversation.clone(), channel: stream.number };
    conversation.receive(stream.number, message);
    let style = Style { ids: false, retry: None, keep_alive: endpoint.options.keep_alive };
    // The head is held back for as long as it takes: an error that is found late has a status of its own.
    exchange(endpoint, &conversation, stream, Lifecycle::PerRequest, style, Commit::OnMessage, Some(guard))
        .await
}

/// A message of a session, or the one that opens it.
async fn in_session(endpoint: &Arc<Inner>, parts: &Parts, message: Message<'_>) -> Response {
    if let Message::Request(request) = &message
        && request.method == "initialize"
    {
        return initialize(endpoint, parts, message).await;
    }
    let session = match find_session(endpoint, &parts.headers) {
        Ok(session) => session,
        Err((status, why)) => {
            return status::error(status, id_of(&message), &RpcError::invalid_request(why));
        }
    };
    let conversation = session.conversation.clone();
    let Message::Request(request) = &message else {
        conversation.receive(crate::conversation::STANDING, message);
        return status::accepted();
    };
    if conversation.stream_count() >= endpoint.options.max_streams {
        return (StatusCode::TOO_MANY_REQUESTS, "too many streams in this session").into_response();
    }
    let rules = conversation.session_rules().unwrap_or(Revision::LATEST_SESSION.rules());
    let commit = if request.params.meta.is_some_and(|meta| meta.contains("\"progressToken\"")) {
        Commit::AtOnce
    } else {
        Commit::InTime
    };
    let stream = conversation.open_stream(Some(request.id.clone()));
    conversation.receive(stream.number, message);
    exchange(endpoint, &conversation, stream, rules.lifecycle, style(endpoint, rules), commit, None).await
}

async fn initialize(endpoint: &Arc<Inner>, parts: &Parts, message: Message<'_>) -> Response {
    if parts.headers.contains_key(headers::SESSION_ID) {
        let why = RpcError::invalid_request("initialize opens a session; it does not belong into one");
        return bad_request(&message, &why);
    }
    let conversation = endpoint.converse(connection(parts));
    let stream = conversation.open_stream(id_of(&message).cloned());
    conversation.receive(stream.number, message);
    let Some(mut reader) = stream.attach(0) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let Next::Message(_, answer) = reader.next().await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    conversation.forget_stream(stream.number);
    let mut response =
        status::json(status::of_answer(Lifecycle::Handshake, answer.answer.flatten()), answer.json);
    if conversation.session_rules().is_none() {
        return response;
    }
    match endpoint.sessions.open(Kind::Streamable, conversation, endpoint.options.max_sessions) {
        Ok(session) => {
            if let Ok(id) = HeaderValue::try_from(&*session.id) {
                response.headers_mut().insert(headers::SESSION_ID, id);
            }
            response
        }
        Err(why) => status::unavailable(why.to_string()),
    }
}

/// A batch, which only one revision has; the engine of the session knows whether it is that one.
async fn batch(endpoint: &Arc<Inner>, headers: &HeaderMap, body: &[u8]) -> Response {
    let session = match find_session(endpoint, headers) {
        Ok(session) => session,
        Err((status, why)) => return status::error(status, None, &RpcError::invalid_request(why)),
    };
    let conversation = session.conversation.clone();
    let rules = conversation.session_rules().unwrap_or(Revision::LATEST_SESSION.rules());
    let stream = conversation.open_stream(None);
    conversation.receive_bytes(stream.number, body);
    if !has_requests(body) {
        let refused = stream.attach(0).map(|mut reader| reader.try_next());
        conversation.forget_stream(stream.number);
        return match refused {
            Some(Next::Message(_, answer)) => status::json(StatusCode::BAD_REQUEST, answer.json),
            _ => status::accepted(),
        };
    }
    exchange(endpoint, &conversation, stream, rules.lifecycle, style(endpoint, rules), Commit::InTime, None)
        .await
}

fn has_requests(body: &[u8]) -> bool {
    let messages: Vec<Value> = serde_json::from_slice(body).unwrap_or_default();
    messages.iter().any(|message| message.get("id").is_some() && message.get("method").is_some())
}

/// The session that the headers name, if they name it properly.
pub(crate) fn find_session(
    endpoint: &Inner,
    headers: &HeaderMap,
) -> Result<Arc<HttpSession>, (StatusCode, String)> {
    let bad = |why: String| (StatusCode::BAD_REQUEST, why);
    let id = headers::value(headers, &headers::SESSION_ID).map_err(bad)?;
    let id = id.ok_or_else(|| bad("no Mcp-Session-Id header; initialize opens a session".to_owned()))?;
    let session = endpoint.sessions.find(Kind::Streamable, id);
    let session = session.ok_or_else(|| (StatusCode::NOT_FOUND, "there is no such session".to_owned()))?;
    let Some(rules) = session.conversation.session_rules() else { return Ok(session) };
    match headers::value(headers, &headers::PROTOCOL_VERSION).map_err(bad)? {
        Some(version) if version == rules.revision.as_str() => Ok(session),
        Some(version) => {
            let agreed = rules.revision;
            Err(bad(format!("MCP-Protocol-Version is {version:?}, but this session agreed on {agreed}")))
        }
        None if rules.version_header && endpoint.options.require_version => {
            Err(bad(format!("no MCP-Protocol-Version header; this session agreed on {}", rules.revision)))
        }
        None => Ok(session),
    }
}

pub(crate) fn style(endpoint: &Inner, rules: &Rules) -> Style {
    Style {
        ids: rules.resumption != Resumption::Never,
        retry: (rules.resumption == Resumption::Polling).then_some(endpoint.options.retry),
        keep_alive: endpoint.options.keep_alive,
    }
}

/// What is known of a client from its headers.
pub(crate) fn connection(parts: &Parts) -> Connection {
    let headers = &parts.headers;
    // A server that is mounted elsewhere may not know who calls; then nobody is taken for a neighbour.
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
    let local = peer.is_some_and(|ConnectInfo(address)| address.ip().to_canonical().is_loopback());
    let secret = [header::AUTHORIZATION, header::COOKIE, header::PROXY_AUTHORIZATION, headers::SESSION_ID];
    let shown = headers.iter().filter(|(name, _)| !secret.contains(name));
    let shown =
        shown.map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
    Connection { transport: "http", local, principal: None, headers: shown.collect() }
}

/// When an exchange becomes a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Commit {
    /// Now: there will be messages before the answer.
    AtOnce,
    /// With the first message that is not the answer, or when the answer takes long.
    InTime,
    /// With the first message that is not the answer, however long that takes.
    OnMessage,
}

/// Waits for what comes first, and answers with JSON when it is the answer, else with a stream.
async fn exchange(
    endpoint: &Inner,
    conversation: &Arc<Conversation>,
    stream: Arc<EventStream>,
    lifecycle: Lifecycle,
    style: Style,
    commit: Commit,
    mut guard: Option<BreaksOff>,
) -> Response {
    let Some(mut peek) = stream.attach(0) else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    let first = match (peek.try_next(), commit) {
        (Next::Wait, Commit::AtOnce) => Next::Wait,
        (Next::Wait, Commit::OnMessage) => peek.next().await,
        (Next::Wait, Commit::InTime) => {
            tokio::time::timeout(endpoint.options.commit_after, peek.next()).await.unwrap_or(Next::Wait)
        }
        (found, _) => found,
    };
    if let Next::Message(_, message) = &first
        && let Some(error) = message.answer
    {
        conversation.forget_stream(stream.number);
        if let Some(guard) = &mut guard {
            guard.answered();
        }
        return status::json(status::of_answer(lifecycle, error), message.json.clone());
    }
    if stream.is_cut() {
        return sse::come_back(&stream, style);
    }
    let Some(reader) = stream.attach(0) else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    sse::response(reader, style, Vec::new(), guard.and_then(sse::held))
}

/// Whoever breaks off an exchange that stands for itself wants no answer.
struct BreaksOff {
    conversation: Arc<Conversation>,
    channel: u64,
}

impl BreaksOff {
    /// The answer was given; dropping this does no harm any more.
    fn answered(&mut self) {
        self.conversation.forget_stream(self.channel);
    }
}

impl Drop for BreaksOff {
    fn drop(&mut self) {
        self.conversation.close_channel(self.channel);
    }
}
