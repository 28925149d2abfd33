//! How servers are named, and where they tell about themselves.

use url::Url;

/// Where a resource tells which authorization servers it trusts (RFC 9728).
pub const PROTECTED_RESOURCE: &str = "/.well-known/oauth-protected-resource";

/// Where an authorization server tells about itself (RFC 8414).
pub const AUTHORIZATION_SERVER: &str = "/.well-known/oauth-authorization-server";

/// Where an `OpenID` provider does.
pub const OPENID: &str = "/.well-known/openid-configuration";

/// The name of a server that tokens are issued for: scheme and host in lower case, no fragment, no trailing slash.
pub fn canonical(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    let bare = url.query().is_none() && url.path().ends_with('/');
    let text = url.as_str();
    if bare { text.trim_end_matches('/').to_owned() } else { text.to_owned() }
}

/// The address of a well-known document of whatever is at a URL: between its host and its path.
pub fn well_known(url: &Url, document: &str) -> Url {
    let mut place = url.clone();
    place.set_query(None);
    place.set_fragment(None);
    place.set_path(&format!("{document}{}", url.path().trim_end_matches('/')));
    place
}

/// Where to look for what a resource tells, in this order.
pub fn resource_metadata(resource: &Url) -> Vec<Url> {
    let mut root = resource.clone();
    root.set_path("/");
    distinct([well_known(resource, PROTECTED_RESOURCE), well_known(&root, PROTECTED_RESOURCE)])
}

/// Where to look for what an authorization server tells, in this order.
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

/// Whether a host is this machine by its name alone: what may be spoken to without TLS.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Whether nobody else reads what is sent there, and what comes from there surely does: https, or http on this machine.
pub fn is_confidential(url: &Url) -> bool {
    url.scheme() == "https" || (url.scheme() == "http" && is_loopback(url))
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
    fn names_are_canonical() {
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
    fn documents_are_looked_for_in_order() {
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
    fn documents_are_looked_for_where_the_server_is_whatever_its_path_is() {
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
    fn this_machine_is_known_by_name() {
        for near in ["http://localhost:1/", "http://127.0.0.1", "http://[::1]:2/x"] {
            assert!(is_loopback(&url(near)), "{near}");
        }
        for far in ["http://localhost.example/", "http://10.0.0.1", "http://127.0.0.1.example"] {
            assert!(!is_loopback(&url(far)), "{far}");
        }
    }

    #[test]
    fn secrets_go_by_tls_or_stay_on_this_machine() {
        for good in ["https://h/", "HTTPS://10.0.0.1", "http://localhost:1/", "http://[::1]/"] {
            assert!(is_confidential(&url(good)), "{good}");
        }
        for bad in
            ["http://h/", "http://10.0.0.1", "ws://localhost/", "wss://h/", "ftp://127.0.0.1", "file:///x"]
        {
            assert!(!is_confidential(&url(bad)), "{bad}");
        }
    }
}
