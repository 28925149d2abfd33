//! CORS: preflight responses and the headers that let a page read a response. The guard has allowed the origin by then.

use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use refmcp_auth::header_value::list;

/// Headers that a page may send, besides those that mirror arguments of a tool.
const REQUEST_HEADERS: [&str; 10] = [
    "accept",
    "authorization",
    "content-type",
    "dpop",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "traceparent",
];
const MIRRORED: &str = "mcp-param-";

/// Headers that a page may read.
const EXPOSED: &str = "Mcp-Session-Id, MCP-Protocol-Version, Retry-After, WWW-Authenticate, DPoP-Nonce";

/// The response to a preflight request for a path with these methods.
pub fn preflight<B: Default>(methods: &[&str], asked: &HeaderMap) -> Response<B> {
    let mut response = Response::new(B::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    insert(headers, header::ALLOW, &[methods, &["OPTIONS"]].concat().join(", "));
    insert(headers, header::ACCESS_CONTROL_ALLOW_METHODS, &methods.join(", "));
    insert(headers, header::ACCESS_CONTROL_ALLOW_HEADERS, &allowed(asked));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

/// Lets the page of this origin read the response.
pub fn expose<B>(response: &mut Response<B>, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
}

/// The headers that a page may send, among them those that it asks for.
fn allowed(asked: &HeaderMap) -> String {
    let names = list(asked, &header::ACCESS_CONTROL_REQUEST_HEADERS).map(str::to_ascii_lowercase);
    let fine = names.filter(|name| REQUEST_HEADERS.contains(&name.as_str()) || name.starts_with(MIRRORED));
    let fine = fine.filter(|name| HeaderName::try_from(name.as_str()).is_ok());
    let mut all: Vec<String> = REQUEST_HEADERS.iter().map(ToString::to_string).chain(fine).collect();
    all.sort_unstable();
    all.dedup();
    all.join(", ")
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrored_arguments_are_allowed_and_unknown_headers_are_not() {
        let mut asked = HeaderMap::new();
        let wanted = HeaderValue::from_static("Mcp-Param-City, x-evil, CONTENT-TYPE");
        asked.insert(header::ACCESS_CONTROL_REQUEST_HEADERS, wanted);
        let allowed = allowed(&asked);
        assert!(allowed.contains("mcp-param-city") && allowed.contains("content-type"), "{allowed}");
        assert!(!allowed.contains("evil"), "{allowed}");
    }
}
