//! What headers say, and whether they agree with the body they mirror.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use refmcp_proto::finding::Finding;
use refmcp_proto::jsonrpc::{Params, RpcError, code, excerpt};
use refmcp_proto::revision::{Lifecycle, Revision, Rules};
use refmcp_server::{Headers, Policy, Server};
use serde_json::Value;

use crate::refusal::{Reason, Refusal};

pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(crate) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// A header's only value, without the white space around it.
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

/// What may be shown of headers: not what lets somebody in.
fn shown(headers: &HeaderMap) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
    const SECRET: [HeaderName; 6] = [
        header::AUTHORIZATION,
        header::COOKIE,
        header::PROXY_AUTHORIZATION,
        // A web page's WebSocket has nowhere else to put its token.
        header::SEC_WEBSOCKET_PROTOCOL,
        HeaderName::from_static("dpop"),
        SESSION_ID,
    ];
    let shown = headers.iter().filter(|(name, _)| !SECRET.contains(name));
    shown.map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes())))
}

/// Headers of a request, for as long as it is served.
pub(crate) fn of_request(headers: HeaderMap) -> Headers {
    Headers::read_by(move || {
        shown(&headers).map(|(name, value)| (name.to_owned(), value.into_owned())).collect()
    })
}

/// Bytes of headers that are kept with a session; what does not fit is left out.
const KEPT: usize = 2048;

/// Headers to be kept with a session, in little room: those of a request hold on to all the bytes that came with it.
pub(crate) fn of_session(headers: &HeaderMap) -> Headers {
    let mut text = String::new();
    for (name, value) in shown(headers) {
        if text.len() + name.len() + value.len() <= KEPT {
            // Neither names nor values have line breaks.
            text.extend([name, ":", &value, "\n"]);
        }
    }
    Headers::from_lines(text)
}

/// Whether the client takes all of these kinds of content.
pub(crate) fn accepts<const KINDS: usize>(headers: &HeaderMap, kinds: [&str; KINDS]) -> bool {
    let mut taken = [false; KINDS];
    // Every request passes here; bytes are read faster than characters.
    let listed = headers.get_all(header::ACCEPT).iter();
    for range in listed.flat_map(|value| value.as_bytes().split(|byte| *byte == b',')) {
        let mut parts = range.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let name = parts.next().unwrap_or_default();
        if !parts.any(|part| matches!(part, b"q=0" | b"q=0.0" | b"q=0.00" | b"q=0.000")) {
            for (kind, taken) in kinds.iter().zip(&mut taken) {
                *taken |= covers(name, kind.as_bytes());
            }
        }
    }
    taken == [true; KINDS]
}

/// Whether a range such as `text/*` has this kind of content in it.
fn covers(range: &[u8], kind: &[u8]) -> bool {
    let family = range.strip_suffix(b"/*");
    range.eq_ignore_ascii_case(kind)
        || range == b"*/*"
        || family.is_some_and(|family| {
            kind.get(family.len()) == Some(&b'/') && kind[..family.len()].eq_ignore_ascii_case(family)
        })
}

/// Refuses a request whose answer the client may not take. Without an `Accept` header it takes anything (RFC 9110,
/// section 12.5.1); the protocol wants one nevertheless, and `required` says whether we insist.
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

/// The same for a request that is answered with a stream of events.
pub(crate) fn check_accepts_events(headers: &HeaderMap, required: bool) -> Result<(), Refusal> {
    check_accept(headers, required, ["text/event-stream"])
}

/// What is wrong with a request that was served without an `Accept` header, by the rule of its transport.
pub(crate) fn absent_accept(headers: &HeaderMap, rule: AcceptRule) -> Option<Finding> {
    if headers.contains_key(header::ACCEPT) {
        return None;
    }
    Some(match rule {
        AcceptRule::Post => Finding { rule: "HTTP-03", what: NO_ACCEPT.into() },
        AcceptRule::PostAlone => Finding { rule: "MHTTP-02", what: NO_ACCEPT.into() },
        AcceptRule::Get => Finding {
            rule: "HTTP-13",
            what: "GET without an Accept header; send Accept: text/event-stream".into(),
        },
    })
}

const NO_ACCEPT: &str = "POST without an Accept header; send Accept: application/json, text/event-stream";

/// Which rule asks for an `Accept` header.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AcceptRule {
    /// That of a `POST` in a session.
    Post,
    /// That of a `POST` without a session.
    PostAlone,
    /// That of a `GET` that opens a stream.
    Get,
}

