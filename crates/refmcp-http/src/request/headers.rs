//! Headers of a request, read: `Accept`, `Content-Type`, those of MCP, and those that mirror the body.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use refmcp_proto::http::{self, Accept};
use refmcp_server::{Headers, RequestHeaders};

use crate::refusal::{Reason, Refusal};

pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(crate) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The single value of a header, trimmed.
pub(crate) fn value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, String> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(_), Some(_)) => Err(format!("more than one {name} header")),
        (Some(value), None) => {
            value.to_str().map(|text| Some(text.trim())).map_err(|_| format!("an unreadable {name} header"))
        }
    }
}

/// Headers without those that carry credentials.
fn without_credentials(headers: &HeaderMap) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
    const SECRET: [HeaderName; 6] = [
        header::AUTHORIZATION,
        header::COOKIE,
        header::PROXY_AUTHORIZATION,
        // The token of a web page's WebSocket.
        header::SEC_WEBSOCKET_PROTOCOL,
        HeaderName::from_static("dpop"),
        SESSION_ID,
    ];
    let shown = headers.iter().filter(|(name, _)| !SECRET.contains(name));
    shown.map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes())))
}

/// The headers of a request, read by a handler if it wants them.
pub(crate) fn of_request(headers: HeaderMap, address: Option<IpAddr>) -> Headers {
    let source = Mutex::new(CallHeaderSource::Request(headers));
    Headers::of_request(CallHeaders { source, address })
}

/// The headers of a call's request.
struct CallHeaders {
    source: Mutex<CallHeaderSource>,
    address: Option<IpAddr>,
}

enum CallHeaderSource {
    Request(HeaderMap),
    Copied(Headers),
}

impl RequestHeaders for CallHeaders {
    fn read(&self) -> Vec<(String, String)> {
        match &*self.source.lock() {
            CallHeaderSource::Request(headers) => {
                let shown = without_credentials(headers);
                shown.map(|(name, value)| (name.to_owned(), value.into_owned())).collect()
            }
            CallHeaderSource::Copied(headers) => headers.read(),
        }
    }

    fn client_address(&self) -> Option<IpAddr> {
        self.address
    }

    fn detach(&self) {
        let mut source = self.source.lock();
        if let CallHeaderSource::Request(headers) = &*source {
            *source = CallHeaderSource::Copied(Headers::from_lines(copied(headers, CALL_BYTES)));
        }
    }
}

/// Bytes of headers that are kept with a session; others are left out.
const SESSION_BYTES: usize = 2048;

/// The same with a call that is not done at once.
const CALL_BYTES: usize = 16 << 10;

/// The headers to keep with sessions. Copies of one program send the same, which are kept once.
#[derive(Default)]
pub(crate) struct SessionHeaders {
    /// Those of sessions that were opened lately.
    known: Mutex<VecDeque<Arc<str>>>,
}

/// Headers of other sessions that new ones are compared with.
const KNOWN_HEADERS: usize = 16;

impl SessionHeaders {
    /// The headers of a request that opens a session.
    pub(crate) fn keep(&self, headers: &HeaderMap) -> Headers {
        let lines = copied(headers, SESSION_BYTES);
        let mut known = self.known.lock();
        if let Some(same) = known.iter().find(|other| ***other == *lines) {
            return Headers::from_lines(same.clone());
        }
        let lines: Arc<str> = lines.into();
        known.truncate(KNOWN_HEADERS - 1);
        known.push_front(lines.clone());
        Headers::from_lines(lines)
    }
}

impl fmt::Debug for SessionHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values may be secret.
        f.write_str("SessionHeaders(..)")
    }
}

/// So many bytes of headers, copied: those of a request keep its whole buffer alive.
fn copied(headers: &HeaderMap, most: usize) -> String {
    let mut text = String::new();
    for (name, value) in without_credentials(headers) {
        if text.len() + name.len() + value.len() <= most {
            // Names and values have no line breaks.
            text.extend([name, ":", &value, "\n"]);
        }
    }
    text
}

