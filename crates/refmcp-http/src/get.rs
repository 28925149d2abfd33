//! `GET`: the standing stream of a session, or one that broke, taken up again.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use refmcp_proto::jsonrpc::encode::{self, AnswerTo};
use refmcp_proto::jsonrpc::{RequestId, RpcError};
use refmcp_proto::revision::{Lifecycle, Revision};

use crate::conversation::{Conversation, STANDING};
use crate::endpoint::Endpoint;
use crate::post::{find_session, style};
use crate::sse::{self, Style};
use crate::{headers, websocket};

pub(crate) async fn get(State(endpoint): State<Endpoint>, request: Request) -> Response {
    if websocket::is_upgrade(request.headers()) {
        return websocket::upgrade_request(endpoint, request).await;
    }
    let headers = request.headers();
    if names_stateless(headers) {
        return (StatusCode::METHOD_NOT_ALLOWED, "this revision has no GET").into_response();
    }
    let session = match find_session(&endpoint.inner, headers) {
        Ok(session) => session,
        Err(refusal) => return refusal.into_response(),
    };
    if !headers::accepts(headers, "text/event-stream") {
        return (StatusCode::NOT_ACCEPTABLE, "Accept must allow text/event-stream").into_response();
    }
    let conversation = &session.conversation;
    let rules = conversation.session_rules().unwrap_or(Revision::LATEST_SESSION.rules());
    match last_event(headers) {
        Ok(None) => standing(conversation, style(&endpoint.inner, rules)),
        Ok(Some((stream, after))) => resume(conversation, stream, after, style(&endpoint.inner, rules)),
        Err(why) => (StatusCode::BAD_REQUEST, why).into_response(),
    }
}

/// Whether the headers name a revision without sessions.
pub(crate) fn names_stateless(headers: &HeaderMap) -> bool {
    let named = headers::value(headers, &headers::PROTOCOL_VERSION).ok().flatten();
    named
        .and_then(|version| version.parse::<Revision>().ok())
        .is_some_and(|revision| revision.lifecycle() == Lifecycle::PerRequest)
}

fn last_event(headers: &HeaderMap) -> Result<Option<(u64, u64)>, String> {
    let Some(text) = headers::value(headers, &headers::LAST_EVENT_ID)? else { return Ok(None) };
    sse::parse_event_id(text).map(Some).ok_or_else(|| "Last-Event-ID names no event of ours".to_owned())
}

/// What belongs to no request and was not read before. Whoever asks for it last gets it.
fn standing(conversation: &Conversation, style: Style) -> Response {
    let stream = conversation.stream(STANDING);
    let reader = stream.and_then(|stream| stream.attach(stream.unread_from()));
    match reader {
        Some(reader) => sse::response(reader, style, Vec::new(), None),
        None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn resume(conversation: &Conversation, number: u64, after: u64, style: Style) -> Response {
    let Some(stream) = conversation.stream(number) else {
        return if conversation.had_stream(number) {
            lost(None)
        } else {
            (StatusCode::BAD_REQUEST, "Last-Event-ID names no stream of this session").into_response()
        };
    };
    if stream.ends_with(after) {
        // An empty stream would only make the client come back again.
        return (StatusCode::BAD_REQUEST, "the stream has ended with this event; nothing follows")
            .into_response();
    }
    if let Some(reader) = stream.attach(after) {
        // The stream has begun long ago; it is not primed again.
        return sse::response(reader, Style { retry: None, ..style }, Vec::new(), None);
    }
    if after > stream.kept_from() {
        return (StatusCode::BAD_REQUEST, "Last-Event-ID is beyond the end of its stream").into_response();
    }
    lost(stream.request.as_ref())
}

/// What should follow is gone: said aloud, as the answer to the request, so that nobody waits for it.
fn lost(request: Option<&RequestId>) -> Response {
    let error =
        RpcError::internal("the messages after this event are no longer kept; the outcome is unknown");
    let Some(id) = request else {
        return (StatusCode::BAD_REQUEST, error.message).into_response();
    };
    let mut json = Vec::new();
    if encode::error(&mut json, AnswerTo::Id(id), &error).is_err() {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    sse::single(&String::from_utf8_lossy(&json))
}
