//! HTTP headers of requests, and those of responses that matter.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use hyper::header::{self, HeaderName, HeaderValue};
use refmcp_proto::engine::client::ClientMessageKind;
use refmcp_proto::jsonrpc::excerpt;
use refmcp_proto::revision::{Lifecycle, Rules};

pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
pub(crate) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const ARGUMENT_PREFIX: &str = "mcp-param-";

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON_OR_EVENTS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
pub(crate) const USER_AGENT: HeaderValue =
    HeaderValue::from_static(concat!("refmcp/", env!("CARGO_PKG_VERSION")));

/// Bytes of a session id or event id.
const MAX_ID: usize = 4096;

/// Why a header cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// No name of a header.
    #[error("{0:?} is no name of a header")]
    Name(String),
    /// No value of a header. It is not shown: it may be secret.
    #[error("the value of header {0} has characters that no header can hold")]
    Value(HeaderName),
    /// A header that the transport sets itself.
    #[error("header {0} is set by the transport")]
    Reserved(HeaderName),
}

/// True for headers that the transport sets itself.
pub(crate) fn is_reserved(name: &HeaderName) -> bool {
    const OURS: [HeaderName; 12] = [
        header::ACCEPT,
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::CONTENT_TYPE,
        header::EXPECT,
        header::HOST,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        header::PROXY_AUTHORIZATION,
        LAST_EVENT_ID,
    ];
    OURS.contains(name)
        || matches!(name.as_str(), "keep-alive" | "proxy-connection" | "accept-encoding" | "content-encoding")
        || name.as_str().starts_with("mcp-")
}

/// The headers that all requests of a method have.
pub(crate) struct HeaderTemplates {
    post: HeaderMap,
    get: HeaderMap,
    delete: HeaderMap,
}

impl HeaderTemplates {
    pub(crate) fn new(host: HeaderValue, extra: &HeaderMap) -> Self {
        let mut common = HeaderMap::with_capacity(16);
        common.insert(header::HOST, host);
        common.insert(header::USER_AGENT, USER_AGENT);
        common.extend(extra.clone());
        let (mut post, mut get) = (common.clone(), common.clone());
        post.insert(header::CONTENT_TYPE, JSON);
        post.insert(header::ACCEPT, JSON_OR_EVENTS);
        get.insert(header::ACCEPT, EVENTS);
        Self { post, get, delete: common }
    }

    pub(crate) fn post(
        &self,
        kind: &ClientMessageKind,
        rules: Option<&'static Rules>,
        session: Option<HeaderValue>,
    ) -> HeaderMap {
        let mut headers = self.post.clone();
        add_state(&mut headers, rules, session);
        if rules.is_some_and(|rules| rules.lifecycle == Lifecycle::PerRequest) {
            add_mirrored(&mut headers, kind);
        }
        headers
    }

    pub(crate) fn get(
        &self,
        rules: Option<&'static Rules>,
        session: Option<HeaderValue>,
        last_event: Option<HeaderValue>,
    ) -> HeaderMap {
        let mut headers = self.get.clone();
        add_state(&mut headers, rules, session);
        if let Some(id) = last_event {
            headers.insert(LAST_EVENT_ID, id);
        }
        headers
    }

    pub(crate) fn delete(&self, rules: Option<&'static Rules>, session: HeaderValue) -> HeaderMap {
        let mut headers = self.delete.clone();
        add_state(&mut headers, rules, Some(session));
        headers
    }
}

fn add_state(headers: &mut HeaderMap, rules: Option<&'static Rules>, session: Option<HeaderValue>) {
    if let Some(rules) = rules.filter(|rules| rules.version_header) {
        headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(rules.revision.as_str()));
    }
    if let Some(session) = session {
        headers.insert(SESSION_ID, session);
    }
}

/// Adds the headers of 2026-07-28 that repeat parts of the body for intermediaries.
fn add_mirrored(headers: &mut HeaderMap, kind: &ClientMessageKind) {
    match kind {
        ClientMessageKind::Request { method, name, param_headers } => {
            add_text(headers, METHOD, method);
            if let Some(name) = name {
                add_text(headers, NAME, name);
            }
            for (name, value) in param_headers {
                match HeaderName::try_from(format!("{ARGUMENT_PREFIX}{name}")) {
                    Ok(name) => add_text(headers, name, value),
                    Err(_) => {
                        tracing::warn!(name = %excerpt(name), "no header can have the name of an argument");
                    }
                }
            }
        }
        ClientMessageKind::Notification { method } => add_text(headers, METHOD, method),
        ClientMessageKind::Response => {}
    }
}

