//! Resource identifiers and metadata URLs of a server (RFC 9728).

use url::{Host, Url};

use crate::uri::{self, PROTECTED_RESOURCE};

/// The resource identifiers of one server: the canonical one, one for each further endpoint, and on loopback all of them for
/// each loopback name.
///
/// Endpoints are identified by routes: paths relative to the mount point.
#[derive(Debug, Clone)]
pub struct ResourceNames {
    canonical: Named,
    others: Vec<Named>,
    /// The path in front of the routes; unknown where a proxy maps the main endpoint to another path.
    mount: Option<String>,
}

/// One identifier of one endpoint.
#[derive(Debug, Clone)]
struct Named {
    route: String,
    url: Url,
    name: String,
    /// The path of its metadata document.
    document: String,
}

impl Named {
    fn new(route: &str, url: Url) -> Self {
        let document = uri::well_known(&url, PROTECTED_RESOURCE).path().to_owned();
        Self { route: route.to_owned(), name: uri::canonical(&url), document, url }
    }
}

impl ResourceNames {
    /// The identifiers of a server whose main endpoint, with the route `main`, has this URL. `siblings` are the routes of the
    /// other endpoints.
    pub fn new(resource: Url, main: &str, siblings: &[&str]) -> Self {
        let mut urls: Vec<(&str, Url)> = vec![(main, resource.clone())];
        // A proxy may map the main endpoint to another path; the other endpoints are unknown then.
        let mount = resource.path().strip_suffix(main).map(str::to_owned);
        if let Some(mount) = &mount {
            urls.extend(
                siblings.iter().map(|sibling| (*sibling, at(&resource, &format!("{mount}{sibling}")))),
            );
        }
        let by_other_names: Vec<(&str, Url)> =
            urls.iter().flat_map(|(route, url)| renamed(url).map(|url| (*route, url))).collect();
        let mut others: Vec<Named> = Vec::new();
        let canonical = Named::new(main, resource);
        for (route, url) in urls.into_iter().chain(by_other_names) {
            let named = Named::new(route, url);
            if named.name != canonical.name && !others.iter().any(|known| known.name == named.name) {
                others.push(named);
            }
        }
        Self { canonical, others, mount }
    }

    /// The canonical resource identifier, for which tokens should be issued.
    pub fn canonical(&self) -> &str {
        &self.canonical.name
    }

    /// All accepted audiences.
    pub fn audiences(&self) -> Vec<String> {
        let names = self.all().map(|named| named.name.clone());
        // A URL without a path is also written with a slash.
        let bare =
            self.all().filter(|named| named.url.path() == "/").map(|named| named.url.as_str().to_owned());
        names.chain(bare).collect()
    }

    /// The resource identifier that a metadata document describes, by its path and the requested host. The document at the root
    /// describes the main endpoint.
    pub fn described(&self, document: &str, host: Option<&str>) -> Option<&str> {
        let document = document.trim_end_matches('/');
        let root = document == PROTECTED_RESOURCE;
        let wanted = if root { &self.canonical.document } else { document };
        let fits = |named: &&Named| named.document == wanted;
        let asked =
            |named: &&Named| host.is_some_and(|host| authority(&named.url).eq_ignore_ascii_case(host));
        let by_host = self.all().find(|named| fits(named) && asked(named));
        by_host.or_else(|| self.all().find(fits)).map(|named| named.name.as_str())
    }

    /// The metadata URL of an endpoint, by its route and the requested host.
    pub fn document(&self, route: &str, host: Option<&str>) -> String {
        let there = |named: &&Named| named.route == route;
        let asked =
            |named: &&Named| host.is_some_and(|host| authority(&named.url).eq_ignore_ascii_case(host));
        let by_host = self.all().find(|named| there(named) && asked(named));
        let endpoint = by_host.or_else(|| self.all().find(there)).unwrap_or(&self.canonical);
        uri::well_known(&endpoint.url, PROTECTED_RESOURCE).into()
    }

    /// All URLs of a route; `path` is the requested path. A DPoP proof names one of them.
    pub fn urls(&self, route: &str, path: &str) -> Vec<Url> {
        let resource = &self.canonical.url;
        let url = match &self.mount {
            _ if route == self.canonical.route => resource.clone(),
            Some(mount) => at(resource, &format!("{mount}{route}")),
            // The mount point is unknown; the host is the same.
            None => at(resource, path),
        };
        let others: Vec<Url> = renamed(&url).collect();
        std::iter::once(url).chain(others).collect()
    }

    fn all(&self) -> impl Iterator<Item = &Named> {
        std::iter::once(&self.canonical).chain(&self.others)
    }
}

