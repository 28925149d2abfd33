//! `POST`: a message of the client. What the message says about itself decides which lifecycle it belongs to; headers
//! alone never do.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use refmcp_proto::engine::message_checks;
use refmcp_proto::engine::server::{missing_request_meta, requested_revision};
use refmcp_proto::jsonrpc::{Incoming, Message, Params, RequestId, RpcError, code, decode, excerpt};
use refmcp_proto::revision::{Lifecycle, Method, Resumption, Revision, Rules};
use refmcp_server::Connection;
use serde_json::{Value, json};

use crate::access::caller::Caller;
use crate::access::scopes;
use crate::endpoint::Inner;
use crate::ops::error_log;
use crate::refusal::{Reason, Refusal};
use crate::request::exchange::{CancelOnDrop, Exchange, ResponseMode};
use crate::request::headers::AcceptRule;
use crate::request::{headers, response};
use crate::session::driver::SessionDriver;
use crate::session::{SessionTransport, find, find_and_note};
use crate::stream::sse::SseFormat;

/// Bytes of a body that are taken in although nobody wants them, and how long that may take.
const SHORT: usize = 64 << 10;
const SHORTLY: Duration = Duration::from_secs(1);

pub(crate) async fn post(
    endpoint: &Arc<Inner>,
    caller: Caller,
    request: Request,
) -> Result<Response, Refusal> {
    if let Err(refusal) = check_body(request.headers()) {
        return Err(Box::pin(unread(request, refusal)).await);
    }
    let (parts, body) = request.into_parts();
    let body = read(endpoint, body).await?;
    match take(endpoint, &caller, parts, &body)? {
        Step::Respond(response) => Ok(response),
        Step::Wait(exchange) => Box::pin(exchange.response(endpoint)).await,
        Step::Open(conversation, response) => open(endpoint, &caller, conversation, response).await,
    }
}

/// What is left to do once a message was taken in. Taking it in never waits, so no message is kept while anybody does.
enum Step {
    /// Nothing.
    Respond(Response),
    /// Wait for the answer.
    Wait(Exchange),
    /// Open a session for a client that was welcomed with this.
    Open(Arc<SessionDriver>, Response),
}

impl Step {
    /// The answer, at once if it is there.
    fn of(endpoint: &Inner, exchange: Exchange) -> Self {
        match exchange.at_once(endpoint) {
            Some(response) => Self::Respond(response),
            None => Self::Wait(exchange),
        }
    }
}

fn take(endpoint: &Arc<Inner>, caller: &Caller, parts: Parts, body: &[u8]) -> Result<Step, Refusal> {
    let incoming = match decode(body, &endpoint.limits()) {
        Ok(incoming) => incoming,
        Err(fault) => {
            // It may have been a request.
            check_accept(endpoint, &parts.headers)?;
            error_log::found(&fault.error);
            let finding = message_checks::malformed(&fault);
            match find(endpoint, caller, &parts.headers) {
                Ok(session) => session.conversation.note(finding),
                Err(_) => endpoint.server.record(None, &finding),
            }
            return Err(Refusal::rpc(Reason::Message, fault.id.as_ref(), &fault.error));
        }
    };
    if is_answered(&incoming) {
        check_accept(endpoint, &parts.headers)?;
    }
    // A session that is none of the caller's is told so below.
    scopes::check(endpoint, caller, &parts, || find(endpoint, caller, &parts.headers).ok(), &incoming)?;
    match incoming {
        Incoming::Batch(_) => batch(endpoint, caller, &parts.headers, body),
        Incoming::One(message) => one(endpoint, caller, parts.headers, message),
    }
}

/// Whether the body is of a kind that is understood here.
pub(crate) fn check_body(headers: &HeaderMap) -> Result<(), Refusal> {
    let refuse =
        |why: &'static str| Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Reason::ContentType, why);
    if headers.contains_key(header::CONTENT_ENCODING) {
        return Err(refuse("Content-Encoding is not understood here"));
    }
    if !headers::is_json(headers) {
        return Err(refuse("Content-Type must be application/json in UTF-8"));
    }
    Ok(())
}

