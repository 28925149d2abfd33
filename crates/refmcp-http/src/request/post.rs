//! `POST`: a message of the client. The message itself decides which lifecycle it belongs to; headers alone never do.

use std::sync::Arc;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use refmcp_proto::engine::message_checks;
use refmcp_proto::engine::server::{missing_request_meta, requested_revision};
use refmcp_proto::jsonrpc::{Incoming, Message, Params, RequestId, RpcError, code, decode, excerpt};
use refmcp_proto::revision::{Lifecycle, Method, Resumption, Revision};
use refmcp_server::Connection;
use serde_json::{Value, json};

use crate::access::caller::Caller;
use crate::access::scopes;
use crate::endpoint::EndpointState;
use crate::ops::log;
use crate::refusal::{Reason, Refusal};
use crate::request::body;
use crate::request::headers::{self, AcceptRule};
use crate::request::response::{CancelOnDrop, Exchange, ResponseMode, status_of_response};
use crate::session::SessionTransport;
use crate::session::driver::SessionDriver;
use crate::session::streams::Received;
use crate::stream::response_stream::ResponseStream;
use crate::stream::sse::SseFormat;

pub(crate) async fn post(
    endpoint: &Arc<EndpointState>,
    caller: Caller,
    head: Parts,
    body: Body,
) -> Result<Response, Refusal> {
    if let Err(refusal) = body::check_type(&head.headers) {
        return Err(Box::pin(body::refuse_unread(&head.headers, body, refusal)).await);
    }
    let body = body::read(endpoint, body, endpoint.options.max_message_size).await?;
    match receive(endpoint, &caller, head, &body)? {
        Step::Respond(response) => Ok(response),
        Step::Wait(exchange) => Box::pin(exchange.response(endpoint)).await,
        Step::Open(driver, response) => open_session(endpoint, &caller, driver, response).await,
    }
}

/// What is left to do once a message was received. Receiving never waits, so no message is kept across an await.
enum Step {
    Respond(Response),
    Wait(Box<Exchange>),
    /// Open a session for a client whose `initialize` was answered with this response.
    Open(SessionDriver, Response),
}

impl Step {
    fn accepted() -> Self {
        Self::Respond(StatusCode::ACCEPTED.into_response())
    }

    /// The response, at once if the answer is there.
    fn respond(
        endpoint: &EndpointState,
        received: Received,
        lifecycle: Lifecycle,
        wait: impl FnOnce(Arc<ResponseStream>) -> Exchange,
    ) -> Self {
        match received {
            Received::Response(answer) => Self::Respond(endpoint.json_response(lifecycle, answer)),
            Received::Stream(stream) => Self::Wait(Box::new(wait(stream))),
        }
    }

    /// The same for a request of a session.
    fn respond_in_session(
        endpoint: &EndpointState,
        driver: SessionDriver,
        request: Option<RequestId>,
        received: Received,
        mode: ResponseMode,
    ) -> Self {
        Self::respond(endpoint, received, Lifecycle::Handshake, |stream| {
            let format = SseFormat::new(driver.rules().resumption, &endpoint.options);
            Exchange { driver, stream, request, lifecycle: Lifecycle::Handshake, format, mode, guard: None }
        })
    }
}

fn receive(
    endpoint: &Arc<EndpointState>,
    caller: &Caller,
    head: Parts,
    body: &[u8],
) -> Result<Step, Refusal> {
    let headers = &head.headers;
    let incoming = match decode(body, &endpoint.limits()) {
        Ok(incoming) => incoming,
        Err(fault) => {
            // It may have been a request.
            check_accept(endpoint, headers)?;
            log::rpc_error_found(&fault.error);
            let finding = message_checks::malformed(&fault);
            match endpoint.find_session(caller, headers) {
                Ok(session) => session.driver.note(Some(finding)),
                Err(_) => endpoint.server.record(None, &finding),
            }
            return Err(Refusal::rpc(Reason::Message, fault.id.as_ref(), &fault.error));
        }
    };
    if expects_response(&incoming) {
        check_accept(endpoint, headers)?;
    }
    // A session of another caller is refused below.
    let session = || endpoint.find_session(caller, headers).ok();
    scopes::check(endpoint, caller, &head, session, &incoming)?;
    match incoming {
        Incoming::Batch(_) => batch(endpoint, caller, headers, body),
        Incoming::One(message) => single(endpoint, caller, head.headers, message),
    }
}

