//! Who may speak to us at all. A web page somewhere must not reach a server on this machine through its visitor's
//! browser, so the name we are called by and the page that calls are looked at before anything else.

use std::net::IpAddr;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};

/// Why somebody may not speak to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GuardError {
    /// By the name that we were called by.
    #[error("{0}")]
    Host(&'static str),
    /// By the page that calls.
    #[error("{0}")]
    Origin(&'static str),
}

const ORIGIN_REFUSED: &str = "this Origin is not allowed here; --allow-origin ORIGIN allows it";

/// Whether the name by which we are called is ours, and the page that calls, if it is one, may: `hosts` and `origins`
/// are those that were given, beside the names of this machine; `called` is the address that was called.
///
/// # Errors
/// What is foreign.
pub fn check(
    hosts: &[String],
    origins: &[String],
    called: Option<IpAddr>,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), GuardError> {
    check_host(hosts, called, uri, headers)?;
    check_origin(hosts, origins, called, headers)
}

/// The first half of [`check`]: whether the name by which we are called is ours. That is enough where anybody may know
/// what there is to know: a name that leads here by a trick is none of ours.
///
/// # Errors
/// It is not.
pub fn check_host(
    hosts: &[String],
    called: Option<IpAddr>,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), GuardError> {
    let mut named = headers.get_all(header::HOST).iter();
    let host = match (named.next(), named.next()) {
        (Some(_), Some(_)) => return Err(GuardError::Host("more than one Host header")),
        (Some(host), None) => Some(host.to_str().map_err(|_| GuardError::Host("an unreadable Host header"))?),
        (None, _) => None,
    };
    let target = uri.authority().map(Authority::as_str);
    if host.is_none() && target.is_none() {
        return Err(GuardError::Host("no Host header"));
    }
    // Where both are there, both count: whoever stands between us may have looked at either.
    if ![host, target].into_iter().flatten().all(|host| is_ours(hosts, called, host)) {
        return Err(GuardError::Host("this Host is not served here; --allow-host NAME serves it"));
    }
    Ok(())
}

/// The same of a name that a proxy says it was called by.
pub(crate) fn check_forwarded_host(
    hosts: &[String],
    called: Option<IpAddr>,
    host: &str,
) -> Result<(), &'static str> {
    let foreign = "this forwarded host is not served here; --allow-host NAME serves it";
    is_ours(hosts, called, host).then_some(()).ok_or(foreign)
}

/// The other half of [`check`]: whether the page that calls, if it is one, may.
///
/// # Errors
/// It may not.
pub fn check_origin(
    hosts: &[String],
    origins: &[String],
    called: Option<IpAddr>,
    headers: &HeaderMap,
) -> Result<(), GuardError> {
    let mut pages = headers.get_all(header::ORIGIN).iter();
    match (pages.next(), pages.next()) {
        (None, _) => Ok(()),
        (Some(_), Some(_)) => Err(GuardError::Origin("more than one Origin header")),
        (Some(origin), None) => {
            let origin = origin.to_str().map_err(|_| GuardError::Origin("an unreadable Origin header"))?;
            let known = origins.iter().any(|allowed| allowed == origin);
            let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            let ours = host.is_some_and(|host| is_ours(hosts, called, host));
            if known || ours { Ok(()) } else { Err(GuardError::Origin(ORIGIN_REFUSED)) }
        }
    }
}

/// Whether a host, with or without a port, is this machine, one of the names we were given, or the very address that
/// was called: no page can make a browser call that under another name.
fn is_ours(hosts: &[String], called: Option<IpAddr>, host: &str) -> bool {
    let Some(name) = without_port(host) else { return false };
    ["localhost", "127.0.0.1", "[::1]"].iter().any(|local| name.eq_ignore_ascii_case(local))
        || called.is_some_and(|called| is_address(name, called))
        || hosts.iter().any(|known| known.eq_ignore_ascii_case(host) || known.eq_ignore_ascii_case(name))
}

fn is_address(name: &str, called: IpAddr) -> bool {
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    bare.parse::<IpAddr>().is_ok_and(|address| address.to_canonical() == called.to_canonical())
}

/// The name in `name:port`; nothing where the port is none.
fn without_port(host: &str) -> Option<&str> {
    let (name, port) = match host.rfind(']') {
        Some(end) => host.split_at(end + 1),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
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
    fn pages_from_elsewhere_may_not() {
        let from = |origins: &[&'static str], uri: &'static str| {
            let mut headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static("localhost"))]);
            for origin in origins {
                headers.append(header::ORIGIN, HeaderValue::from_static(origin));
            }
            check(&[], &["https://known.example".to_owned()], None, &Uri::from_static(uri), &headers)
        };
        for ours in [&[][..], &["http://localhost:5173"], &["https://known.example"]] {
            assert_eq!(from(ours, "/mcp"), Ok(()), "{ours:?}");
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
    fn only_loopback_names_are_ours() {
        for ours in ["localhost", "localhost:3000", "LOCALHOST:1", "127.0.0.1:80", "[::1]", "[::1]:3000"] {
            assert!(is_ours(&[], None, ours), "{ours}");
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
            assert!(!is_ours(&[], None, foreign), "{foreign}");
        }
        let called = Some("192.0.2.1".parse().unwrap());
        assert!(is_ours(&[], called, "192.0.2.1:3000") && !is_ours(&[], called, "192.0.2.2:3000"));
        let called = Some("2001:db8::1".parse().unwrap());
        assert!(is_ours(&[], called, "[2001:db8::1]:3000") && !is_ours(&[], called, "2001:db8::1.evil.com"));
        assert!(is_ours(&["mcp.example.com".to_owned()], None, "mcp.example.com:8080"));
    }
}
