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
    /// Additional origins.
    origins: Vec<Url>,
}

/// The origin that a request names: its host, and its scheme where that is known.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestOrigin<'a> {
    /// The host, with its port unless it is the default.
    pub host: Option<&'a str>,
    /// The scheme, where a trusted proxy tells it.
    pub scheme: Option<&'a str>,
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
        Self { canonical, others, mount, origins: Vec::new() }
    }

    /// Adds hosts, with a port or without. Proxies in front of the server may speak http or https, so each host counts with
    /// both schemes. Only names count: several servers may share an address.
    #[must_use]
    pub fn and_hosts<'a>(mut self, hosts: impl IntoIterator<Item = &'a str>) -> Self {
        let own = uri::authority(&self.canonical.url);
        for host in hosts.into_iter().filter(|host| !own.eq_ignore_ascii_case(host)) {
            for scheme in ["https", "http"] {
                let url = Url::parse(&format!("{scheme}://{host}/"));
                let is_name = |url: &Url| {
                    matches!(url.host(), Some(Host::Domain(_)))
                        && uri::authority(url).eq_ignore_ascii_case(host)
                };
                let Some(origin) = url.ok().filter(is_name) else { continue };
                let known: Vec<(String, Url)> =
                    self.all().map(|named| (named.route.clone(), moved(&origin, &named.url))).collect();
                for (route, url) in known {
                    let named = Named::new(&route, url);
                    if !self.all().any(|known| known.name == named.name) {
                        self.others.push(named);
                    }
                }
                self.origins.push(origin);
            }
        }
        self
    }

    /// The canonical resource identifier, for which tokens should be issued.
    pub fn canonical(&self) -> &str {
        &self.canonical.name
    }

    /// The URL of the main endpoint.
    pub fn resource(&self) -> &Url {
        &self.canonical.url
    }

    /// All accepted audiences.
    pub fn audiences(&self) -> Vec<String> {
        let names = self.all().map(|named| named.name.clone());
        // A URL without a path is also written with a slash.
        let bare =
            self.all().filter(|named| named.url.path() == "/").map(|named| named.url.as_str().to_owned());
        names.chain(bare).collect()
    }

    /// The resource identifier that a metadata document describes, by its path and the requested origin. The document at
    /// the root describes the main endpoint.
    pub fn described(&self, document: &str, by: RequestOrigin<'_>) -> Option<&str> {
        let document = document.trim_end_matches('/');
        let root = document == PROTECTED_RESOURCE;
        let wanted = if root { &self.canonical.document } else { document };
        let fits = |named: &&Named| named.document == wanted;
        let by_host = self.all().find(|named| fits(named) && self.is_called(named, by));
        by_host.or_else(|| self.all().find(fits)).map(|named| named.name.as_str())
    }

    /// The metadata URL of an endpoint, by its route and the requested origin.
    pub fn document(&self, route: &str, by: RequestOrigin<'_>) -> String {
        let there = |named: &&Named| named.route == route;
        let by_host = self.all().find(|named| there(named) && self.is_called(named, by));
        let endpoint = by_host.or_else(|| self.all().find(there)).unwrap_or(&self.canonical);
        uri::well_known(&endpoint.url, PROTECTED_RESOURCE).into()
    }

    /// True if an endpoint was requested by this name. The scheme of the canonical one is configured, whatever a proxy says
    /// that stands behind another.
    fn is_called(&self, named: &Named, by: RequestOrigin<'_>) -> bool {
        let canonical = &self.canonical.url;
        let is_canonical = uri::authority(&named.url) == uri::authority(canonical);
        let scheme = by.scheme.filter(|_| !is_canonical).unwrap_or(canonical.scheme());
        by.host.is_some_and(|host| uri::authority(&named.url).eq_ignore_ascii_case(host))
            && named.url.scheme() == scheme
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
        let elsewhere = self.origins.iter().map(|origin| moved(origin, &url));
        let others: Vec<Url> = renamed(&url).chain(elsewhere).collect();
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

/// The same path at another origin.
fn moved(origin: &Url, url: &Url) -> Url {
    at(origin, url.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(resource: &str) -> ResourceNames {
        ResourceNames::new(Url::parse(resource).unwrap(), "/mcp", &["/mcp/ws", "/sse"])
    }

    fn host(host: &str) -> RequestOrigin<'_> {
        RequestOrigin { host: Some(host), scheme: None }
    }

    #[test]
    fn further_hosts_are_names_with_the_scheme_that_is_known() {
        let root = "/.well-known/oauth-protected-resource";
        let by = |host, scheme| RequestOrigin { host: Some(host), scheme: Some(scheme) };
        let near = names("http://127.0.0.1:3000/mcp").and_hosts([
            "mcp.example",
            "other.example:8443",
            "no host",
            "192.0.2.1",
        ]);
        assert_eq!(near.canonical(), "http://127.0.0.1:3000/mcp");
        assert_eq!(near.described(root, by("mcp.example", "https")), Some("https://mcp.example/mcp"));
        assert_eq!(near.described(root, by("mcp.example", "http")), Some("http://mcp.example/mcp"));
        assert_eq!(
            near.described(root, by("other.example:8443", "https")),
            Some("https://other.example:8443/mcp")
        );
        assert_eq!(near.described(root, by("evil.example", "https")), Some("http://127.0.0.1:3000/mcp"));
        assert_eq!(near.described(root, by("127.0.0.1:3000", "https")), Some("http://127.0.0.1:3000/mcp"));
        assert_eq!(
            near.document("/sse", by("mcp.example", "https")),
            "https://mcp.example/.well-known/oauth-protected-resource/sse"
        );
        assert!(near.audiences().contains(&"https://mcp.example/mcp/ws".to_owned()));
        assert!(!near.audiences().iter().any(|name| name.contains("192.0.2.1")));
        let proofs: Vec<String> = near.urls("/messages", "/messages").into_iter().map(String::from).collect();
        assert!(proofs.contains(&"https://mcp.example/messages".to_owned()), "{proofs:?}");
        // Its own address is what it was told, also where a proxy behind another speaks plain HTTP.
        let public = names("https://mcp.example/mcp").and_hosts(["mcp.example"]);
        assert_eq!(public.described(root, by("mcp.example", "http")), Some("https://mcp.example/mcp"));
    }

    #[test]
    fn every_endpoint_has_an_identifier_and_metadata() {
        let names = names("https://Example.com/api/mcp");
        assert_eq!(names.canonical(), "https://example.com/api/mcp");
        let all =
            ["https://example.com/api/mcp", "https://example.com/api/mcp/ws", "https://example.com/api/sse"];
        assert_eq!(names.audiences(), all);
        let about = |path: &str| {
            names.described(&format!("/.well-known/oauth-protected-resource{path}"), RequestOrigin::default())
        };
        assert_eq!(about(""), Some(all[0]));
        assert_eq!(about("/"), Some(all[0]));
        assert_eq!(about("/api/mcp"), Some(all[0]));
        assert_eq!(about("/api/sse"), Some(all[2]));
        assert_eq!((about("/mcp"), about("/api/mcp/other"), about("/api")), (None, None, None));
        assert_eq!(
            names.document("/sse", host("evil.com")),
            "https://example.com/.well-known/oauth-protected-resource/api/sse"
        );
        assert_eq!(
            names.document("/elsewhere", RequestOrigin::default()),
            "https://example.com/.well-known/oauth-protected-resource/api/mcp"
        );
    }

    #[test]
    fn loopback_names_are_aliases() {
        let names = names("http://127.0.0.1:3000/mcp");
        assert_eq!(names.audiences().len(), 9);
        let root = "/.well-known/oauth-protected-resource";
        assert_eq!(names.described(root, host("LOCALHOST:3000")), Some("http://localhost:3000/mcp"));
        assert_eq!(names.described(root, host("[::1]:3000")), Some("http://[::1]:3000/mcp"));
        assert_eq!(names.described(root, host("localhost:4000")), Some("http://127.0.0.1:3000/mcp"));
        assert_eq!(
            names.document("/sse", host("localhost:3000")),
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
        assert_eq!(names.described(root, RequestOrigin::default()), Some("https://mcp.example.com"));
        assert_eq!(
            names.document("/mcp", RequestOrigin::default()),
            "https://mcp.example.com/.well-known/oauth-protected-resource"
        );
    }
}
