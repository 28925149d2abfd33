//! Settings of an authorization server.

use std::sync::Arc;
use std::time::Duration;

use refmcp_auth::fetch::Fetch;
use refmcp_auth::jose::Jwks;
use refmcp_auth::{Scopes, uri};
use url::Url;

use crate::clients::Client;
use crate::faults::{Fault, Faults};

/// How users log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Login {
    /// On a consent page.
    #[default]
    Ask,
    /// Without a page, as the user of `login_hint` or as `user`. For automated tests.
    Auto,
}

/// A trusted issuer of assertions.
#[derive(Debug, Clone)]
pub struct TrustedIssuer {
    /// The `iss` of its assertions.
    pub issuer: String,
    /// Its public keys.
    pub keys: Jwks,
}

/// Settings of an authorization server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The origin, without a path.
    pub origin: Url,
    /// The resources that tokens are issued for; the first is the default.
    pub resources: Vec<String>,
    /// The scopes that can be granted.
    pub scopes: Scopes,
    /// The scopes of a request that names none.
    pub default_scopes: Scopes,
    /// How users log in.
    pub login: Login,
    /// Lifetime of access tokens.
    pub lifetime: Duration,
    /// Lifetime of refresh tokens.
    pub refresh_lifetime: Duration,
    /// The pre-registered clients.
    pub clients: Vec<Client>,
    /// The fetcher of client ID metadata documents; without one they are not supported.
    pub fetch: Option<Arc<dyn Fetch>>,
    /// Allows client ID metadata documents on loopback, without TLS.
    pub near_documents: bool,
    /// Trusted identity providers of enterprises (ID-JAG).
    pub identity_providers: Vec<TrustedIssuer>,
    /// Trusted issuers of workload identities.
    pub workload_issuers: Vec<TrustedIssuer>,
    /// Demands a nonce in DPoP proofs.
    pub dpop_nonce: bool,
    /// The active faults.
    pub faults: Faults,
}

impl Settings {
    /// An authorization server for one resource, with a consent page and tokens for an hour.
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

    /// The issuer identifier.
    pub fn issuer(&self) -> String {
        format!("{}{}", self.base(), self.tenant().unwrap_or_default())
    }

    /// The path of the issuer, where a fault asks for one.
    pub(crate) fn tenant(&self) -> Option<&'static str> {
        let with_path = [Fault::IssuerPath, Fault::IssuerPathOidc, Fault::IssuerPathAppended];
        with_path.into_iter().any(|fault| self.faults.has(fault)).then_some("/tenant")
    }

    /// The URL of an endpoint.
    pub(crate) fn endpoint(&self, path: &str) -> String {
        format!("{}{path}", self.base())
    }

    fn base(&self) -> String {
        let mut origin = self.origin.clone();
        origin.set_path("/");
        origin.set_query(None);
        uri::canonical(&origin)
    }

    /// The canonical resource of a request: the named one, or the default.
    pub(crate) fn resource(&self, named: Option<&str>) -> Option<&str> {
        let Some(named) = named else {
            return self.resources.first().map(String::as_str);
        };
        let canonical = Url::parse(named).ok().filter(|url| url.fragment().is_none());
        let canonical = canonical.map(|url| uri::canonical(&url));
        let mut resources = self.resources.iter().map(String::as_str);
        resources.find(|resource| *resource == named || Some(*resource) == canonical.as_deref())
    }

    /// The known scopes of a request; none if it names only unknown ones.
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
    fn the_issuer_has_no_trailing_slash() {
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