/// Whether the client accepts both kinds of responses.
fn check_accept(endpoint: &EndpointState, headers: &HeaderMap) -> Result<(), Refusal> {
    let kinds = ["application/json", "text/event-stream"];
    headers::check_accept(headers, endpoint.options.require_accept, kinds)
}

/// Whether a body has a JSON-RPC response. Notifications and responses have none, so their `Accept` does not matter.
fn expects_response(incoming: &Incoming<'_>) -> bool {
    let is_request = |message: &Message<'_>| matches!(message, Message::Request(_));
    match incoming {
        Incoming::One(message) => is_request(message),
        // A malformed message in a batch is answered with an error.
        Incoming::Batch(messages) => {
            messages.is_empty() || messages.iter().any(|message| message.as_ref().map_or(true, is_request))
        }
    }
}

fn single(
    endpoint: &Arc<EndpointState>,
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
    // The body names no revision; the header can still show that it should have.
    match named.map(str::parse::<Revision>) {
        Some(Ok(revision)) if revision.lifecycle() == Lifecycle::PerRequest => {
            record_mistakes(endpoint, &message);
            match message {
                Message::Request(_) => Err(bad_request(Reason::Message, &message, &missing_request_meta())),
                Message::Notification(_) | Message::Response(_) => Ok(Step::accepted()),
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

fn id_of<'a>(message: &'a Message<'_>) -> Option<&'a RequestId> {
    match message {
        Message::Request(request) => Some(&request.id),
        Message::Notification(_) | Message::Response(_) => None,
    }
}

/// Records what is wrong with a message that no engine receives.
fn record_mistakes(endpoint: &EndpointState, message: &Message<'_>) {
    message_checks::client_message(message).for_each(|finding| endpoint.server.record(None, &finding));
}

fn bad_request(reason: Reason, message: &Message<'_>, error: &RpcError) -> Refusal {
    log::rpc_error_found(error);
    Refusal::rpc(reason, id_of(message), error)
}

fn unsupported(endpoint: &EndpointState, requested: &str) -> RpcError {
    let supported: Vec<&str> = endpoint.config.revisions.iter().map(|revision| revision.as_str()).collect();
    RpcError::new(code::UNSUPPORTED_VERSION, "unsupported MCP-Protocol-Version")
        .with_data(json!({ "supported": supported, "requested": excerpt(requested) }))
}

/// A message of a revision without sessions.
fn stateless(
    endpoint: &Arc<EndpointState>,
    caller: &Caller,
    headers: HeaderMap,
    version: &str,
    message: Message<'_>,
) -> Result<Step, Refusal> {
    let Message::Request(request) = &message else {
        record_mistakes(endpoint, &message);
        return Ok(Step::accepted());
    };
    let (method, params) = (&request.method, &request.params);
    if let Err(error) = headers::check_mirrored(&headers, &endpoint.server, version, method, params) {
        return Err(bad_request(Reason::Message, &message, &error));
    }
    let finding = headers::missing_accept(&headers, AcceptRule::StatelessPost);
    let connection =
        Connection { scopes: caller.scopes(), ..caller.connection(headers::of_request(headers)) };
    let driver = endpoint.open_driver(connection);
    driver.note(finding);
    if Method::known(&request.method) == Some(Method::Listen) {
        endpoint.add_listener(&driver);
    }
    let request = Some(request.id.clone());
    let received =
        driver.exchange(usize::MAX, |engine, now, exchange| engine.message(now, exchange, message));
    let received = received.ok_or_else(too_many_streams)?;
    Ok(Step::respond(endpoint, received, Lifecycle::PerRequest, |stream| {
        let guard = CancelOnDrop { driver: driver.clone(), exchange: stream.exchange };
        Exchange {
            driver,
            stream,
            request,
            lifecycle: Lifecycle::PerRequest,
            format: SseFormat::new(Resumption::Never, &endpoint.options),
            // The status is held back however long the answer takes: an error that is found late has its own status.
            mode: ResponseMode::StreamOnMessage,
            guard: Some(guard),
        }
    }))
}

/// A message of a session, or the `initialize` that opens one.
fn in_session(
    endpoint: &Arc<EndpointState>,
    caller: &Caller,
    headers: &HeaderMap,
    message: Message<'_>,
) -> Result<Step, Refusal> {
    if let Message::Request(request) = &message
        && request.method == Method::Initialize.name()
    {
        return initialize(endpoint, caller, headers, message);
    }
    let session = endpoint.session_of_request(caller, headers);
    let driver = session.map_err(|refusal| refusal.into_rpc_error(id_of(&message)))?.driver.clone();
    let Message::Request(request) = &message else {
        driver.receive(|engine, now, exchange| engine.message(now, exchange, message));
        // After `initialized` a client may be silent for long.
        driver.shrink();
        return Ok(Step::accepted());
    };
    let wants_progress = request.params.meta.is_some_and(|meta| meta.contains("\"progressToken\""));
    let mode = if wants_progress { ResponseMode::Stream } else { ResponseMode::StreamAfterDelay };
    driver.note(headers::missing_accept(headers, AcceptRule::Post));
    let request = Some(request.id.clone());
    let most = endpoint.options.max_streams;
    let received = driver.exchange(most, |engine, now, exchange| engine.message(now, exchange, message));
    let received = received.ok_or_else(too_many_streams)?;
    Ok(Step::respond_in_session(endpoint, driver, request, received, mode))
}

fn initialize(
    endpoint: &Arc<EndpointState>,
    caller: &Caller,
    headers: &HeaderMap,
    message: Message<'_>,
) -> Result<Step, Refusal> {
    if headers.contains_key(headers::SESSION_ID) {
        let why = RpcError::invalid_request("initialize opens a session; it does not belong into one");
        return Err(bad_request(Reason::Session, &message, &why));
    }
    let driver = endpoint.open_driver(caller.connection(headers::of_session(headers)));
    driver.note(headers::missing_accept(headers, AcceptRule::Post));
    let received =
        driver.exchange(usize::MAX, |engine, now, exchange| engine.message(now, exchange, message));
    // The engine answers `initialize` itself, without a handler.
    let Some(Received::Response(answer)) = received else {
        return Err(Refusal::internal("the session cannot be opened"));
    };
    if driver.session_rules().is_none() {
        let status = status_of_response(Lifecycle::Handshake, answer.error_code());
        let why = log::rpc_error_message(&answer.json).unwrap_or_default();
        return Err(Refusal::answered(status, Reason::Message, excerpt(&why), answer.json));
    }
    let response = endpoint.json_response(Lifecycle::Handshake, answer);
    Ok(Step::Open(driver, response))
}

async fn open_session(
    endpoint: &EndpointState,
    caller: &Caller,
    driver: SessionDriver,
    mut response: Response,
) -> Result<Response, Refusal> {
    let session = endpoint.open_session(SessionTransport::Streamable, caller, driver).await?;
    if let Ok(id) = HeaderValue::try_from(session.id.reveal()) {
        response.headers_mut().insert(headers::SESSION_ID, id);
    }
    Ok(response)
}

/// A batch. One revision has batches; the session's engine knows whether it is that one.
fn batch(
    endpoint: &EndpointState,
    caller: &Caller,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Step, Refusal> {
    let session = endpoint.session_of_request(caller, headers);
    let driver = session.map_err(|refusal| refusal.into_rpc_error(None))?.driver.clone();
    let most = endpoint.options.max_streams;
    let received = driver.exchange(most, |engine, now, exchange| engine.receive(now, exchange, body));
    let received = received.ok_or_else(too_many_streams)?;
    if !has_requests(body) {
        return Ok(match received {
            Received::Response(answer) => Step::Respond(endpoint.json(StatusCode::BAD_REQUEST, answer.json)),
            Received::Stream(stream) => {
                driver.close_exchange(stream.exchange);
                Step::accepted()
            }
        });
    }
    driver.note(headers::missing_accept(headers, AcceptRule::Post));
    Ok(Step::respond_in_session(endpoint, driver, None, received, ResponseMode::StreamAfterDelay))
}

fn too_many_streams() -> Refusal {
    Refusal::too_many(Reason::Streams, "too many streams in this session", 1)
}

fn has_requests(body: &[u8]) -> bool {
    let messages: Vec<Value> = serde_json::from_slice(body).unwrap_or_default();
    messages.iter().any(|message| message.get("id").is_some() && message.get("method").is_some())
}
