//! What headers say, and whether they agree with the body they mirror.

use axum::http::{HeaderMap, HeaderName, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use refmcp_proto::jsonrpc::{RpcError, code, excerpt};
use refmcp_server::Server;
use serde_json::Value;

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

/// Whether the client takes this kind of content.
pub(crate) fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let family = kind.split('/').next().unwrap_or_default();
    let listed = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    listed.flat_map(|value| value.split(',')).any(|range| {
        let mut parts = range.split(';');
        let name = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let refused = parts.any(|part| matches!(part.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000"));
        !refused && (name == kind || name == "*/*" || name.strip_suffix("/*") == Some(family))
    })
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
    version: &str,
    method: &str,
    params: &Value,
) -> Result<(), RpcError> {
    same(headers, &PROTOCOL_VERSION, version)?;
    same(headers, &METHOD, method)?;
    let named = match method {
        "tools/call" | "prompts/get" => params.get("name"),
        "resources/read" => params.get("uri"),
        _ => None,
    };
    match named.and_then(Value::as_str) {
        Some(name) => same(headers, &NAME, name),
        None => Ok(()),
    }
}

/// Checks the headers that mirror a tool's arguments.
pub(crate) fn check_arguments(headers: &HeaderMap, server: &Server, params: &Value) -> Result<(), RpcError> {
    let Some(tool) = params.get("name").and_then(Value::as_str) else { return Ok(()) };
    for mirrored in server.mirrored_arguments(tool) {
        let arguments = params.get("arguments");
        let argument =
            mirrored.path.iter().try_fold(arguments, |value, key| value.map(|value| value.get(key)));
        let argument = argument.flatten();
        let Ok(name) = HeaderName::try_from(format!("mcp-param-{}", mirrored.header)) else { continue };
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
fn decode(text: &str) -> Result<String, &'static str> {
    let Some(coded) = text.strip_prefix("=?base64?").and_then(|text| text.strip_suffix("?=")) else {
        return Ok(text.to_owned());
    };
    let bytes = STANDARD.decode(coded).map_err(|_| "not base64")?;
    String::from_utf8(bytes).map_err(|_| "not UTF-8")
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
        assert!(accepts(&both, "application/json") && accepts(&both, "text/event-stream"));
        assert!(accepts(&headers(&[("accept", "*/*")]), "text/event-stream"));
        assert!(accepts(&headers(&[("accept", "text/*")]), "text/event-stream"));
        assert!(!accepts(&headers(&[("accept", "text/event-stream;q=0")]), "text/event-stream"));
        assert!(!accepts(&headers(&[]), "application/json"));
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
