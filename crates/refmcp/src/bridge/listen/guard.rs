//! Who may speak to the bridge at all. A web page somewhere must not reach a server on this machine through its
//! visitor's browser, so the name we are called by and the page that calls are looked at before anything else.

use std::net::IpAddr;

use hyper::header::{self, HeaderMap, HeaderName};

/// The names that are ours.
#[derive(Debug, Clone)]
pub(super) struct Guard {
    /// The name that the address to listen on was given with.
    pub(super) host: String,
}

impl Guard {
    /// Whether the name by which we are called is ours, and the page that calls, if it is one, on this machine.
    pub(super) fn check(&self, called: Option<IpAddr>, headers: &HeaderMap) -> Result<(), &'static str> {
        let host =
            only(headers, &header::HOST).map_err(|()| "more than one Host header, or an unreadable one")?;
        if !host.is_some_and(|host| self.is_ours(called, host)) {
            return Err("this Host is not served here");
        }
        let origin = only(headers, &header::ORIGIN)
            .map_err(|()| "more than one Origin header, or an unreadable one")?;
        let Some(origin) = origin else { return Ok(()) };
        let page = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if page.is_some_and(|host| self.is_ours(called, host)) {
            Ok(())
        } else {
            Err("this Origin is not allowed here")
        }
    }

    /// Whether a host, with or without a port, is this machine, the name that was given, or the very address that was
    /// called: no page can make a browser call that under another name.
    fn is_ours(&self, called: Option<IpAddr>, host: &str) -> bool {
        let Some(name) = without_port(host) else { return false };
        let local = ["localhost", "127.0.0.1", "[::1]", &self.host];
        local.iter().any(|local| name.eq_ignore_ascii_case(local))
            || called.is_some_and(|called| is_address(name, called))
    }
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
    let is_port = |port: &str| port.strip_prefix(':').is_some_and(|digits| digits.parse::<u16>().is_ok());
    (!name.is_empty() && (port.is_empty() || is_port(port))).then_some(name)
}

/// A header's only value.
pub(super) fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(_), Some(_)) => Err(()),
        (Some(value), None) => value.to_str().map(|text| Some(text.trim())).map_err(|_| ()),
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn headers(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn only_our_own_names_are_served() {
        let guard = Guard { host: "bridge.example".to_owned() };
        let called = Some("192.0.2.1".parse().unwrap());
        for ours in
            ["localhost", "localhost:3000", "127.0.0.1:80", "[::1]:1", "bridge.example:7", "192.0.2.1:3000"]
        {
            assert_eq!(guard.check(called, &headers(&[(header::HOST, ours)])), Ok(()), "{ours}");
        }
        for foreign in
            ["evil.com", "127.0.0.1.evil.com", "localhost:", "localhost:x", "", "192.0.2.2", "[::1"]
        {
            assert!(guard.check(called, &headers(&[(header::HOST, foreign)])).is_err(), "{foreign}");
        }
        assert!(guard.check(called, &HeaderMap::new()).is_err());
        let twice = headers(&[(header::HOST, "localhost"), (header::HOST, "localhost")]);
        assert!(guard.check(called, &twice).is_err());
    }

    #[test]
    fn pages_from_elsewhere_are_not() {
        let guard = Guard { host: "127.0.0.1".to_owned() };
        let from =
            |origin| guard.check(None, &headers(&[(header::HOST, "localhost"), (header::ORIGIN, origin)]));
        assert_eq!(from("http://localhost:5173"), Ok(()));
        for foreign in ["https://evil.com", "null", "http://localhost.evil.com", "file://localhost"] {
            assert!(from(foreign).is_err(), "{foreign}");
        }
    }
}