/// Loopback names.
fn nearby() -> [Host<&'static str>; 3] {
    [
        Host::Domain("localhost"),
        Host::Ipv4(std::net::Ipv4Addr::LOCALHOST),
        Host::Ipv6(std::net::Ipv6Addr::LOCALHOST),
    ]
}

/// A loopback URL with each loopback name; nothing for other URLs.
fn renamed(url: &Url) -> impl Iterator<Item = Url> {
    let near = nearby().into_iter().filter(|_| uri::is_loopback(url));
    near.filter_map(|host| {
        let mut other = url.clone();
        other.set_host(Some(&host.to_string())).is_ok().then_some(other)
    })
}

/// Another path on the same server.
fn at(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_path(path);
    url.set_query(None);
    url
}

/// Host and port as the `Host` header writes them.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(resource: &str) -> ResourceNames {
        ResourceNames::new(Url::parse(resource).unwrap(), "/mcp", &["/mcp/ws", "/sse"])
    }

    #[test]
    fn every_endpoint_has_an_identifier_and_metadata() {
        let names = names("https://Example.com/api/mcp");
        assert_eq!(names.canonical(), "https://example.com/api/mcp");
        let all =
            ["https://example.com/api/mcp", "https://example.com/api/mcp/ws", "https://example.com/api/sse"];
        assert_eq!(names.audiences(), all);
        let about =
            |path: &str| names.described(&format!("/.well-known/oauth-protected-resource{path}"), None);
        assert_eq!(about(""), Some(all[0]));
        assert_eq!(about("/"), Some(all[0]));
        assert_eq!(about("/api/mcp"), Some(all[0]));
        assert_eq!(about("/api/sse"), Some(all[2]));
        assert_eq!((about("/mcp"), about("/api/mcp/other"), about("/api")), (None, None, None));
        assert_eq!(
            names.document("/sse", Some("evil.com")),
            "https://example.com/.well-known/oauth-protected-resource/api/sse"
        );
        assert_eq!(
            names.document("/elsewhere", None),
            "https://example.com/.well-known/oauth-protected-resource/api/mcp"
        );
    }

    #[test]
    fn loopback_names_are_aliases() {
        let names = names("http://127.0.0.1:3000/mcp");
        assert_eq!(names.audiences().len(), 9);
        let root = "/.well-known/oauth-protected-resource";
        assert_eq!(names.described(root, Some("LOCALHOST:3000")), Some("http://localhost:3000/mcp"));
        assert_eq!(names.described(root, Some("[::1]:3000")), Some("http://[::1]:3000/mcp"));
        assert_eq!(names.described(root, Some("localhost:4000")), Some("http://127.0.0.1:3000/mcp"));
        assert_eq!(
            names.document("/sse", Some("localhost:3000")),
            "http://localhost:3000/.well-known/oauth-protected-resource/sse"
        );
    }

    #[test]
    fn dpop_urls_are_those_of_the_requested_route() {
        let texts = |names: &ResourceNames, route: &str, path: &str| -> Vec<String> {
            names.urls(route, path).into_iter().map(String::from).collect()
        };
        let near = texts(&names("http://127.0.0.1:3000/mcp"), "/messages", "/messages");
        for name in ["http://127.0.0.1:3000", "http://localhost:3000", "http://[::1]:3000"] {
            assert!(near.contains(&format!("{name}/messages")), "{near:?}");
        }
        assert!(near.iter().all(|url| url.ends_with("/messages")), "{near:?}");
        // A proxy may strip the start of the path.
        let mounted = names("https://h/api/mcp");
        assert_eq!(texts(&mounted, "/mcp", "/mcp"), ["https://h/api/mcp"]);
        assert_eq!(texts(&mounted, "/messages", "/messages"), ["https://h/api/messages"]);
        let moved = names("https://h/");
        assert_eq!(texts(&moved, "/mcp", "/mcp"), ["https://h/"]);
        assert_eq!(texts(&moved, "/messages", "/messages"), ["https://h/messages"]);
    }

    #[test]
    fn a_remapped_endpoint_has_one_identifier() {
        let names = names("https://mcp.example.com");
        assert_eq!(names.audiences(), ["https://mcp.example.com", "https://mcp.example.com/"]);
        let root = "/.well-known/oauth-protected-resource";
        assert_eq!(names.described(root, None), Some("https://mcp.example.com"));
        assert_eq!(
            names.document("/mcp", None),
            "https://mcp.example.com/.well-known/oauth-protected-resource"
        );
    }
}
