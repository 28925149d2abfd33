//! `GET`: the standing stream of a session, or one that broke, taken up again.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use refmcp_proto::jsonrpc::encode::{self, ResponseId};
use refmcp_proto::jsonrpc::{RequestId, RpcError};
use refmcp_proto::revision::Revision;
use refmcp_server::backplane::{AttachOutcome, ReadFrom, StreamNumber, Unavailable};

use crate::access::caller::Caller;
use crate::endpoint::Inner;
use crate::ops::error_log;
use crate::refusal::{Reason, Refusal};
use crate::request::headers::AcceptRule;
use crate::request::post::style;
use crate::request::{headers, websocket};
use crate::session::driver::SessionDriver;
use crate::session::find_and_note;
use crate::stream::sse::{self, EventSource, SseFormat};

pub(crate) async fn get(
    endpoint: &Arc<Inner>,
    caller: Caller,
    request: Request,
) -> Result<Response, Refusal> {
    let headers = request.headers();
    if websocket::is_upgrade(headers) {
        return websocket::upgrade(endpoint, &caller, request);
    }
    if headers::names_stateless(headers) {
        return Err(Refusal::method(&["POST"], "this revision has no GET"));
    }
    let session = find_and_note(endpoint, &caller, headers)?;
    headers::check_accepts_events(headers, endpoint.options.require_accept)?;
    let conversation = &session.conversation;
    if let Some(finding) = headers::absent_accept(headers, AcceptRule::Get) {
        conversation.note(finding);
    }
    let rules = conversation.session_rules().unwrap_or(Revision::LATEST_SESSION.rules());
    let style = style(endpoint, rules);
    match last_event(headers)? {
        None => standing(endpoint, conversation, style).await,
        Some(event) => resume(endpoint, conversation, event, style).await,
    }
}

fn last_event(headers: &HeaderMap) -> Result<Option<(StreamNumber, u64)>, Refusal> {
    let bad = |why: String| Refusal::bad(Reason::EventId, why);
    let Some(text) = headers::value(headers, &headers::LAST_EVENT_ID).map_err(bad)? else { return Ok(None) };
    let unknown = || bad("Last-Event-ID names no event of ours".to_owned());
    sse::parse_event_id(text).map(Some).ok_or_else(unknown)
}

/// What belongs to no request and was not read before. Whoever asks for it last gets it.
async fn standing(
    endpoint: &Arc<Inner>,
    conversation: &Arc<SessionDriver>,
    style: SseFormat,
) -> Result<Response, Refusal> {
    let held = (endpoint.reads()?, conversation.add_reader());
    let mut beginning = Vec::new();
    let read =
        conversation.read(StreamNumber::GET, ReadFrom::Unread).await.map_err(|fault| unavailable(&fault))?;
    let source = match read {
        None => EventSource::ResponseStream(conversation.standing().attach()),
        Some(Ok(reading)) => {
            sse::prime(&mut beginning, StreamNumber::GET, style);
            EventSource::Log(reading)
        }
        Some(Err(AttachOutcome::Unknown)) => {
            return Err(Refusal::new(StatusCode::NOT_FOUND, Reason::Session, "the session has ended"));
        }
        Some(Err(_)) => return Err(Refusal::fault("the stream cannot be read")),
    };
    Ok(sse::response(endpoint, source, style, beginning, sse::held(held)))
}

/// A stream that broke, from where it broke.
async fn resume(
    endpoint: &Arc<Inner>,
    conversation: &Arc<SessionDriver>,
    (number, after): (StreamNumber, u64),
    style: SseFormat,
) -> Result<Response, Refusal> {
    let bad = |why: &'static str| Err(Refusal::bad(Reason::EventId, why));
    let held = (endpoint.reads()?, conversation.add_reader());
    match conversation.read(number, ReadFrom::After(after)).await.map_err(|fault| unavailable(&fault))? {
        Some(Ok(reading)) => {
            Ok(sse::response(endpoint, EventSource::Log(reading), style, Vec::new(), sse::held(held)))
        }
        Some(Err(AttachOutcome::Gone { request })) => lost(request.as_ref()),
        Some(Err(AttachOutcome::Beyond)) => bad("Last-Event-ID is beyond the end of its stream"),
        // An empty stream would only make the client come back again.
        Some(Err(AttachOutcome::Ended)) => bad("the stream has ended with this event; nothing follows"),
        Some(Err(AttachOutcome::Unknown | AttachOutcome::Reading { .. })) => {
            bad("Last-Event-ID names no stream of this session")
        }
        None => bad("streams of this revision cannot be taken up again"),
    }
}

/// The shared state cannot be reached.
pub(crate) fn unavailable(fault: &Unavailable) -> Refusal {
    Refusal::full(Reason::Fault, "the state of this session cannot be reached now", 1)
        .about(fault.to_string())
}

/// What should follow is gone: said aloud, as the answer to the request, so that nobody waits for it.
fn lost(request: Option<&RequestId>) -> Result<Response, Refusal> {
    let why = "the messages after this event are no longer kept; the outcome is unknown";
    let Some(id) = request else { return Err(Refusal::bad(Reason::EventId, why)) };
    let (mut json, error) = (Vec::new(), RpcError::internal(why));
    error_log::found(&error);
    let written = encode::error(&mut json, ResponseId::Id(id), &error);
    written.map_err(|_| Refusal::fault("the answer cannot be written"))?;
    Ok(sse::single(&String::from_utf8_lossy(&json)))
}