/// Whether the client takes whatever it may be answered with.
fn check_accept(endpoint: &Inner, headers: &HeaderMap) -> Result<(), Refusal> {
    let kinds = ["application/json", "text/event-stream"];
    headers::check_accept(headers, endpoint.options.require_accept, kinds)
}

/// Whether a body gets an answer. Notifications and responses get none, so what they accept is of no interest.
fn is_answered(incoming: &Incoming<'_>) -> bool {
    let is_request = |message: &Message<'_>| matches!(message, Message::Request(_));
    match incoming {
        Incoming::One(message) => is_request(message),
        // What cannot be read in a batch is answered with an error.
        Incoming::Batch(messages) => {
            messages.is_empty() || messages.iter().any(|message| message.as_ref().map_or(true, is_request))
        }
    }
}

/// Turns a request away whose body nobody has read: it is taken in first when it is short, for its connection could not
/// be used for the next request otherwise; when it is not, the client is told.
pub(crate) async fn unread(request: Request, refusal: Refusal) -> Refusal {
    // Whoever asks first whether to send it need not.
    let asks = request.headers().contains_key(header::EXPECT);
    let body = request.into_body();
    let short = !asks && body.size_hint().lower() <= SHORT as u64;
    let taken = short && matches!(tokio::time::timeout(SHORTLY, to_bytes(body, SHORT)).await, Ok(Ok(_)));
    if taken { refusal } else { refusal.and_close() }
}

/// Reads a body whole.
pub(crate) async fn read(endpoint: &Inner, body: Body) -> Result<Bytes, Refusal> {
    read_at_most(endpoint, body, endpoint.options.body_bytes).await
}

/// The same, of so many bytes.
pub(crate) async fn read_at_most(endpoint: &Inner, body: Body, most: usize) -> Result<Bytes, Refusal> {
    let too_long =
        || Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, Reason::BodySize, format!("at most {most} bytes"));
    // Whoever says beforehand that it is too long need not send it.
    if body.size_hint().lower() > most as u64 {
        return Err(too_long());
    }
    let mut reading = pin!(to_bytes(body, most));
    // Most bodies come together with their heads, and then no clock is needed.
    let read = match poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await {
        Poll::Ready(read) => Ok(read),
        Poll::Pending => tokio::time::timeout(endpoint.options.body_timeout, reading).await,
    };
    match read {
        Ok(Ok(bytes)) => {
            endpoint.metrics.received.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            Ok(bytes)
        }
        Ok(Err(fault)) if is_too_long(&fault) => Err(too_long()),
        Ok(Err(_)) => Err(Refusal::bad(Reason::BodySize, "the body broke off")),
        Err(_) => {
            let why = "the body took too long";
            Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, Reason::BodyTimeout, why))
        }
    }
}

fn is_too_long(fault: &axum::Error) -> bool {
    let cause = std::error::Error::source(fault);
    cause.is_some_and(<dyn std::error::Error>::is::<http_body_util::LengthLimitError>)
}

/// One message, of whichever lifecycle.
fn one(
    endpoint: &Arc<Inner>,
    caller: &Caller,
    headers: HeaderMap,
    message: Message<'_>,
) -> Result<Step, Refusal> {
    let named = match headers::value(&headers, &headers::PROTOCOL_VERSION) {
        Ok(named) => named,
        Err(why) => return Err(bad_request(Reason::Revision, &message, &RpcError::invalid_request(why))),
    };
    let stated = params(&message).map(|params| requested_revision(&endpoint.config, params));
    let stated = match stated.transpose() {
        Ok(stated) => stated.flatten(),
        Err(error) => {
            record_mistakes(endpoint, &message);
            return Err(bad_request(Reason::Message, &message, &error));
        }
    };
    if let Some(version) = stated {
        return stateless(endpoint, caller, headers, &version, message);
    }
    // Without a word in the body, a header can still say that the body should have had one.
    match named.map(str::parse::<Revision>) {
        Some(Ok(revision)) if revision.lifecycle() == Lifecycle::PerRequest => {
            record_mistakes(endpoint, &message);
            match message {
                Message::Request(_) => Err(bad_request(Reason::Message, &message, &missing_request_meta())),
                Message::Notification(_) | Message::Response(_) => Ok(accepted()),
            }
        }
        Some(Err(_)) => {
            let error = unsupported(endpoint, named.unwrap_or_default());
            Err(bad_request(Reason::Revision, &message, &error))
        }
        _ => in_session(endpoint, caller, &headers, message),
    }
}

