//! What a resource is called, and where it tells about itself (RFC 9728).

use url::{Host, Url};

use crate::uri::{self, PROTECTED_RESOURCE};

/// The names of one server: a canonical one, those of its other endpoints, and all of them again by each name that this
/// machine has for itself, where the server is on it.
#[derive(Debug, Clone)]
pub struct Names {
    canonical: Named,
    others: Vec<Named>,
}

/// One endpoint by one name.
#[derive(Debug, Clone)]
struct Named {
    url: Url,
    name: String,
    /// The path of the document about it.
    document: String,
}

impl Named {
    fn new(url: Url) -> Self {
        let document = uri::well_known(&url, PROTECTED_RESOURCE).path().to_owned();
        Self { name: uri::canonical(&url), document, url }
    }
}

impl Names {
    /// The names of a server whose main endpoint is at this URL; `siblings` are its other endpoints by their paths, from
    /// where the server is mounted, and `main` is that of the main one.
    pub fn new(resource: Url, main: &str, siblings: &[&str]) -> Self {
        let mut urls: Vec<Url> = vec![resource.clone()];
        // Whatever stands in front of us may have moved the main endpoint; then it alone is known.
        if let Some(mount) = resource.path().strip_suffix(main) {
            for sibling in siblings {
                let mut url = resource.clone();
                url.set_path(&format!("{mount}{sibling}"));
                urls.push(url);
            }
        }
        let by_other_names: Vec<Url> =
            urls.iter().flat_map(|url| nearby().map(|host| renamed(url, &host))).flatten().collect();
        let mut others: Vec<Named> = Vec::new();
        let canonical = Named::new(resource);
        for url in urls.into_iter().chain(by_other_names) {
            let named = Named::new(url);
            if named.name != canonical.name && !others.iter().any(|known| known.name == named.name) {
                others.push(named);
            }
        }
        Self { canonical, others }
    }

    /// The name that tokens should be issued for.
    pub fn canonical(&self) -> &str {
        &self.canonical.name
    }

    /// Every name that a token for us may have.
    pub fn audiences(&self) -> Vec<String> {
        let names = self.all().map(|named| named.name.clone());
        // A URL without a path is one with a slash, too.
        let bare =
            self.all().filter(|named| named.url.path() == "/").map(|named| named.url.as_str().to_owned());
        names.chain(bare).collect()
    }

    /// The name of what a document is about, by the path of the document and the host that was asked for it; the document
    /// at the root is about the main endpoint.
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

    /// The address of the document about an endpoint: the one with this path, by the name that it was called by.
    pub fn document(&self, path: &str, host: Option<&str>) -> String {
        let endpoint = self.called(path, host).next().unwrap_or(&self.canonical);
        uri::well_known(&endpoint.url, PROTECTED_RESOURCE).into()
    }

    /// An endpoint's URL by each of its names; the one that it was called by comes first.
    pub fn urls(&self, path: &str, host: Option<&str>) -> Vec<Url> {
        let mut urls: Vec<Url> = self.called(path, host).map(|named| named.url.clone()).collect();
        if urls.is_empty() {
            urls.push(self.canonical.url.clone());
        }
        urls
    }

    fn called(&self, path: &str, host: Option<&str>) -> impl Iterator<Item = &Named> {
        let there = move |named: &&Named| named.url.path() == path;
        let asked =
            move |named: &&Named| host.is_some_and(|host| authority(&named.url).eq_ignore_ascii_case(host));
        let first = self.all().find(move |named| there(named) && asked(named));
        first.into_iter().chain(self.all().filter(there))
    }

    fn all(&self) -> impl Iterator<Item = &Named> {
        std::iter::once(&self.canonical).chain(&self.others)
    }
}

/// The names of this machine for itself.
fn nearby() -> [Host<&'static str>; 3] {
    [
        Host::Domain("localhost"),
        Host::Ipv4(std::net::Ipv4Addr::LOCALHOST),
        Host::Ipv6(std::net::Ipv6Addr::LOCALHOST),
    ]
}

/// The same on this machine by another name for it; nothing where it is elsewhere.
fn renamed(url: &Url, host: &Host<&'static str>) -> Option<Url> {
    let mut other = url.clone();
    (uri::is_loopback(url) && other.set_host(Some(&host.to_string())).is_ok()).then_some(other)
}

/// Host and port, as a request names them.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(resource: &str) -> Names {
        Names::new(Url::parse(resource).unwrap(), "/mcp", &["/mcp/ws", "/sse"])
    }

    #[test]
    fn every_endpoint_has_a_name_and_a_document() {
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
            names.document("/api/sse", Some("evil.com")),
            "https://example.com/.well-known/oauth-protected-resource/api/sse"
        );
        assert_eq!(
            names.document("/elsewhere", None),
            "https://example.com/.well-known/oauth-protected-resource/api/mcp"
        );
    }

    #[test]
    fn this_machine_is_called_by_any_of_its_names() {
        let names = names("http://127.0.0.1:3000/mcp");
        assert_eq!(names.audiences().len(), 9);
        let root = "/.well-known/oauth-protected-resource";
        assert_eq!(names.described(root, Some("LOCALHOST:3000")), Some("http://localhost:3000/mcp"));
        assert_eq!(names.described(root, Some("[::1]:3000")), Some("http://[::1]:3000/mcp"));
        assert_eq!(names.described(root, Some("localhost:4000")), Some("http://127.0.0.1:3000/mcp"));
        assert_eq!(names.urls("/mcp", Some("localhost:3000"))[0].as_str(), "http://localhost:3000/mcp");
        assert_eq!(names.urls("/mcp", None).len(), 3);
        assert_eq!(names.urls("/elsewhere", None)[0].as_str(), "http://127.0.0.1:3000/mcp");
    }

    #[test]
    fn a_server_that_was_moved_has_one_name() {
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
