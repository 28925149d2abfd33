//! Who may speak to us at all. A web page somewhere must not reach a server on this machine through its visitor's
//! browser, so the name we are called by and the page that calls are looked at before anything else.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::options::Options;

/// Lets a request through when its `Host` and its `Origin` are ours.
pub(crate) async fn guard(State(options): State<Arc<Options>>, request: Request, next: Next) -> Response {
    match check(&options, request.headers(), request.uri().host()) {
        Ok(()) => next.run(request).await,
        Err(why) => (StatusCode::FORBIDDEN, why).into_response(),
    }
}

fn check(options: &Options, headers: &HeaderMap, target: Option<&str>) -> Result<(), &'static str> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(_), Some(_)) => return Err("more than one Host header"),
        (Some(host), None) => host.to_str().map_err(|_| "an unreadable Host header")?,
        (None, _) => target.ok_or("no Host header")?,
    };
    if !is_ours(&options.hosts, host) {
        return Err("this Host is not served here");
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    match (origins.next(), origins.next()) {
        (None, _) => Ok(()),
        (Some(_), Some(_)) => Err("more than one Origin header"),
        (Some(origin), None) => {
            let origin = origin.to_str().map_err(|_| "an unreadable Origin header")?;
            let known = options.origins.iter().any(|allowed| allowed == origin);
            let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            let ours = host.is_some_and(|host| is_ours(&options.hosts, host));
            if known || ours { Ok(()) } else { Err("this Origin is not allowed here") }
        }
    }
}

/// Whether a host, with or without a port, is this machine or one of the names we were given.
fn is_ours(hosts: &[String], host: &str) -> bool {
    let name = without_port(host);
    let Some(name) = name else { return false };
    matches!(name.to_ascii_lowercase().as_str(), "localhost" | "127.0.0.1" | "[::1]")
        || hosts.iter().any(|known| known.eq_ignore_ascii_case(host) || known.eq_ignore_ascii_case(name))
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
            assert!(is_ours(&[], ours), "{ours}");
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
            assert!(!is_ours(&[], foreign), "{foreign}");
        }
        assert!(is_ours(&["mcp.example.com".to_owned()], "mcp.example.com:8080"));
    }
}
