//! Headers of a request: `Accept`, `Content-Type`, those of MCP, and whether they agree with the body that they mirror.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use refmcp_proto::finding::Finding;
use refmcp_proto::jsonrpc::{Params, RpcError, code, excerpt};
use refmcp_proto::revision::{Lifecycle, Method, Revision, Rules};
use refmcp_server::{Headers, Policy, Server};
use serde_json::Value;

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
pub(crate) fn of_request(headers: HeaderMap) -> Headers {
    Headers::read_by(move || {
        without_credentials(&headers).map(|(name, value)| (name.to_owned(), value.into_owned())).collect()
    })
}

/// Bytes of headers that are kept with a session; others are left out.
const SESSION_BYTES: usize = 2048;

/// The headers to keep with a session, copied: those of a request keep its whole buffer alive.
pub(crate) fn of_session(headers: &HeaderMap) -> Headers {
    let mut text = String::new();
    for (name, value) in without_credentials(headers) {
        if text.len() + name.len() + value.len() <= SESSION_BYTES {
            // Names and values have no line breaks.
            text.extend([name, ":", &value, "\n"]);
        }
    }
    Headers::from_lines(text)
}

/// Whether `Accept` allows all of these media types.
pub(crate) fn accepts<const KINDS: usize>(headers: &HeaderMap, kinds: [&str; KINDS]) -> bool {
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
    accepted == [true; KINDS]
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

/// Refuses a request whose response the client does not accept. A missing `Accept` header allows anything (RFC 9110, section
/// 12.5.1), but MCP demands one; `required` decides whether that is enforced.
pub(crate) fn check_accept<const KINDS: usize>(
    headers: &HeaderMap,
    required: bool,
    kinds: [&str; KINDS],
) -> Result<(), Refusal> {
    if accepts(headers, kinds) {
        return Ok(());
    }
    let is_absent = !headers.contains_key(header::ACCEPT);
    if is_absent && !required {
        return Ok(());
    }
    let kinds = kinds.join(" and ");
    let why = if is_absent {
        format!("no Accept header; it must allow {kinds}; {}", Policy::LENIENT_SERVES)
    } else {
        format!("Accept must allow {kinds}")
    };
    Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, Reason::Accept, why))
}

/// The same for a request that is answered with an SSE stream.
pub(crate) fn check_accepts_events(headers: &HeaderMap, required: bool) -> Result<(), Refusal> {
    check_accept(headers, required, ["text/event-stream"])
}

