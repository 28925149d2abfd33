//! Redirect URIs.
//!
//! They are compared byte for byte (RFC 9700 §2.1). The port of a loopback URI is free, because native applications get one
//! from the system when they start (RFC 8252 §7.3).

use refmcp_auth::uri;
use url::{Host, Url};

/// Limit of a redirect URI in bytes.
const MAX_URI_BYTES: usize = 2_000;

/// Allowed redirect URIs of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redirects {
    /// These.
    Exactly(Vec<String>),
    /// Any loopback URI.
    AnyLoopback,
}

impl Redirects {
    /// The redirect URI of a request: the named one if it is allowed, or the only one.
    pub(crate) fn choose(&self, named: Option<&str>) -> Result<String, &'static str> {
        match (self, named) {
            (Self::Exactly(known), None) => match known.as_slice() {
                [only] => Ok(only.clone()),
                _ => Err("redirect_uri is missing"),
            },
            (Self::AnyLoopback, None) => Err("redirect_uri is missing"),
            (Self::Exactly(known), Some(named)) => {
                check(named)?;
                let fits = known.iter().any(|known| known == named || differ_in_port_only(known, named));
                fits.then(|| named.to_owned()).ok_or("redirect_uri is not one that the client has registered")
            }
            (Self::AnyLoopback, Some(named)) => {
                let url = check(named)?;
                let near = uri::is_loopback(&url);
                near.then(|| named.to_owned()).ok_or("redirect_uri is not on this machine")
            }
        }
    }
}

/// Checks a redirect URI.
pub(crate) fn check(address: &str) -> Result<Url, &'static str> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
    if address.len() > MAX_URI_BYTES || !address.bytes().all(is_plain) {
        return Err("a redirect URI is too long, or has characters that no URI has");
    }
    let url = Url::parse(address).map_err(|_| "a redirect URI is not an absolute URI")?;
    let plainly = address.starts_with("https://") || address.starts_with("http://");
    if !(plainly && uri::is_secure(&url)) {
        return Err("redirect URIs are https, or http on a loopback host");
    }
    let after_scheme = address.split_once("://").map_or("", |(_, rest)| rest);
    let authority = after_scheme.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() {
        return Err("a redirect URI must have a host");
    }
    if authority.contains('@') {
        return Err("a redirect URI must not have a user name");
    }
    if address.contains('#') {
        return Err("a redirect URI must not have a fragment");
    }
    Ok(url)
}

/// True if two loopback URIs differ only in the port.
fn differ_in_port_only(known: &str, named: &str) -> bool {
    match (without_port(known), without_port(named)) {
        (Some(known), Some(named)) => known == named,
        _ => false,
    }
}

/// The host, and the part after the port, of a loopback URI without TLS.
fn without_port(address: &str) -> Option<(&str, &str)> {
    let url = Url::parse(address).ok()?;
    let near = match url.host()? {
        Host::Ipv4(ip) => ip.is_loopback(),
        Host::Ipv6(ip) => ip.is_loopback(),
        // RFC 9700 frees the port of `localhost` too; it remains another host than 127.0.0.1.
        Host::Domain(name) => name == "localhost",
    };
    let rest = address.strip_prefix("http://").filter(|_| near)?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end)?;
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    Some((host, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(known: &str, named: &str) -> bool {
        Redirects::Exactly(vec![known.to_owned()]).choose(Some(named)).is_ok()
    }

    #[test]
    fn redirect_uris_are_compared_byte_for_byte() {
        let known = "https://app.example/cb?a=1";
        assert!(fits(known, known));
        for other in [
            "https://app.example/cb",
            "https://app.example/cb?a=1&b=2",
            "https://app.example/cb/x?a=1",
            "https://app.example/cb/../cb?a=1",
            "https://app.example:443/cb?a=1",
            "https://APP.example/cb?a=1",
            "https://app.example.evil/cb?a=1",
            "https://app.example@evil/cb?a=1",
            "http://app.example/cb?a=1",
            "https://app.example/cb?a=1#x",
            "https://app.example/%63b?a=1",
        ] {
            assert!(!fits(known, other), "{other}");
        }
    }

    #[test]
    fn only_loopback_ports_are_free() {
        for (known, named) in [
            ("http://127.0.0.1/cb", "http://127.0.0.1:1234/cb"),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:2/cb"),
            ("http://[::1]:1/cb", "http://[::1]/cb"),
            ("http://[::1]/cb", "http://[::1]:9/cb"),
            ("http://localhost:1/cb", "http://localhost:2/cb"),
        ] {
            assert!(fits(known, named), "{known} {named}");
        }
        for (known, named) in [
            ("http://127.0.0.1:1/cb", "http://localhost:1/cb"),
            ("http://localhost:1/cb", "http://127.0.0.1:1/cb"),
            ("http://127.0.0.1:1/cb", "http://[::1]:1/cb"),
            ("http://127.0.0.1:1/cb", "http://127.0.0.2:1/cb"),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:2/cb/more"),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:2/cb?x=1"),
            ("http://127.0.0.1:1/cb", "http://me@127.0.0.1:2/cb"),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:2@evil.example/cb"),
            ("http://127.0.0.1:1/cb", "https://127.0.0.1:2/cb"),
            ("https://127.0.0.1:1/cb", "https://127.0.0.1:2/cb"),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:2/cb#f"),
        ] {
            assert!(!fits(known, named), "{known} {named}");
        }
    }

    #[test]
    fn harmful_redirect_uris_are_invalid() {
        for address in [
            "javascript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "vbscript:x",
            "com.example.app:/cb",
            "http://app.example/cb",
            "http://10.0.0.1/cb",
            "https:app.example/cb",
            "https:///cb",
            "HTTPS://app.example/cb",
            "//app.example/cb",
            "/cb",
            "",
            "https://user@app.example/",
            "https://user:pass@app.example/",
            "https://@app.example/",
            "https://app.example/#",
            "https://app.example/a b",
            "https://app.example/\r\nSet-Cookie: a=b",
            "https://app.example\\@evil/",
        ] {
            assert!(check(address).is_err(), "{address}");
        }
        assert!(check(&format!("https://app.example/{}", "a".repeat(MAX_URI_BYTES))).is_err());
        assert!(check("https://app.example/cb?x=%20&y=@").is_ok());
    }

    #[test]
    fn a_single_redirect_uri_need_not_be_named() {
        let one = Redirects::Exactly(vec!["https://a/".into()]);
        assert_eq!(one.choose(None).unwrap(), "https://a/");
        assert!(Redirects::Exactly(vec!["https://a/".into(), "https://b/".into()]).choose(None).is_err());
        assert!(Redirects::AnyLoopback.choose(None).is_err());
        assert!(Redirects::AnyLoopback.choose(Some("http://127.0.0.1:7/x")).is_ok());
        assert!(Redirects::AnyLoopback.choose(Some("https://app.example/")).is_err());
    }
}