/// What `Accept` says about these media types.
pub(crate) fn accept<const KINDS: usize>(headers: &HeaderMap, kinds: [&str; KINDS]) -> Accept {
    if headers.get(header::ACCEPT).is_some_and(|value| lists_exactly(value.as_bytes(), kinds)) {
        return Accept::Allowed;
    }
    let mut accepted = [false; KINDS];
    // Every request passes here; bytes are faster than characters.
    let listed = headers.get_all(header::ACCEPT).iter();
    for range in listed.flat_map(|value| value.as_bytes().split(|byte| *byte == b',')) {
        let mut parts = range.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let name = parts.next().unwrap_or_default();
        if !parts.any(|part| matches!(part, b"q=0" | b"q=0.0" | b"q=0.00" | b"q=0.000")) {
            for (kind, accepted) in kinds.iter().zip(&mut accepted) {
                *accepted |= covers(name, kind.as_bytes());
            }
        }
    }
    if accepted == [true; KINDS] {
        Accept::Allowed
    } else if headers.contains_key(header::ACCEPT) {
        Accept::Refused
    } else {
        Accept::Absent
    }
}

/// Whether a header is the list that the specification shows, as that of nearly all clients is.
fn lists_exactly<const KINDS: usize>(value: &[u8], kinds: [&str; KINDS]) -> bool {
    let mut rest = Some(value);
    for (index, kind) in kinds.iter().enumerate() {
        let separator: &[u8] = if index == 0 { b"" } else { b", " };
        rest = rest.and_then(|rest| rest.strip_prefix(separator)?.strip_prefix(kind.as_bytes()));
    }
    rest == Some(b"")
}

/// Whether a media range such as `text/*` includes this type.
fn covers(range: &[u8], kind: &[u8]) -> bool {
    let family = range.strip_suffix(b"/*");
    range.eq_ignore_ascii_case(kind)
        || range == b"*/*"
        || family.is_some_and(|family| {
            kind.get(family.len()) == Some(&b'/') && kind[..family.len()].eq_ignore_ascii_case(family)
        })
}

/// The same for an SSE stream alone; refused if the client does not accept one.
pub(crate) fn check_accepts_events(headers: &HeaderMap, required: bool) -> Result<Accept, Refusal> {
    let kinds = ["text/event-stream"];
    let accept = accept(headers, kinds);
    let refuse = |why| Refusal::new(StatusCode::NOT_ACCEPTABLE, Reason::Accept, why);
    http::check_accept(accept, required, &kinds).map_err(refuse).map(|()| accept)
}

/// Whether `MCP-Protocol-Version` names a revision without sessions.
pub(crate) fn is_stateless(headers: &HeaderMap) -> bool {
    http::names_stateless(value(headers, &PROTOCOL_VERSION).ok().flatten())
}

pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let Ok(Some(kind)) = value(headers, &header::CONTENT_TYPE) else { return false };
    // As nearly all clients write it.
    if kind == "application/json" {
        return true;
    }
    let mut parts = kind.split(';').map(str::trim);
    let json = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("application/json"));
    let utf8 = parts.all(|part| match part.split_once('=') {
        Some((name, value)) if name.eq_ignore_ascii_case("charset") => {
            value.trim_matches('"').eq_ignore_ascii_case("utf-8")
        }
        _ => true,
    });
    json && utf8
}

/// The value of a header that repeats a part of the body.
pub(crate) fn mirrored<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<Cow<'a, str>>, String> {
    // Those of every request are known: a name that is read anew is allocated.
    let name = match name {
        "mcp-protocol-version" => PROTOCOL_VERSION,
        "mcp-method" => METHOD,
        "mcp-name" => NAME,
        other => match HeaderName::try_from(other) {
            Ok(name) => name,
            Err(_) => return Ok(None),
        },
    };
    let found = value(headers, &name)?.map(decode).transpose();
    found.map_err(|why| format!("{name}: {why}"))
}

