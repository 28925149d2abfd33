//! Addresses of servers: URLs of HTTP and WebSocket, shown without their secrets.

use std::borrow::Cow;
use std::fmt;

use hyper::Uri;
use hyper::header::HeaderValue;
use refmcp_auth::uri;
use refmcp_proto::jsonrpc::excerpt;
use url::{Host, Url};

use crate::redact;

/// Why a text is not the address of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// Not a URL.
    #[error("not a URL: {0}")]
    NotAUrl(String),
    /// Some other scheme.
    #[error("the URL's scheme is {0:?}, not one of {1}")]
    Scheme(String, &'static str),
    /// A user name or a password in it.
    #[error("the URL holds a user name or a password, which would show up in logs; send a header instead")]
    UserInfo,
}

/// A checked URL of a server.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    url: Url,
    secure: bool,
}

impl Address {
    /// An address of HTTP, with or without TLS. A fragment is dropped.
    pub fn http(url: &str) -> Result<Self, UrlError> {
        Self::parse(url, ("http", "https"), "http and https")
    }

    /// An address of WebSocket, with or without TLS. A fragment is dropped.
    pub fn websocket(url: &str) -> Result<Self, UrlError> {
        Self::parse(url, ("ws", "wss"), "ws and wss")
    }

    fn parse(url: &str, (plain, secure): (&str, &str), names: &'static str) -> Result<Self, UrlError> {
        let url = Url::parse(url).map_err(|error| UrlError::NotAUrl(error.to_string()))?;
        Self::check(url, (plain, secure), names)
    }

    fn check(mut url: Url, (plain, secure): (&str, &str), names: &'static str) -> Result<Self, UrlError> {
        if url.scheme() != plain && url.scheme() != secure {
            return Err(UrlError::Scheme(excerpt(url.scheme()), names));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlError::UserInfo);
        }
        if url.host().is_none() {
            return Err(UrlError::NotAUrl("it names no host".to_owned()));
        }
        url.set_fragment(None);
        let secure = url.scheme() == secure;
        Ok(Self { url, secure })
    }

    /// True if it is reached over TLS.
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// The host as it is looked up: without the brackets of IPv6.
    pub(crate) fn host(&self) -> String {
        match self.url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            None => String::new(),
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or(if self.secure { 443 } else { 80 })
    }

    /// See [`as_http`].
    pub(crate) fn as_http(&self) -> Url {
        as_http(&self.url)
    }

    /// The `Host` header.
    pub(crate) fn authority(&self) -> &str {
        self.url.authority()
    }

    /// The request target in origin form.
    pub(crate) fn path_and_query(&self) -> Cow<'_, str> {
        match self.url.query() {
            None => self.url.path().into(),
            Some(query) => format!("{}?{query}", self.url.path()).into(),
        }
    }

    /// Resolves a reference of the server; an error if it leads to another origin.
    pub(crate) fn join(&self, reference: &str) -> Result<Self, String> {
        // Without the query, which may hold a secret.
        let shown = || excerpt(reference.split('?').next().unwrap_or_default());
        let url = self.url.join(reference).map_err(|error| format!("{:?}: {error}", shown()))?;
        if url.origin() != self.url.origin() {
            return Err(format!("{:?} is not at {}", shown(), self.url.origin().ascii_serialization()));
        }
        Self::check(url, ("http", "https"), "http and https").map_err(|error| error.to_string())
    }

    pub(crate) fn target(&self) -> Result<RequestTarget, UrlError> {
        let unfit = |_| UrlError::NotAUrl("no HTTP request can name it".to_owned());
        Ok(RequestTarget {
            origin_form: Uri::try_from(&*self.path_and_query()).map_err(unfit)?,
            absolute: Uri::try_from(self.url.as_str()).map_err(unfit)?,
        })
    }

    pub(crate) fn host_header(&self) -> Result<HeaderValue, UrlError> {
        HeaderValue::from_str(self.authority())
            .map_err(|_| UrlError::NotAUrl("no header can name its host".to_owned()))
    }
}