fn add_text(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    // What the encoding leaves is printable ASCII, which every header can hold.
    if let Ok(value) = HeaderValue::from_str(&encode(text)) {
        headers.insert(name, value);
    }
}

/// A text for a header; one that no header can hold, or that would be changed on its way, is marked and in base64.
fn encode(text: &str) -> Cow<'_, str> {
    let plain = text.bytes().all(|byte| matches!(byte, 0x20..=0x7E)) && text.trim() == text;
    let marked = text.starts_with("=?base64?") && text.ends_with("?=");
    if plain && !marked { text.into() } else { format!("=?base64?{}?=", STANDARD.encode(text)).into() }
}

/// The session id of a response, if it is valid.
pub(crate) fn session_id(headers: &HeaderMap) -> Result<Option<HeaderValue>, &'static str> {
    let Some(id) = headers.get(SESSION_ID) else { return Ok(None) };
    if id.len() > MAX_ID {
        return Err("its session id is too long");
    }
    if id.is_empty() || !id.as_bytes().iter().all(u8::is_ascii_graphic) {
        return Err("its session id is not visible ASCII");
    }
    let mut id = id.clone();
    id.set_sensitive(true);
    Ok(Some(id))
}

/// An event's id for a header, if it can be in one.
pub(crate) fn event_id(id: &str) -> Option<HeaderValue> {
    (!id.is_empty() && id.len() <= MAX_ID).then(|| HeaderValue::from_bytes(id.as_bytes()).ok()).flatten()
}

/// The content type of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentType {
    Json,
    EventStream,
    Other,
}

impl ContentType {
    pub(crate) fn from_headers(headers: &HeaderMap) -> Self {
        let Some(Ok(kind)) = headers.get(header::CONTENT_TYPE).map(HeaderValue::to_str) else {
            return Self::Other;
        };
        let name = kind.split(';').next().unwrap_or_default().trim();
        if name.eq_ignore_ascii_case("application/json") {
            Self::Json
        } else if name.eq_ignore_ascii_case("text/event-stream") {
            Self::EventStream
        } else {
            Self::Other
        }
    }
}

/// The first characters of a header's value, for an error.
pub(crate) fn shown(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).map(|value| excerpt(&String::from_utf8_lossy(value.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_headers_would_change_are_in_base64() {
        for plain in ["", "a b", "tools/call", "=?base64?x", "x?="] {
            assert_eq!(encode(plain), plain);
        }
        assert_eq!(encode("Hello, 世界"), "=?base64?SGVsbG8sIOS4lueVjA==?=");
        assert_eq!(encode(" x"), "=?base64?IHg=?=");
        assert_eq!(encode("a\r\nb"), "=?base64?YQ0KYg==?=");
        assert_eq!(encode("a\tb"), "=?base64?YQli?=");
        assert_eq!(encode("=?base64?x?="), "=?base64?PT9iYXNlNjQ/eD89?=");
    }

    #[test]
    fn session_ids_are_visible_ascii() {
        let given = |id: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(SESSION_ID, HeaderValue::from_bytes(id).unwrap());
            session_id(&headers)
        };
        assert_eq!(given(b"abc-1").unwrap().unwrap(), "abc-1");
        for bad in [&b""[..], b"a b", b"\xC3\xA4", &[b'x'; MAX_ID + 1]] {
            assert!(given(bad).is_err(), "{bad:?}");
        }
        assert_eq!(session_id(&HeaderMap::new()), Ok(None));
    }

    #[test]
    fn event_ids_that_no_header_can_hold_are_not_used() {
        assert_eq!(event_id("3.14").unwrap(), "3.14");
        assert!(event_id("ä").is_some());
        assert!(
            event_id("").is_none() && event_id("a\u{1}b").is_none() && event_id(&"x".repeat(5000)).is_none()
        );
    }
}
