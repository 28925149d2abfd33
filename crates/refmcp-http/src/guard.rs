//! Who may speak to us at all. A web page somewhere must not reach a server on this machine through its visitor's
//! browser, so the name we are called by and the page that calls are looked at before anything else.

use std::net::IpAddr;

use axum::http::{HeaderMap, StatusCode, Uri, header};

use crate::client::Client;
use crate::options::Options;
use crate::refusal::{Reason, Refusal};

/// Whether the name by which we are called is ours, and the page that calls, if it is one, may.
pub(crate) fn check(
    options: &Options,
    client: Client,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), Refusal> {
    let foreign = |why: &'static str| Refusal::new(StatusCode::FORBIDDEN, Reason::Host, why);
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(_), Some(_)) => return Err(foreign("more than one Host header")),
        (Some(host), None) => Some(host.to_str().map_err(|_| foreign("an unreadable Host header"))?),
        (None, _) => None,
    };
    let target = uri.authority().map(axum::http::uri::Authority::as_str);
    if host.is_none() && target.is_none() {
        return Err(foreign("no Host header"));
    }
    // Where both are there, both count: whoever stands between us may have looked at either.
    if ![host, target].into_iter().flatten().all(|host| is_ours(&options.hosts, client.called, host)) {
        return Err(foreign("this Host is not served here"));
    }
    check_origin(options, client, headers)
}

fn check_origin(options: &Options, client: Client, headers: &HeaderMap) -> Result<(), Refusal> {
    let foreign = |why: &'static str| Refusal::new(StatusCode::FORBIDDEN, Reason::Origin, why);
    let mut origins = headers.get_all(header::ORIGIN).iter();
    match (origins.next(), origins.next()) {
        (None, _) => Ok(()),
        (Some(_), Some(_)) => Err(foreign("more than one Origin header")),
        (Some(origin), None) => {
            let origin = origin.to_str().map_err(|_| foreign("an unreadable Origin header"))?;
            let known = options.origins.iter().any(|allowed| allowed == origin);
            let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            let ours = host.is_some_and(|host| is_ours(&options.hosts, client.called, host));
            if known || ours { Ok(()) } else { Err(foreign("this Origin is not allowed here")) }
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
    bare.parse::<IpAddr>().is_ok_and(|address| address.to_canonical() == called)
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
    use super::*;

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