/// What is wrong with a request of a session that was served without its revision in the headers.
pub(crate) fn absent_version(headers: &HeaderMap, rules: &Rules) -> Option<Finding> {
    if !rules.version_header || headers.contains_key(PROTOCOL_VERSION) {
        return None;
    }
    let what = format!(
        "no MCP-Protocol-Version header; send MCP-Protocol-Version: {} with every request after initialize",
        rules.revision
    );
    Some(Finding { rule: "LIFE-09", what: what.into() })
}

/// Whether the headers name a revision without sessions.
pub(crate) fn names_stateless(headers: &HeaderMap) -> bool {
    let named = value(headers, &PROTOCOL_VERSION).ok().flatten();
    let named = named.and_then(|version| version.parse::<Revision>().ok());
    named.is_some_and(|revision| revision.lifecycle() == Lifecycle::PerRequest)
}

/// Whether the body is JSON, by its own account.
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

/// Checks the headers of a request that stands for itself against its body: intermediaries read the headers, we read
/// the body, and both must mean the same.
pub(crate) fn check_mirrored(
    headers: &HeaderMap,
    server: &Server,
    version: &str,
    method: &str,
    params: &Params<'_>,
) -> Result<(), RpcError> {
    same(headers, &PROTOCOL_VERSION, version)?;
    same(headers, &METHOD, method)?;
    if !matches!(method, "tools/call" | "prompts/get" | "resources/read") {
        return Ok(());
    }
    // Parameters that cannot be read are refused by whoever reads them.
    let named = if method == "resources/read" { params.uri } else { params.name };
    let named = named.and_then(|named| serde_json::from_str::<Cow<'_, str>>(named).ok());
    let Some(name) = named else { return Ok(()) };
    same(headers, &NAME, &name)?;
    if method == "tools/call" { check_arguments(headers, server, &name, params.arguments) } else { Ok(()) }
}

/// Checks the headers that mirror a tool's arguments.
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
            Some(argument) => same_value(headers, &name, argument)?,
        }
    }
    Ok(())
}

fn same(headers: &HeaderMap, name: &HeaderName, wanted: &str) -> Result<(), RpcError> {
    let found =
        value(headers, name).map_err(mismatch)?.ok_or_else(|| mismatch(format!("no {name} header")))?;
    if decode(found).map_err(|why| mismatch(format!("{name}: {why}")))? == wanted {
        return Ok(());
    }
    Err(mismatch(format!("{name} is {:?}, but the body says {:?}", excerpt(found), excerpt(wanted))))
}

fn same_value(headers: &HeaderMap, name: &HeaderName, argument: &Value) -> Result<(), RpcError> {
    match argument {
        Value::String(text) => same(headers, name, text),
        Value::Bool(yes) => same(headers, name, if *yes { "true" } else { "false" }),
        Value::Number(number) => {
            let found = value(headers, name).map_err(mismatch)?;
            let found = found.ok_or_else(|| mismatch(format!("no {name} header")))?;
            // Numbers are compared as such: 42 and 42.0 are the same.
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

/// A header's text; what no header can hold comes in base64 between marks.
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
    fn marks_are_decoded_and_half_marks_are_text() {
        assert_eq!(decode("=?base64?SGVsbG8=?=").as_deref(), Ok("Hello"));
        assert_eq!(decode("SGVsbG8=?=").as_deref(), Ok("SGVsbG8=?="));
        assert_eq!(decode("=?base64?SGVsbG8=").as_deref(), Ok("=?base64?SGVsbG8="));
        assert!(decode("=?base64?SGVsbG8?=").is_err());
        assert!(decode("=?base64?SGVs!!!bG8=?=").is_err());
    }

    #[test]
    fn accept_is_read_with_care() {
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
    fn json_is_utf8() {
        assert!(is_json(&headers(&[("content-type", "application/json")])));
        assert!(is_json(&headers(&[("content-type", "Application/JSON; charset=UTF-8")])));
        assert!(!is_json(&headers(&[("content-type", "application/json; charset=utf-16")])));
        assert!(!is_json(&headers(&[("content-type", "text/plain")])));
        assert!(!is_json(&headers(&[])));
    }

    #[test]
    fn values_are_compared_exactly() {
        let found = headers(&[("mcp-method", " tools/list ")]);
        assert!(same(&found, &METHOD, "tools/list").is_ok());
        assert!(same(&found, &METHOD, "TOOLS/LIST").is_err());
        assert!(same(&found, &NAME, "x").is_err());
    }
}