/// The finding about a request that is served without an `Accept` header.
pub(crate) fn missing_accept(headers: &HeaderMap, rule: AcceptRule) -> Option<Finding> {
    if headers.contains_key(header::ACCEPT) {
        return None;
    }
    let post = "POST without an Accept header; send Accept: application/json, text/event-stream";
    let (rule, what) = match rule {
        AcceptRule::Post => ("HTTP-03", post),
        AcceptRule::StatelessPost => ("MHTTP-02", post),
        AcceptRule::Get => ("HTTP-13", "GET without an Accept header; send Accept: text/event-stream"),
    };
    Some(Finding { rule, what: what.into() })
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum AcceptRule {
    Post,
    StatelessPost,
    Get,
}

/// The finding about a request of a session that is served without `MCP-Protocol-Version`.
pub(crate) fn missing_version(headers: &HeaderMap, rules: &Rules) -> Option<Finding> {
    if !rules.version_header || headers.contains_key(PROTOCOL_VERSION) {
        return None;
    }
    let what = format!(
        "no MCP-Protocol-Version header; send MCP-Protocol-Version: {} with every request after initialize",
        rules.revision
    );
    Some(Finding { rule: "LIFE-09", what: what.into() })
}

/// Whether `MCP-Protocol-Version` names a revision without sessions.
pub(crate) fn is_stateless(headers: &HeaderMap) -> bool {
    let named = value(headers, &PROTOCOL_VERSION).ok().flatten();
    let named = named.and_then(|version| version.parse::<Revision>().ok());
    named.is_some_and(|revision| revision.lifecycle() == Lifecycle::PerRequest)
}

pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let Ok(Some(kind)) = value(headers, &header::CONTENT_TYPE) else { return false };
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

/// Checks the headers of a stateless request against its body: intermediaries read the headers, the server reads the
/// body, and both must mean the same.
pub(crate) fn check_mirrored(
    headers: &HeaderMap,
    server: &Server,
    version: &str,
    method: &str,
    params: &Params<'_>,
) -> Result<(), RpcError> {
    check_equal(headers, &PROTOCOL_VERSION, version)?;
    check_equal(headers, &METHOD, method)?;
    let named = match Method::known(method).and_then(|method| method.name_member()) {
        Some("name") => params.name,
        Some("uri") => params.uri,
        _ => None,
    };
    // The engine refuses malformed parameters.
    let named = named.and_then(|named| serde_json::from_str::<Cow<'_, str>>(named).ok());
    let Some(name) = named else { return Ok(()) };
    check_equal(headers, &NAME, &name)?;
    if method == Method::CallTool.name() {
        check_arguments(headers, server, &name, params.arguments)
    } else {
        Ok(())
    }
}

/// Checks the headers that mirror arguments of a tool.
fn check_arguments(
    headers: &HeaderMap,
    server: &Server,
    tool: &str,
    arguments: Option<&str>,
) -> Result<(), RpcError> {
    let mirrored = server.mirrored_arguments(tool);
    if mirrored.is_empty() {
        return Ok(());
    }
    let arguments: Option<Value> = arguments.and_then(|arguments| serde_json::from_str(arguments).ok());
    for mirrored in mirrored {
        let argument = mirrored
            .path
            .iter()
            .try_fold(arguments.as_ref(), |value, key| value.map(|value| value.get(key)))
            .flatten();
        let Ok(name) = HeaderName::try_from(format!("mcp-param-{}", mirrored.name)) else { continue };
        match argument {
            None | Some(Value::Null) => {}
            Some(argument) => check_argument(headers, &name, argument)?,
        }
    }
    Ok(())
}

fn check_equal(headers: &HeaderMap, name: &HeaderName, wanted: &str) -> Result<(), RpcError> {
    let found =
        value(headers, name).map_err(mismatch)?.ok_or_else(|| mismatch(format!("no {name} header")))?;
    if decode(found).map_err(|why| mismatch(format!("{name}: {why}")))? == wanted {
        return Ok(());
    }
    Err(mismatch(format!("{name} is {:?}, but the body says {:?}", excerpt(found), excerpt(wanted))))
}

fn check_argument(headers: &HeaderMap, name: &HeaderName, argument: &Value) -> Result<(), RpcError> {
    match argument {
        Value::String(text) => check_equal(headers, name, text),
        Value::Bool(yes) => check_equal(headers, name, if *yes { "true" } else { "false" }),
        Value::Number(number) => {
            let found = value(headers, name).map_err(mismatch)?;
            let found = found.ok_or_else(|| mismatch(format!("no {name} header")))?;
            // Numbers are compared by value: 42 and 42.0 are equal.
            if found.parse::<f64>().ok() == number.as_f64() {
                return Ok(());
            }
            Err(mismatch(format!("{name} is {:?}, but the body says {number}", excerpt(found))))
        }
        _ => Ok(()),
    }
}

fn mismatch(what: String) -> RpcError {
    RpcError::new(code::HEADER_MISMATCH, what)
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
    fn base64_is_decoded_only_between_both_marks() {
        assert_eq!(decode("=?base64?SGVsbG8=?=").as_deref(), Ok("Hello"));
        assert_eq!(decode("SGVsbG8=?=").as_deref(), Ok("SGVsbG8=?="));
        assert_eq!(decode("=?base64?SGVsbG8=").as_deref(), Ok("=?base64?SGVsbG8="));
        assert!(decode("=?base64?SGVsbG8?=").is_err());
        assert!(decode("=?base64?SGVs!!!bG8=?=").is_err());
    }

    #[test]
    fn accept_allows_media_ranges_and_quality_values() {
        let both = headers(&[("accept", "application/json, text/event-stream")]);
        assert!(accepts(&both, ["application/json", "text/event-stream"]));
        assert!(accepts(&headers(&[("accept", "*/*")]), ["text/event-stream"]));
        assert!(accepts(&headers(&[("accept", "text/*")]), ["text/event-stream"]));
        assert!(!accepts(&headers(&[("accept", "text/event-stream;q=0")]), ["text/event-stream"]));
        assert!(!accepts(&headers(&[]), ["application/json"]));
        let one = headers(&[("accept", "Application/JSON ; q=0.9,, te/*, text/event-streams, /*")]);
        assert!(accepts(&one, ["application/json"]) && !accepts(&one, ["text/event-stream"]));
        let apart = headers(&[("accept", "application/*"), ("accept", "x/y,text/event-stream")]);
        assert!(accepts(&apart, ["application/json", "text/event-stream"]));
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
    fn mirrored_values_are_compared_exactly() {
        let found = headers(&[("mcp-method", " tools/list ")]);
        assert!(check_equal(&found, &METHOD, "tools/list").is_ok());
        assert!(check_equal(&found, &METHOD, "TOOLS/LIST").is_err());
        assert!(check_equal(&found, &NAME, "x").is_err());
    }
}
