//! `GET` and `DELETE` of a session: its GET stream, resuming a stream, and ending the session.

use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use refmcp_proto::http::{AcceptRule, missing_accept, not_acceptable};
use refmcp_proto::jsonrpc::{RequestId, RpcError};
use refmcp_server::backplane::{AttachOutcome, ReadFrom, StreamNumber};
use refmcp_server::transport::Observed;

use crate::access::caller::Caller;
use crate::endpoint::EndpointState;
use crate::ops::refusal_log;
use crate::refusal::{Reason, Refusal};
use crate::request::{headers, response};
use crate::session::driver::SessionDriver;
use crate::stream::sse::{self, EventSource, SseFormat};

pub(crate) async fn get(
    endpoint: &Arc<EndpointState>,
    caller: Caller,
    head: Parts,
) -> Result<Response, Refusal> {
    let headers = &head.headers;
    if headers::is_stateless(headers) {
        return Err(Refusal::method(&["POST"], "this revision has no GET"));
    }
    let session = endpoint.find_session(&caller, headers)?;
    let driver = &session.driver;
    let refused = |refusal: &Refusal| {
        let finding = not_acceptable(refusal.why.to_string(), AcceptRule::Get);
        driver.record_refused_finding(&caller.observed, Some(finding));
    };
    let accept =
        headers::check_accepts_events(headers, endpoint.options.require_accept).inspect_err(refused)?;
    driver.record_finding(missing_accept(accept, AcceptRule::Get));
    let format = SseFormat::new(driver.rules().resumption, &endpoint.options);
    let observed = caller.observed.stream();
    match last_event_id(headers)? {
        None => get_stream(endpoint, driver, format, observed).await,
        Some(event) => {
            let resumed = resume(endpoint, driver, event, format, observed).await?;
            session.stream_resumed(event.0);
            Ok(resumed)
        }
    }
}

pub(crate) async fn delete(
    endpoint: &EndpointState,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    if headers::is_stateless(&headers) {
        return Err(Refusal::method(&["POST"], "this revision has no DELETE"));
    }
    let session = endpoint.find_session(&caller, &headers)?;
    endpoint.sessions.close_now(&session).await?;
    caller.observed.closes("the client ended the session");
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<(StreamNumber, u64)>, Refusal> {
    let bad = |why: String| Refusal::bad_request(Reason::EventId, why);
    let Some(text) = headers::value(headers, &headers::LAST_EVENT_ID).map_err(bad)? else { return Ok(None) };
    let unknown = || bad("Last-Event-ID names no event of ours".to_owned());
    sse::parse_event_id(text).map(Some).ok_or_else(unknown)
}

/// Messages that belong to no request and were not read before. The latest request for them gets them.
async fn get_stream(
    endpoint: &Arc<EndpointState>,
    driver: &SessionDriver,
    format: SseFormat,
    observed: Observed,
) -> Result<Response, Refusal> {
    let guards = (endpoint.acquire_stream()?, driver.add_reader());
    let (source, beginning) = match driver.read(StreamNumber::GET, ReadFrom::Unread).await? {
        None => (EventSource::Stream(driver.get_stream().attach()), Vec::new()),
        Some(Ok(reading)) => (EventSource::Log(reading), sse::priming_event(StreamNumber::GET, format)),
        Some(Err(AttachOutcome::Unknown)) => return Err(Refusal::unknown_session("the session has ended")),
        Some(Err(_)) => return Err(Refusal::internal("the stream cannot be read")),
    };
    Ok(sse::response(endpoint, source, format, beginning, guards, observed))
}

/// A stream that broke, after the last event that the client received.
async fn resume(
    endpoint: &Arc<EndpointState>,
    driver: &SessionDriver,
    (number, after): (StreamNumber, u64),
    format: SseFormat,
    observed: Observed,
) -> Result<Response, Refusal> {
    let bad = |why: &'static str| Err(Refusal::bad_request(Reason::EventId, why));
    let guards = (endpoint.acquire_stream()?, driver.add_reader());
    match driver.read(number, ReadFrom::After(after)).await? {
        Some(Ok(reading)) => {
            Ok(sse::response(endpoint, EventSource::Log(reading), format, Vec::new(), guards, observed))
        }
        Some(Err(AttachOutcome::Gone { request })) => answer_gone(request.as_ref()),
        Some(Err(AttachOutcome::Beyond)) => bad("Last-Event-ID is beyond the end of its stream"),
        // The client would only resume an empty stream again.
        Some(Err(AttachOutcome::Ended)) => bad("the stream has ended with this event; nothing follows"),
        Some(Err(AttachOutcome::Unknown | AttachOutcome::Reading { .. })) => {
            bad("Last-Event-ID names no stream of this session")
        }
        None => bad("streams of this revision cannot be resumed"),
    }
}

/// Answers the request of a stream whose messages are no longer kept with an error, so that the client stops waiting.
fn answer_gone(request: Option<&RequestId>) -> Result<Response, Refusal> {
    let why = "the messages after this event are no longer kept; the outcome is unknown";
    let Some(id) = request else { return Err(Refusal::bad_request(Reason::EventId, why)) };
    let error = RpcError::internal(why);
    refusal_log::rpc_error_found(&error);
    Ok(sse::whole(sse::message_event(&response::encode_error(Some(id), &error))))
}
