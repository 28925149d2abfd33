//! The guard against DNS rebinding and foreign web pages: the `Host` and the `Origin` of a request. A web page must not
//! reach a server on this machine through its visitor's browser, so both are checked before anything else.

use std::borrow::Cow;
use std::net::IpAddr;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};

use crate::request::headers;

/// A request that the guard refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GuardError {
    /// Because of its `Host`.
    #[error("{0}")]
    Host(Cow<'static, str>),
    /// Because of its `Origin`.
    #[error("{0}")]
    Origin(Cow<'static, str>),
}

/// Checks `Host` and `Origin`: `hosts` and `origins` are allowed beside the names of this machine; `local` is the server's
/// own address of the connection.
///
/// # Errors
/// The header that is not allowed.
pub fn check(
    hosts: &[String],
    origins: &[String],
    local: Option<IpAddr>,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), GuardError> {
    check_host(hosts, local, uri, headers)?;
    check_origin(hosts, origins, local, headers)
}

/// Checks `Host` alone. That is enough where any page may read the response.
pub(crate) fn check_host(
    hosts: &[String],
    local: Option<IpAddr>,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), GuardError> {
    let host = headers::value(headers, &header::HOST).map_err(|why| GuardError::Host(why.into()))?;
    let target = uri.authority().map(Authority::as_str);
    if host.is_none() && target.is_none() {
        return Err(GuardError::Host("no Host header".into()));
    }
    // Both count if both are there: an intermediary may have looked at either.
    if ![host, target].into_iter().flatten().all(|host| is_allowed(hosts, local, host)) {
        return Err(GuardError::Host("this Host is not served here; --allow-host NAME serves it".into()));
    }
    Ok(())
}

/// Checks the host that a proxy reports.
pub(crate) fn check_forwarded_host(
    hosts: &[String],
    local: Option<IpAddr>,
    host: &str,
) -> Result<(), GuardError> {
    let foreign = "this forwarded host is not served here; --allow-host NAME serves it";
    is_allowed(hosts, local, host).then_some(()).ok_or(GuardError::Host(foreign.into()))
}

/// Checks `Origin` alone.
pub(crate) fn check_origin(
    hosts: &[String],
    origins: &[String],
    local: Option<IpAddr>,
    headers: &HeaderMap,
) -> Result<(), GuardError> {
    let origin = headers::value(headers, &header::ORIGIN).map_err(|why| GuardError::Origin(why.into()))?;
    let Some(origin) = origin else { return Ok(()) };
    let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    if origins.iter().any(|allowed| allowed == origin)
        || host.is_some_and(|host| is_allowed(hosts, local, host))
    {
        return Ok(());
    }
    Err(GuardError::Origin("this Origin is not allowed here; --allow-origin ORIGIN allows it".into()))
}

/// Whether a host, with or without a port, is a name of this machine, an allowed name, or the server's own address: no
/// page can make a browser call that address by another name.
fn is_allowed(hosts: &[String], local: Option<IpAddr>, host: &str) -> bool {
    let Some(name) = without_port(host) else { return false };
    ["localhost", "127.0.0.1", "[::1]"].iter().any(|loopback| name.eq_ignore_ascii_case(loopback))
        || local.is_some_and(|local| is_address(name, local))
        || hosts.iter().any(|known| known.eq_ignore_ascii_case(host) || known.eq_ignore_ascii_case(name))
}

fn is_address(name: &str, local: IpAddr) -> bool {
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    bare.parse::<IpAddr>().is_ok_and(|address| address.to_canonical() == local.to_canonical())
}

/// The name in `name:port`; none if the port is malformed.
fn without_port(host: &str) -> Option<&str> {
    // Every request passes here; bytes are faster than characters.
    let bytes = host.as_bytes();
    let end = match bytes.iter().rposition(|byte| *byte == b']') {
        Some(bracket) => bracket + 1,
        None => bytes.iter().position(|byte| *byte == b':').unwrap_or(bytes.len()),
    };
    let (name, port) = host.split_at(end);
    let digits = match port.strip_prefix(':') {
        Some(digits) => digits,
        None if port.is_empty() => return Some(name),
        None => return None,
    };
    digits.parse::<u16>().ok().map(|_| name)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn foreign_origins_are_refused() {
        let from = |origins: &[&'static str], uri: &'static str| {
            let mut headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static("localhost"))]);
            for origin in origins {
                headers.append(header::ORIGIN, HeaderValue::from_static(origin));
            }
            check(&[], &["https://known.example".to_owned()], None, &Uri::from_static(uri), &headers)
        };
        for allowed in [&[][..], &["http://localhost:5173"], &["https://known.example"]] {
            assert_eq!(from(allowed, "/mcp"), Ok(()), "{allowed:?}");
        }
        for foreign in [
            &["https://evil.com"][..],
            &["null"],
            &["http://localhost.evil.com"],
            &["file://localhost"],
            &["http://localhost", "http://localhost"],
        ] {
            assert!(matches!(from(foreign, "/mcp"), Err(GuardError::Origin(_))), "{foreign:?}");
        }
        assert!(
            matches!(from(&[], "http://evil.com/mcp"), Err(GuardError::Host(_))),
            "the target counts too"
        );
    }

    #[test]
    fn loopback_names_and_the_own_address_are_allowed() {
        for allowed in ["localhost", "localhost:3000", "LOCALHOST:1", "127.0.0.1:80", "[::1]", "[::1]:3000"] {
            assert!(is_allowed(&[], None, allowed), "{allowed}");
        }
        for foreign in [
            "evil.com",
            "127.0.0.1.evil.com",
            "localhost:1@evil",
            "localhost.",
            "",
            ":80",
            "[::1",
            "localhost:",
            "localhost:99999",
            "127.0.0.2",
        ] {
            assert!(!is_allowed(&[], None, foreign), "{foreign}");
        }
        let local = Some("192.0.2.1".parse().unwrap());
        assert!(is_allowed(&[], local, "192.0.2.1:3000") && !is_allowed(&[], local, "192.0.2.2:3000"));
        let local = Some("2001:db8::1".parse().unwrap());
        assert!(
            is_allowed(&[], local, "[2001:db8::1]:3000") && !is_allowed(&[], local, "2001:db8::1.evil.com")
        );
        assert!(is_allowed(&["mcp.example.com".to_owned()], None, "mcp.example.com:8080"));
    }
}
