//! What headers say, and what they must.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::StatusCode;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use refmcp_proto::jsonrpc::{RpcError, code, excerpt};
use refmcp_proto::revision::{Lifecycle, Revision};

use super::reply::{Refusal, refuse};
use crate::bridge::glance::Message;

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const ARGUMENT_PREFIX: &str = "mcp-param-";

/// A header's only value.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(_), Some(_)) => Err(()),
        (Some(value), None) => value.to_str().map(|text| Some(text.trim())).map_err(|_| ()),
    }
}

/// The session that a request names.
pub(super) fn session(headers: &HeaderMap) -> Option<&str> {
    only(headers, &SESSION_ID).ok().flatten()
}

/// A session id that cannot be guessed.
pub(super) fn new_id() -> Result<String, Refusal> {
    let mut bits = [0; 16];
    let unlucky =
        |fault| refuse(StatusCode::INTERNAL_SERVER_ERROR, format_args!("there are no random bits: {fault}"));
    getrandom::fill(&mut bits).map_err(unlucky)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bits)))
}

/// Turns away a method that there is not.
pub(super) fn not_allowed(allowed: &'static str) -> Refusal {
    let mut response = refuse(StatusCode::METHOD_NOT_ALLOWED, format_args!("there is only {allowed} here"));
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}

fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let family = kind.split('/').next().unwrap_or_default();
    let listed = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    listed.flat_map(|value| value.split(',')).any(|range| {
        let name = range.split(';').next().unwrap_or_default().trim();
        let whole_family = name.strip_suffix("/*").is_some_and(|name| name.eq_ignore_ascii_case(family));
        name.eq_ignore_ascii_case(kind) || name == "*/*" || whole_family
    })
}

/// Whether the client takes a stream of events.
pub(super) fn check_takes_events(headers: &HeaderMap) -> Result<(), Refusal> {
    if accepts(headers, "text/event-stream") {
        return Ok(());
    }
    Err(refuse(StatusCode::NOT_ACCEPTABLE, "Accept must allow text/event-stream"))
}

/// Whether the client takes either kind of answer.
pub(super) fn check_takes_answers(headers: &HeaderMap) -> Result<(), Refusal> {
    if accepts(headers, "application/json") && accepts(headers, "text/event-stream") {
        return Ok(());
    }
    Err(refuse(StatusCode::NOT_ACCEPTABLE, "Accept must allow application/json and text/event-stream"))
}

/// Whether the body is JSON, by its own account: a page elsewhere cannot send that without asking first.
pub(super) fn check_is_json(headers: &HeaderMap) -> Result<(), Refusal> {
    let kind = only(headers, &header::CONTENT_TYPE).ok().flatten().unwrap_or_default();
    let name = kind.split(';').next().unwrap_or_default().trim();
    if name.eq_ignore_ascii_case("application/json") && !headers.contains_key(header::CONTENT_ENCODING) {
        return Ok(());
    }
    Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json"))
}

/// Whether the headers name a revision without sessions.
pub(super) fn names_stateless(headers: &HeaderMap) -> bool {
    let named = only(headers, &PROTOCOL_VERSION).ok().flatten();
    let named = named.and_then(|version| version.parse::<Revision>().ok());
    named.is_some_and(|revision| revision.lifecycle() == Lifecycle::PerRequest)
}

/// Checks the headers of a request that stands for itself against its body: intermediaries read the headers, the
/// server reads the body, and both must mean the same.
pub(super) fn check_mirrored(headers: &HeaderMap, message: &Message<'_>) -> Result<(), RpcError> {
    let method = message.method.as_deref().unwrap_or_default();
    same(headers, &PROTOCOL_VERSION, message.meta.revision.as_deref().unwrap_or_default())?;
    same(headers, &METHOD, method)?;
    match message.params.name(method) {
        Some(name) => same(headers, &NAME, &name),
        None => Ok(()),
    }
}

/// What headers repeat of a request's arguments.
pub(super) fn repeated(headers: &HeaderMap) -> Vec<(String, String)> {
    let repeated = headers.iter().filter_map(|(name, value)| {
        let name = name.as_str().strip_prefix(ARGUMENT_PREFIX)?;
        Some((name.to_owned(), decode(value.to_str().ok()?)?.into_owned()))
    });
    repeated.collect()
}

fn same(headers: &HeaderMap, name: &HeaderName, wanted: &str) -> Result<(), RpcError> {
    let mismatch = |why: String| RpcError::new(code::HEADER_MISMATCH, why);
    let found = only(headers, name).map_err(|()| mismatch(format!("more than one {name} header")))?;
    let found = found.ok_or_else(|| mismatch(format!("no {name} header")))?;
    if decode(found).as_deref() == Some(wanted) {
        return Ok(());
    }
    Err(mismatch(format!("{name} is {:?}, but the body says {:?}", excerpt(found), excerpt(wanted))))
}

/// The text of a header; what no header can hold comes in base64 between marks.
fn decode(text: &str) -> Option<Cow<'_, str>> {
    match text.strip_prefix("=?base64?").and_then(|text| text.strip_suffix("?=")) {
        None => Some(text.into()),
        Some(packed) => String::from_utf8(STANDARD.decode(packed).ok()?).ok().map(Cow::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_headers_cannot_hold_is_unpacked() {
        assert_eq!(decode("plain").as_deref(), Some("plain"));
        assert_eq!(decode("=?base64?SGVsbG8sIOS4lueVjA==?=").as_deref(), Some("Hello, 世界"));
        assert_eq!(decode("=?base64?!?="), None);
        let mut headers = HeaderMap::new();
        headers.insert("mcp-param-region", HeaderValue::from_static("=?base64?IHg=?="));
        headers.insert("mcp-method", HeaderValue::from_static("x"));
        assert_eq!(repeated(&headers), [("region".to_owned(), " x".to_owned())]);
    }

    #[test]
    fn names_are_long_and_differ() {
        let (one, other) = (new_id().unwrap(), new_id().unwrap());
        assert!(one.len() == 32 && one != other);
    }
}
