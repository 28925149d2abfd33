//! Resource names and well-known URLs.

use url::Url;

/// Path of protected resource metadata (RFC 9728).
pub const PROTECTED_RESOURCE: &str = "/.well-known/oauth-protected-resource";

/// Path of authorization server metadata (RFC 8414).
pub const AUTHORIZATION_SERVER: &str = "/.well-known/oauth-authorization-server";

/// Path of `OpenID` provider metadata.
pub const OPENID: &str = "/.well-known/openid-configuration";

/// The canonical resource name of a URL: lower-case scheme and host, no fragment, no trailing slash.
pub fn canonical(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    let bare = url.query().is_none() && url.path().ends_with('/');
    let text = url.as_str();
    if bare { text.trim_end_matches('/').to_owned() } else { text.to_owned() }
}

/// The well-known URL of a document: its path stands between the host and the path of the URL.
pub fn well_known(url: &Url, document: &str) -> Url {
    let mut place = url.clone();
    place.set_query(None);
    place.set_fragment(None);
    place.set_path(&format!("{document}{}", url.path().trim_end_matches('/')));
    place
}

/// The URLs of protected resource metadata, in the order in which they are tried.
pub fn resource_metadata(resource: &Url) -> Vec<Url> {
    let mut root = resource.clone();
    root.set_path("/");
    distinct([well_known(resource, PROTECTED_RESOURCE), well_known(&root, PROTECTED_RESOURCE)])
}

/// The URLs of authorization server metadata, in the order in which they are tried.
pub fn server_metadata(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut appended = issuer.clone();
    appended.set_query(None);
    appended.set_fragment(None);
    appended.set_path(&format!("{path}{OPENID}"));
    distinct([well_known(issuer, AUTHORIZATION_SERVER), well_known(issuer, OPENID), appended])
}

fn distinct<const N: usize>(urls: [Url; N]) -> Vec<Url> {
    let mut kept = Vec::with_capacity(N);
    for url in urls {
        if !kept.contains(&url) {
            kept.push(url);
        }
    }
    kept
}

/// The URL with the scheme of HTTP, also of a WebSocket: metadata of a WebSocket endpoint is fetched over HTTP.
pub fn as_http(url: &Url) -> Url {
    let mut there = url.clone();
    // Between these schemes the change is always possible.
    let _changed = match url.scheme() {
        "wss" => there.set_scheme("https"),
        "ws" => there.set_scheme("http"),
        _ => Ok(()),
    };
    there
}

/// True if the host is a loopback name or address. Loopback needs no TLS.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// True if traffic is confidential and authentic: https, or http on loopback.
pub fn is_secure(url: &Url) -> bool {
    url.scheme() == "https" || (url.scheme() == "http" && is_loopback(url))
}

/// The host of a URL, with its port where that is not the usual one.
pub fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(urls: Vec<Url>) -> Vec<String> {
        urls.into_iter().map(String::from).collect()
    }

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn resource_identifiers_are_canonical() {
        for (given, name) in [
            ("HTTPS://Example.COM", "https://example.com"),
            ("https://example.com/mcp/", "https://example.com/mcp"),
            ("https://example.com:443/Mcp#part", "https://example.com/Mcp"),
            ("http://127.0.0.1:3000/mcp", "http://127.0.0.1:3000/mcp"),
            ("https://example.com/?a=/", "https://example.com/?a=/"),
        ] {
            assert_eq!(canonical(&url(given)), name);
        }
    }

    #[test]
    fn well_known_urls_are_tried_in_order() {
        assert_eq!(
            texts(resource_metadata(&url("https://h/a/mcp?x=1"))),
            [
                "https://h/.well-known/oauth-protected-resource/a/mcp",
                "https://h/.well-known/oauth-protected-resource",
            ]
        );
        assert_eq!(texts(resource_metadata(&url("https://h"))).len(), 1);
        assert_eq!(
            texts(server_metadata(&url("https://h/t/"))),
            [
                "https://h/.well-known/oauth-authorization-server/t",
                "https://h/.well-known/openid-configuration/t",
                "https://h/t/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            texts(server_metadata(&url("https://h"))),
            [
                "https://h/.well-known/oauth-authorization-server",
                "https://h/.well-known/openid-configuration"
            ]
        );
    }

    #[test]
    fn well_known_urls_stay_on_the_origin() {
        for path in [
            "/../../x",
            "/%2e%2e/%2E%2e/x",
            "/a/..%2f..%2fx",
            "//evil.example/x",
            "/\\evil.example\\x",
            "/?a=//evil.example",
            "/#//evil.example",
            "/a%00b",
            "/a%3Fb%23c",
            "/@evil.example",
            "/.well-known/../../x",
            "///",
        ] {
            let given = url(&format!("https://h.example{path}"));
            for place in resource_metadata(&given) {
                let root = format!("https://h.example{PROTECTED_RESOURCE}");
                let rest = place.as_str().strip_prefix(&root).unwrap_or_else(|| panic!("{place}"));
                assert!(rest.is_empty() || rest.starts_with('/'), "{place}");
            }
            for place in server_metadata(&given) {
                assert_eq!(place.origin(), given.origin(), "{place}");
                assert!(
                    [AUTHORIZATION_SERVER, OPENID].iter().any(|document| place.path().starts_with(document))
                        || place.path().ends_with(OPENID),
                    "{place}"
                );
                assert_eq!((place.query(), place.fragment()), (None, None), "{place}");
                assert!(!place.path().split('/').any(|part| part == ".."), "{place}");
            }
        }
    }

    #[test]
    fn loopback_is_recognised() {
        for near in ["http://localhost:1/", "http://127.0.0.1", "http://[::1]:2/x"] {
            assert!(is_loopback(&url(near)), "{near}");
        }
        for far in ["http://localhost.example/", "http://10.0.0.1", "http://127.0.0.1.example"] {
            assert!(!is_loopback(&url(far)), "{far}");
        }
    }

    #[test]
    fn secure_urls_are_https_or_loopback() {
        for good in ["https://h/", "HTTPS://10.0.0.1", "http://localhost:1/", "http://[::1]/"] {
            assert!(is_secure(&url(good)), "{good}");
        }
        for bad in
            ["http://h/", "http://10.0.0.1", "ws://localhost/", "wss://h/", "ftp://127.0.0.1", "file:///x"]
        {
            assert!(!is_secure(&url(bad)), "{bad}");
        }
    }
}