/// The text of a header; text that a header cannot hold is encoded as `=?base64?…?=`.
fn decode(text: &str) -> Result<Cow<'_, str>, &'static str> {
    let Some(coded) = text.strip_prefix("=?base64?").and_then(|text| text.strip_suffix("?=")) else {
        return Ok(text.into());
    };
    let bytes = STANDARD.decode(coded).map_err(|_| "not base64")?;
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| "not UTF-8")
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn sessions_with_the_same_headers_share_them() {
        let kept = SessionHeaders::default();
        let (one, other) = (headers(&[("user-agent", "one")]), headers(&[("user-agent", "other")]));
        for headers in [&one, &other, &one] {
            let shown = [("user-agent".to_owned(), headers["user-agent"].to_str().unwrap().to_owned())];
            assert_eq!(kept.keep(headers).read(), shown);
        }
        assert_eq!(kept.known.lock().len(), 2);
        for number in 0..100 {
            kept.keep(&HeaderMap::from_iter([(header::USER_AGENT, HeaderValue::from(number))]));
        }
        assert_eq!(kept.known.lock().len(), KNOWN_HEADERS);
    }

    #[test]
    fn base64_is_decoded_only_between_both_marks() {
        assert_eq!(decode("=?base64?SGVsbG8=?=").as_deref(), Ok("Hello"));
        assert_eq!(decode("SGVsbG8=?=").as_deref(), Ok("SGVsbG8=?="));
        assert_eq!(decode("=?base64?SGVsbG8=").as_deref(), Ok("=?base64?SGVsbG8="));
        assert!(decode("=?base64?SGVsbG8?=").is_err());
        assert!(decode("=?base64?SGVs!!!bG8=?=").is_err());
        assert!(decode("=?base64?//79?=").is_err(), "no UTF-8");
    }

    #[test]
    fn accept_allows_media_ranges_and_quality_values() {
        fn allows<const KINDS: usize>(headers: &HeaderMap, kinds: [&str; KINDS]) -> bool {
            accept(headers, kinds) == Accept::Allowed
        }
        let both = headers(&[("accept", "application/json, text/event-stream")]);
        assert!(allows(&both, ["application/json", "text/event-stream"]));
        assert!(allows(&headers(&[("accept", "*/*")]), ["text/event-stream"]));
        assert!(allows(&headers(&[("accept", "text/*")]), ["text/event-stream"]));
        assert!(!allows(&headers(&[("accept", "text/event-stream;q=0")]), ["text/event-stream"]));
        assert_eq!(accept(&headers(&[]), ["application/json"]), Accept::Absent);
        for no_list in [
            "application/jsontext/event-stream",
            "application/json, text/event-streams",
            "application/json, ",
        ] {
            assert!(
                !lists_exactly(no_list.as_bytes(), ["application/json", "text/event-stream"]),
                "{no_list}"
            );
        }
        let one = headers(&[("accept", "Application/JSON ; q=0.9,, te/*, text/event-streams, /*")]);
        assert!(allows(&one, ["application/json"]) && !allows(&one, ["text/event-stream"]));
        let apart = headers(&[("accept", "application/*"), ("accept", "x/y,text/event-stream")]);
        assert!(allows(&apart, ["application/json", "text/event-stream"]));
    }

    #[test]
    fn content_type_is_json_in_utf8() {
        assert!(is_json(&headers(&[("content-type", "application/json")])));
        assert!(is_json(&headers(&[("content-type", "Application/JSON; charset=UTF-8")])));
        assert!(!is_json(&headers(&[("content-type", "application/json; charset=utf-16")])));
        assert!(!is_json(&headers(&[("content-type", "text/plain")])));
        assert!(!is_json(&headers(&[])));
    }

    #[test]
    fn mirrored_values_are_trimmed_and_decoded() {
        let found = headers(&[("mcp-method", " tools/list "), ("mcp-name", "=?base64?w6k=?=")]);
        assert_eq!(mirrored(&found, "mcp-method").unwrap().unwrap(), "tools/list");
        assert_eq!(mirrored(&found, "mcp-name").unwrap().unwrap(), "é");
        assert_eq!(mirrored(&found, "mcp-param-x"), Ok(None));
        assert!(mirrored(&headers(&[("mcp-name", "=?base64?!?=")]), "mcp-name").is_err());
    }
}