fn params<'a>(message: &'a Message<'_>) -> Option<&'a Params<'a>> {
    match message {
        Message::Request(request) => Some(&request.params),
        Message::Notification(notification) => Some(&notification.params),
        Message::Response(_) => None,
    }
}

/// Records what is wrong with a message that no engine takes in.
fn record_mistakes(endpoint: &Inner, message: &Message<'_>) {
    message_checks::client_message(message).for_each(|finding| endpoint.server.record(None, &finding));
}

fn bad_request(reason: Reason, message: &Message<'_>, error: &RpcError) -> Refusal {
    error_log::found(error);
    Refusal::rpc(reason, id_of(message), error)
}

fn accepted() -> Step {
    Step::Respond(response::accepted())
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
        .with_data(json!({ "supported": supported, "requested": excerpt(requested) }))
}

/// Notes that a request came without an `Accept` header and is served nevertheless.
fn note_accept(conversation: &SessionDriver, headers: &HeaderMap, rule: AcceptRule) {
    if let Some(finding) = headers::absent_accept(headers, rule) {
        conversation.note(finding);
    }
}

/// A message that stands for itself.
fn stateless(
    endpoint: &Arc<Inner>,
    caller: &Caller,
    headers: HeaderMap,
    version: &str,
    message: Message<'_>,
) -> Result<Step, Refusal> {
    let Message::Request(request) = &message else {
        record_mistakes(endpoint, &message);
        return Ok(accepted());
    };
    let (method, params) = (&request.method, &request.params);
    if let Err(error) = headers::check_mirrored(&headers, &endpoint.server, version, method, params) {
        return Err(bad_request(Reason::Message, &message, &error));
    }
    let absent_accept = headers::absent_accept(&headers, AcceptRule::PostAlone);
    let connection =
        Connection { scopes: caller.scopes(), ..caller.connection(headers::of_request(headers)) };
    let conversation = endpoint.converse(connection);
    if let Some(finding) = absent_accept {
        conversation.note(finding);
    }
    if Method::known(&request.method) == Some(Method::Listen) {
        endpoint.listens(&conversation);
    }
    let outlet = conversation.open_outlet(Some(request.id.clone()));
    let guard = CancelOnDrop { conversation: conversation.clone(), channel: outlet.number };
    conversation.receive(outlet.number, message);
    let style = SseFormat { ids: false, retry: None, keep_alive: endpoint.options.keep_alive };
    // The head is held back for as long as it takes: an error that is found late has a status of its own.
    let (lifecycle, commit) = (Lifecycle::PerRequest, ResponseMode::OnMessage);
    let exchange = Exchange { conversation, outlet, lifecycle, style, commit, guard: Some(guard) };
    Ok(Step::of(endpoint, exchange))
}

/// A message of a session, or the one that opens it.
fn in_session(
    endpoint: &Arc<Inner>,
    caller: &Caller,
    headers: &HeaderMap,
    message: Message<'_>,
) -> Result<Step, Refusal> {
    if let Message::Request(request) = &message
        && request.method == "initialize"
    {
        return initialize(endpoint, caller, headers, message);
    }
    let id = id_of(&message);
    let session = find_and_note(endpoint, caller, headers).map_err(|refusal| refusal.said_to(id))?;
    let conversation = session.conversation.clone();
    let Message::Request(request) = &message else {
        conversation.receive(crate::session::driver::GET_STREAM, message);
        // A client that has just said that it is ready may be silent for long.
        conversation.shrink();
        return Ok(accepted());
    };
    if conversation.exchanges() >= endpoint.options.max_streams {
        return Err(Refusal::too_many(Reason::Streams, "too many streams in this session", 1));
    }
    let rules = conversation.session_rules().unwrap_or(Revision::LATEST_SESSION.rules());
    let commit = if request.params.meta.is_some_and(|meta| meta.contains("\"progressToken\"")) {
        ResponseMode::AtOnce
    } else {
        ResponseMode::InTime
    };
    note_accept(&conversation, headers, AcceptRule::Post);
    let outlet = conversation.open_outlet(Some(request.id.clone()));
    conversation.receive(outlet.number, message);
    let (lifecycle, style) = (rules.lifecycle, style(endpoint, rules));
    Ok(Step::of(endpoint, Exchange { conversation, outlet, lifecycle, style, commit, guard: None }))
}