impl fmt::Display for Address {
    /// Without the query, which may hold a secret, and without what looks like one in the path.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = format!("{}://{}{}", self.url.scheme(), self.url.authority(), self.url.path());
        f.write_str(&redact::url(&shown))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// The URL with the scheme of HTTP, without the query, which may hold a secret.
pub(crate) fn as_http(url: &Url) -> Url {
    let mut there = uri::as_http(url);
    there.set_query(None);
    there
}

/// A request target: HTTP/1.1 wants the origin form, HTTP/2 the absolute one.
#[derive(Clone)]
pub(crate) struct RequestTarget {
    pub(crate) origin_form: Uri,
    pub(crate) absolute: Uri,
}

impl fmt::Debug for RequestTarget {
    /// What follows `?` may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestTarget").field("path", &self.origin_form.path()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_with_other_schemes_or_credentials_are_refused() {
        assert!(matches!(Address::http("mcp"), Err(UrlError::NotAUrl(_))));
        assert!(matches!(Address::http("ftp://host/x"), Err(UrlError::Scheme(_, _))));
        assert!(matches!(Address::http("ws://host/x"), Err(UrlError::Scheme(_, _))));
        assert_eq!(Address::http("http://user@host/"), Err(UrlError::UserInfo));
        assert_eq!(Address::http("http://:secret@host/"), Err(UrlError::UserInfo));
        assert!(Address::websocket("wss://host/").unwrap().is_secure());
    }

    #[test]
    fn fragments_are_dropped_and_queries_kept_but_not_shown() {
        let address = Address::http("https://Host:8443/mcp?key=secret#part").unwrap();
        assert_eq!(address.path_and_query(), "/mcp?key=secret");
        assert_eq!(address.authority(), "host:8443");
        assert_eq!(address.to_string(), "https://host:8443/mcp");
        assert!(!format!("{address:?}").contains("secret"));
        assert_eq!(address.target().unwrap().absolute, "https://host:8443/mcp?key=secret");
        assert!(!format!("{:?}", address.target().unwrap()).contains("secret"));
        assert_eq!((address.port(), Address::http("http://h").unwrap().port()), (8443, 80));
        assert_eq!(Address::http("http://[::1]:9/").unwrap().host(), "::1");
        assert_eq!(Address::http("http://[::1]:9/").unwrap().authority(), "[::1]:9");
    }

    #[test]
    fn references_stay_in_the_origin() {
        let address = Address::http("http://host:1/a/sse").unwrap();
        assert_eq!(address.join("messages?id=1").unwrap().path_and_query(), "/a/messages?id=1");
        assert_eq!(address.join("/m").unwrap().path_and_query(), "/m");
        assert_eq!(address.join("http://HOST:1/m").unwrap().path_and_query(), "/m");
        for foreign in [
            "http://host:2/m",
            "https://host:1/m",
            "//other/m",
            "http://evil/",
            "javascript:1",
            "http://u@host:1/",
            "\\\\other\\m",
            "/\\other/m",
            "\t//other/m",
            "http:\n//other/m",
            "http:///other/m",
            "http://host:1@other/m",
            "http://host:1.other/m",
            "file:///m",
            "ws://host:1/m",
            // Without the line's end it is a scheme.
            "m\r\nHost: other",
        ] {
            assert!(address.join(foreign).is_err(), "{foreign:?}");
        }
        for foreign in ["http://other/m?sessionId=hush", "http://:::/m?sessionId=hush"] {
            let why = address.join(foreign).unwrap_err();
            assert!(why.contains("/m") && !why.contains("hush"), "{why}");
        }
        for near in [
            "../../../m",
            "%2e%2e/%2E%2E/m",
            "..\\m",
            "/a//other/m",
            "?sessionId=//other/m",
            "#//other",
            "m?x=http://other/",
            "m\0",
            "/m\r\nHost: other",
        ] {
            let joined = address.join(near).unwrap();
            assert_eq!((joined.authority(), joined.is_secure()), ("host:1", false), "{near:?}");
            let line = joined.path_and_query().into_owned();
            assert!(
                line.starts_with('/') && line.bytes().all(|byte| matches!(byte, b'!'..=b'~')),
                "{line:?}"
            );
            assert!(!line.split('/').any(|part| part == ".."), "{line:?}");
        }
    }
}
