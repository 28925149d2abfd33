//! Error responses, and successful ones that are not what was asked for.

use hyper::header::{self, HeaderValue};
use hyper::{HeaderMap, StatusCode};
use refmcp_proto::engine::client::TransportError;
use refmcp_proto::jsonrpc::{Incoming, Limits, Message, RpcError, decode, excerpt};
use serde_json::Value;

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
    if status == StatusCode::NOT_FOUND && session.is_some() {
        response.discard().await;
        return TransportError::SessionLost;
    }
    let headers = std::mem::take(&mut response.headers);
    refusal(status, &headers, &beginning(response).await)
}

/// The same error for want of authorization, with the reason that the body of the response tells.
pub(crate) async fn with_reason(why: TransportError, response: HttpResponse) -> TransportError {
    add_reason(why, reason_in(&beginning(response).await).map(Into::into))
}

/// The same error for want of authorization, with the reason that the server tells.
pub(crate) fn add_reason(why: TransportError, reason: Option<Box<str>>) -> TransportError {
    match (why, reason) {
        (TransportError::Unauthorized { status, challenge, reason: None }, reason) => {
            TransportError::Unauthorized { status, challenge, reason }
        }
        (TransportError::NotAuthorized { why }, Some(reason)) => {
            TransportError::NotAuthorized { why: format!("{why}; the server says: {reason}") }
        }
        (other, _) => other,
    }
}

/// The beginning of a body, which is read no further.
async fn beginning(mut response: HttpResponse) -> Vec<u8> {
    let body = response.body.beginning(MAX_BODY).await;
    if !body.is_empty() {
        response.observed.received(&body);
    }
    if body.len() < MAX_BODY {
        response.body.finish();
    }
    body
}

/// The error of a response with this head, whose body begins like this.
pub(crate) fn refusal(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> TransportError {
    let (challenge, reason) = (challenge(headers), reason_in(body));
    // Without a challenge, 403 is a refusal of another kind, which the body explains.
    if status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN && challenge.is_some() {
        let reason = reason.map(Into::into);
        return TransportError::Unauthorized { status: status.as_u16(), challenge, reason };
    }
    let error = error_in(body);
    let body = reason.unwrap_or_else(|| quoted(body));
    let retry_after = shown(headers, &header::RETRY_AFTER).map(Into::into);
    TransportError::Refused { status: status.as_u16(), error, body, retry_after }
}

/// The reason that the body of an error tells for people: a member of JSON, by the names of OAuth, of JSON-RPC, of problem
/// details (RFC 9457) and of common frameworks, or a plain text. A page of HTML has too much around it.
fn reason_in(body: &[u8]) -> Option<String> {
    const NAMES: [&str; 6] = ["error_description", "detail", "message", "error", "title", "reason"];
    let reason = match serde_json::from_slice::<Value>(body) {
        Ok(Value::String(text)) => text,
        Ok(Value::Object(members)) => NAMES.iter().find_map(|name| match members.get(*name)? {
            Value::String(text) => Some(text.clone()),
            Value::Object(error) => error.get("message")?.as_str().map(str::to_owned),
            _ => None,
        })?,
        Ok(_) => return None,
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    };
    let reason = reason.trim();
    (!reason.is_empty() && !reason.starts_with(['<', '{', '['])).then(|| excerpt(reason))
}

/// The beginning of a body; of a page of HTML, its title, or else the beginning of its text.
fn quoted(body: &[u8]) -> String {
    let body = String::from_utf8_lossy(body);
    let body = body.trim();
    let lower = body.to_ascii_lowercase();
    if !["<!doctype html", "<html"].iter().any(|beginning| lower.starts_with(beginning)) {
        return excerpt(body);
    }
    let title = lower.find("<title").and_then(|at| {
        let end = lower[at..].find("</title")?;
        Some(text_of(&body[at..at + end]))
    });
    match title.filter(|title| !title.is_empty()).unwrap_or_else(|| text_of(body)) {
        text if text.is_empty() => "a page of HTML without text".to_owned(),
        text => format!("a page of HTML: {}", excerpt(&text)),
    }
}

/// What a browser shows of a page: no tags, no scripts, no styles.
fn text_of(page: &str) -> String {
    let mut text = String::new();
    for (tag, shown) in page.split('<').filter_map(|piece| piece.split_once('>')) {
        let tag = tag.to_ascii_lowercase();
        if !["script", "style", "!"].iter().any(|hidden| tag.starts_with(hidden)) {
            text.push(' ');
            text.push_str(shown);
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
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
    if ContentType::from_headers(&response.headers) == ContentType::Other
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
    response.body.finish();
    let body = quoted(&body);
    TransportError::Misbehaved(format!(
        "status {status} with content of type {kind}, where {wanted} was due: {body}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_quoted_by_what_people_see_of_it() {
        let nginx = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1>";
        let script = "<!DOCTYPE html>\n<HTML><style>p{}</style><script>go()</script><body><H1>No</H1>\n<p>Not\there.</p>";
        for (body, shown) in [
            (nginx, "a page of HTML: 502 Bad Gateway"),
            (script, "a page of HTML: No Not here."),
            ("<html><title></title><p>Sign in", "a page of HTML: Sign in"),
            ("<html><title>Ünread", "a page of HTML: Ünread"),
            ("<!doctype html><div id=root></div>", "a page of HTML without text"),
            ("<error>no</error>", "<error>no</error>"),
            (" plain ", "plain"),
        ] {
            assert_eq!(quoted(body.as_bytes()), shown, "{body}");
        }
    }
}