fn initialize(
    endpoint: &Arc<Inner>,
    caller: &Caller,
    headers: &HeaderMap,
    message: Message<'_>,
) -> Result<Step, Refusal> {
    if headers.contains_key(headers::SESSION_ID) {
        let why = RpcError::invalid_request("initialize opens a session; it does not belong into one");
        return Err(bad_request(Reason::Session, &message, &why));
    }
    let conversation = endpoint.converse(caller.connection(headers::of_session(headers)));
    note_accept(&conversation, headers, AcceptRule::Post);
    let outlet = conversation.open_outlet(id_of(&message).cloned());
    conversation.receive(outlet.number, message);
    let unanswered = || Refusal::fault("the session cannot be opened");
    // The engine answers by itself, and so at once.
    let answer = outlet.try_answer().ok_or_else(unanswered)?;
    if conversation.session_rules().is_none() {
        let status = response::of_answer(Lifecycle::Handshake, answer.answer().flatten());
        let why = error_log::message_of(&answer.json).unwrap_or_default();
        return Err(Refusal::answered(status, Reason::Message, excerpt(&why), answer.json));
    }
    let response = endpoint.answer_alone(Lifecycle::Handshake, answer);
    Ok(Step::Open(conversation, response))
}

async fn open(
    endpoint: &Inner,
    caller: &Caller,
    conversation: Arc<SessionDriver>,
    mut response: Response,
) -> Result<Response, Refusal> {
    let session = endpoint.open_session(SessionTransport::Streamable, caller, conversation).await?;
    if let Ok(id) = HeaderValue::try_from(session.id.reveal()) {
        response.headers_mut().insert(headers::SESSION_ID, id);
    }
    Ok(response)
}

/// A batch, which only one revision has; the engine of the session knows whether it is that one.
fn batch(endpoint: &Inner, caller: &Caller, headers: &HeaderMap, body: &[u8]) -> Result<Step, Refusal> {
    let session = find_and_note(endpoint, caller, headers).map_err(|refusal| refusal.said_to(None))?;
    let conversation = session.conversation.clone();
    let rules = conversation.session_rules().unwrap_or(Revision::LATEST_SESSION.rules());
    let outlet = conversation.open_outlet(None);
    conversation.receive_bytes(outlet.number, body);
    if !has_requests(body) {
        let refused = outlet.try_answer();
        conversation.close_channel(outlet.number);
        return Ok(match refused {
            Some(answer) => Step::Respond(endpoint.json(StatusCode::BAD_REQUEST, answer.json)),
            None => accepted(),
        });
    }
    note_accept(&conversation, headers, AcceptRule::Post);
    let (lifecycle, style, commit) = (rules.lifecycle, style(endpoint, rules), ResponseMode::InTime);
    Ok(Step::of(endpoint, Exchange { conversation, outlet, lifecycle, style, commit, guard: None }))
}

fn has_requests(body: &[u8]) -> bool {
    let messages: Vec<Value> = serde_json::from_slice(body).unwrap_or_default();
    messages.iter().any(|message| message.get("id").is_some() && message.get("method").is_some())
}

pub(crate) fn style(endpoint: &Inner, rules: &Rules) -> SseFormat {
    SseFormat {
        ids: rules.resumption != Resumption::Never,
        retry: (rules.resumption == Resumption::Polling).then_some(endpoint.options.retry),
        keep_alive: endpoint.options.keep_alive,
    }
}
