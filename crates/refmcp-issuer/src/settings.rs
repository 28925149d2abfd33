//! What an authorization server is told when it starts.

use std::sync::Arc;
use std::time::Duration;

use refmcp_auth::fetch::Fetch;
use refmcp_auth::jose::Jwks;
use refmcp_auth::{Scopes, uri};
use url::Url;

use crate::clients::Client;
use crate::faults::{Fault, Faults};

/// How people log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Login {
    /// They are asked on a page.
    #[default]
    Ask,
    /// Everything is allowed at once, to whoever `login_hint` names or to `user`. For tests without people.
    Auto,
}

/// Somebody whose signed assertions are taken.
#[derive(Debug, Clone)]
pub struct Trusted {
    /// Its name, as assertions have it in `iss`.
    pub issuer: String,
    /// The keys that it signs with.
    pub keys: Jwks,
}

/// What an authorization server is told.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The origin that it is reached at; it has no path.
    pub origin: Url,
    /// What tokens can be for; the first is meant when a client names none.
    pub resources: Vec<String>,
    /// The scopes that can be granted.
    pub scopes: Scopes,
    /// The scopes that are granted when a client names none.
    pub default_scopes: Scopes,
    /// How people log in.
    pub login: Login,
    /// How long access tokens are good.
    pub lifetime: Duration,
    /// How long refresh tokens are good.
    pub refresh_lifetime: Duration,
    /// The clients that are known beforehand.
    pub clients: Vec<Client>,
    /// Who fetches the documents of clients that are named by a URL; nobody: there are no such clients.
    pub fetch: Option<Arc<dyn Fetch>>,
    /// Whether those documents may be on this machine, without TLS.
    pub near_documents: bool,
    /// Whose word is taken about employees (ID-JAG).
    pub identity_providers: Vec<Trusted>,
    /// Whose word is taken about workloads.
    pub workload_issuers: Vec<Trusted>,
    /// Whether proofs of possession must carry a nonce of ours.
    pub dpop_nonce: bool,
    /// What goes wrong.
    pub faults: Faults,
}

impl Settings {
    /// An authorization server at an origin, for one resource; people are asked, tokens are good for an hour.
    pub fn new(origin: Url, resource: impl Into<String>) -> Self {
        Self {
            origin,
            resources: vec![resource.into()],
            scopes: Scopes::none(),
            default_scopes: Scopes::none(),
            login: Login::Ask,
            lifetime: Duration::from_secs(3600),
            refresh_lifetime: Duration::from_secs(30 * 24 * 3600),
            clients: Vec::new(),
            fetch: None,
            near_documents: false,
            identity_providers: Vec::new(),
            workload_issuers: Vec::new(),
            dpop_nonce: false,
            faults: Faults::default(),
        }
    }

    /// The server's name: what tokens, metadata and resources call it.
    pub fn issuer(&self) -> String {
        format!("{}{}", self.base(), self.tenant().unwrap_or_default())
    }

    /// The path in the server's name, where a fault asks for one.
    pub(crate) fn tenant(&self) -> Option<&'static str> {
        let with_path = [Fault::IssuerPath, Fault::IssuerPathOidc, Fault::IssuerPathAppended];
        with_path.into_iter().any(|fault| self.faults.has(fault)).then_some("/tenant")
    }

    /// The address of an endpoint.
    pub(crate) fn endpoint(&self, path: &str) -> String {
        format!("{}{path}", self.base())
    }

    fn base(&self) -> String {
        let mut origin = self.origin.clone();
        origin.set_path("/");
        origin.set_query(None);
        uri::canonical(&origin)
    }

    /// The resource that a request is about, by its name here: the one that it names, or the first.
    pub(crate) fn resource(&self, named: Option<&str>) -> Option<&str> {
        let Some(named) = named else {
            return self.resources.first().map(String::as_str);
        };
        let canonical = Url::parse(named).ok().filter(|url| url.fragment().is_none());
        let canonical = canonical.map(|url| uri::canonical(&url));
        let mut resources = self.resources.iter().map(String::as_str);
        resources.find(|resource| *resource == named || Some(*resource) == canonical.as_deref())
    }

    /// Of the scopes that a request names, those that exist; none: nothing of what it wants does.
    pub(crate) fn scopes(&self, named: Option<&str>) -> Option<Scopes> {
        let Some(named) = named else {
            return Some(self.default_scopes.clone());
        };
        let granted = Scopes::parse(named).ok()?.intersection(&self.scopes);
        (!granted.is_empty()).then_some(granted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_has_no_slash_at_its_end() {
        let mut settings = Settings::new(Url::parse("http://127.0.0.1:3000/").unwrap(), "r");
        assert_eq!(settings.issuer(), "http://127.0.0.1:3000");
        assert_eq!(settings.endpoint("/token"), "http://127.0.0.1:3000/token");
        settings.faults = Faults::default().and(Fault::IssuerPath);
        assert_eq!(settings.issuer(), "http://127.0.0.1:3000/tenant");
        assert_eq!(settings.endpoint("/token"), "http://127.0.0.1:3000/token");
    }

    #[test]
    fn resources_are_known_by_their_canonical_name() {
        let settings = Settings::new(Url::parse("https://h").unwrap(), "https://h/mcp");
        for named in [None, Some("https://h/mcp"), Some("https://H/mcp/"), Some("https://h:443/mcp")] {
            assert_eq!(settings.resource(named), Some("https://h/mcp"), "{named:?}");
        }
        for named in ["https://h", "https://h/mcp2", "https://h/mcp#x", "http://h/mcp", "mcp", "💥"] {
            assert_eq!(settings.resource(Some(named)), None, "{named}");
        }
    }
}
