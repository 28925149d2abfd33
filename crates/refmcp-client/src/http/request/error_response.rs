//! Error responses, and successful ones that are not what was asked for.

use hyper::header::{self, HeaderValue};
use hyper::{HeaderMap, StatusCode};
use refmcp_proto::engine::client::TransportError;
use refmcp_proto::jsonrpc::{Incoming, Limits, Message, RpcError, decode, excerpt};

use super::headers::{ContentType, shown};
use crate::http::connection::HttpResponse;

/// Bytes of an error's body that are read.
const MAX_BODY: usize = 64 << 10;
/// Bytes of a challenge that are kept.
const MAX_CHALLENGE: usize = 8 << 10;

/// The error of a response with another status than success. 404 means that the session has ended, if the request had
/// one.
pub(crate) async fn refused(mut response: HttpResponse, session: Option<&HeaderValue>) -> TransportError {
    let status = response.status;
    if let Some(unauthorized) = unauthorized(status, &response.headers) {
        response.discard().await;
        return unauthorized;
    }
    if status == StatusCode::NOT_FOUND && session.is_some() {
        response.discard().await;
        return TransportError::SessionLost;
    }
    let body = response.body.beginning(MAX_BODY).await;
    if body.len() < MAX_BODY {
        response.body.finish();
    }
    if !body.is_empty() {
        response.observed.received(&body);
    }
    let error = error_in(&body);
    let body = excerpt(String::from_utf8_lossy(&body).trim());
    let retry_after = shown(&response.headers, &header::RETRY_AFTER).map(Into::into);
    TransportError::Refused { status: status.as_u16(), error, body, retry_after }
}

fn error_in(body: &[u8]) -> Option<RpcError> {
    match decode(body, &Limits::default()) {
        Ok(Incoming::One(Message::Response(response))) => response.result.err(),
        _ => None,
    }
}

/// The error of a response that asks for authorization. Without a challenge, 403 is a refusal of another kind, which the
/// body explains.
pub(crate) fn unauthorized(status: StatusCode, headers: &HeaderMap) -> Option<TransportError> {
    let challenge = challenge(headers);
    let unauthorized =
        status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN && challenge.is_some();
    unauthorized.then(|| TransportError::Unauthorized { status: status.as_u16(), challenge })
}

fn challenge(headers: &HeaderMap) -> Option<String> {
    let mut challenge = String::new();
    for value in headers.get_all(header::WWW_AUTHENTICATE) {
        let value = String::from_utf8_lossy(value.as_bytes());
        if challenge.len() + value.len() > MAX_CHALLENGE {
            break;
        }
        if !challenge.is_empty() {
            challenge.push_str(", ");
        }
        challenge.push_str(&value);
    }
    (!challenge.is_empty()).then_some(challenge)
}

/// Refuses a content coding that was not asked for.
pub(crate) fn check_encoding(headers: &HeaderMap) -> Result<(), TransportError> {
    match headers.get(header::CONTENT_ENCODING) {
        Some(coding) if !coding.as_bytes().eq_ignore_ascii_case(b"identity") => {
            let coding = shown(headers, &header::CONTENT_ENCODING).unwrap_or_default();
            Err(TransportError::Misbehaved(format!(
                "the response is packed as {coding}, which was not asked for"
            )))
        }
        _ => Ok(()),
    }
}

/// The error of a successful response with the wrong content type.
pub(crate) async fn unexpected(mut response: HttpResponse, wanted: &str) -> TransportError {
    let status = response.status.as_u16();
    if ContentType::of(&response.headers) == ContentType::Other
        && !response.headers.contains_key(header::CONTENT_TYPE)
    {
        response.discard().await;
        return TransportError::Misbehaved(format!(
            "status {status} without content of a known type, where {wanted} was due"
        ));
    }
    let kind = shown(&response.headers, &header::CONTENT_TYPE).unwrap_or_default();
    let body = response.body.beginning(MAX_BODY).await;
    response.observed.invalid_input(&body, format_args!("content of type {kind}"));
    let body = excerpt(String::from_utf8_lossy(&body).trim());
    TransportError::Misbehaved(format!(
        "status {status} with content of type {kind}, where {wanted} was due: {body}"
    ))
}
