//! What a response that is no answer means.

use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{HeaderMap, StatusCode};
use refmcp_proto::engine::client::TransportError;
use refmcp_proto::jsonrpc::{Incoming, Limits, Message, RpcError, decode, excerpt};

use super::headers::{Content, shown};
use super::response::HttpResponse;

/// Bytes of an error's body that are read.
const READ: usize = 64 << 10;
/// Bytes of a challenge that are kept.
const CHALLENGE: usize = 8 << 10;

/// What it means that a request was refused.
pub(super) async fn refused(mut answer: HttpResponse, session: Option<&HeaderValue>) -> TransportError {
    let status = answer.status;
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        let challenge = challenge(&answer.headers);
        answer.body.drain().await;
        return TransportError::Unauthorized { status: status.as_u16(), challenge };
    }
    if status == StatusCode::NOT_FOUND && session.is_some() {
        answer.body.drain().await;
        return TransportError::SessionLost;
    }
    let body = answer.body.beginning(READ).await;
    if body.len() < READ {
        answer.body.finish();
    }
    let error = error_in(&body);
    let body = excerpt(String::from_utf8_lossy(&body).trim());
    TransportError::Refused { status: status.as_u16(), error, body }
}

fn error_in(body: &[u8]) -> Option<RpcError> {
    match decode(body, &Limits::default()) {
        Ok(Incoming::One(Message::Response(response))) => response.result.err(),
        _ => None,
    }
}

fn challenge(headers: &HeaderMap) -> Option<String> {
    let mut challenge = String::new();
    for value in headers.get_all(header::WWW_AUTHENTICATE) {
        let value = String::from_utf8_lossy(value.as_bytes());
        if challenge.len() + value.len() > CHALLENGE {
            break;
        }
        if !challenge.is_empty() {
            challenge.push_str(", ");
        }
        challenge.push_str(&value);
    }
    (!challenge.is_empty()).then_some(challenge)
}

/// Whether a response is packed in a way that nobody asked for.
pub(super) fn check_encoding(headers: &HeaderMap) -> Result<(), TransportError> {
    match headers.get(header::CONTENT_ENCODING) {
        Some(coding) if !coding.as_bytes().eq_ignore_ascii_case(b"identity") => {
            let coding = named(headers, &header::CONTENT_ENCODING);
            Err(TransportError::Misbehaved(format!(
                "the response is packed as {coding}, which was not asked for"
            )))
        }
        _ => Ok(()),
    }
}

/// What it means that a response has content of another kind than it should.
pub(super) async fn unexpected(mut answer: HttpResponse, wanted: &str) -> TransportError {
    let status = answer.status.as_u16();
    if Content::of(&answer.headers) == Content::Other && !answer.headers.contains_key(header::CONTENT_TYPE) {
        answer.body.drain().await;
        return TransportError::Misbehaved(format!(
            "status {status} without content of a known type, where {wanted} was due"
        ));
    }
    let kind = named(&answer.headers, &header::CONTENT_TYPE);
    let body = answer.body.beginning(READ).await;
    let body = excerpt(String::from_utf8_lossy(&body).trim());
    TransportError::Misbehaved(format!(
        "status {status} with content of type {kind}, where {wanted} was due: {body}"
    ))
}

fn named(headers: &HeaderMap, name: &HeaderName) -> String {
    shown(headers, name).unwrap_or_default()
}
