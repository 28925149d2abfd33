//! Which HTTP header fields may be shown. Any other name may have a credential as its value: gateways and services choose
//! names of their own.

/// Names of header fields whose values are no secrets.
const PUBLIC: &str = "accept accept-encoding accept-language age allow cache-control connection content-encoding \
                      content-language content-length content-type date expect expires forwarded host keep-alive \
                      last-event-id origin pragma retry-after sec-fetch-dest sec-fetch-mode sec-fetch-site \
                      sec-fetch-user sec-websocket-version server te traceparent tracestate trailer \
                      transfer-encoding upgrade user-agent vary via www-authenticate x-accel-buffering \
                      x-content-type-options x-forwarded-for x-forwarded-host x-forwarded-port x-forwarded-proto \
                      x-real-ip x-request-id";

/// Beginnings of such names.
const PUBLIC_STARTS: [&str; 2] = ["access-control-", "mcp-"];

/// Whether the value of a header field of this name may be shown, logged and written down.
///
/// ```
/// use refmcp_transport::header::is_public;
///
/// assert!(is_public("Content-Type") && is_public("mcp-protocol-version"));
/// assert!(!is_public("authorization") && !is_public("mcp-session-id") && !is_public("x-foo"));
/// ```
pub fn is_public(name: &str) -> bool {
    let begins_like =
        |start: &&str| name.get(..start.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(start));
    !name.eq_ignore_ascii_case("mcp-session-id")
        && (PUBLIC.split(' ').any(|known| name.eq_ignore_ascii_case(known))
            || PUBLIC_STARTS.iter().any(begins_like))
}
