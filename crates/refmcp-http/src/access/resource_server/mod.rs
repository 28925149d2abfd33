//! Access tokens: the server as a protected resource of OAuth 2.1, which accepts tokens of trusted issuers for itself alone.
//!
//! | module | what it is |
//! |---|---|
//! | `verification` | from the head of a request to its verified token, or to a challenge |
//! | `introspection` | token introspection, once for each token |
//! | `issuer` | the metadata and keys of an issuer |
//! | `token_cache` | tokens that were verified recently |
//! | `metadata` | the protected resource metadata |
//! | `expiry` | streams end with their token |

mod expiry;
mod introspection;
mod issuer;
mod metadata;
mod token_cache;
mod verification;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use refmcp_auth::fetch::Fetch;
use refmcp_auth::random::RandomError;
use refmcp_auth::resource::{DpopNonces, Introspection, ReplayCache, ResourceNames};
use refmcp_auth::{Scopes, Seconds};
use url::Url;

use introspection::IntrospectionQueue;
use issuer::Issuer;
use token_cache::TokenCache;
pub(crate) use verification::VerifiedToken;

use crate::ops::log::LogLimiter;
use crate::options::Options;
use crate::routes::{EndpointPath, Target};

/// DPoP proofs that are remembered, so that none is used twice.
const PROOFS: usize = 200_000;

/// The same of one key.
const PROOFS_OF_ONE_KEY: usize = 10_000;

/// How long a verified token is cached.
const CACHED: Duration = Duration::from_secs(60);

/// The same after introspection: the issuer may revoke the token.
const CACHED_INTROSPECTION: Duration = Duration::from_secs(10);

/// The resource server of an endpoint: a protected resource of OAuth 2.1 that accepts access tokens of trusted issuers.
/// JWTs are verified by their issuer's keys; with [`introspection`] the issuer is asked instead, about tokens of any kind.
///
/// Cheap to clone; all clones share one cache.
///
/// [`introspection`]: Self::introspection
#[derive(Debug, Clone)]
pub struct ResourceServer {
    settings: Arc<Settings>,
    state: Arc<State>,
}

#[derive(Debug, Clone)]
struct Settings {
    names: ResourceNames,
    path: EndpointPath,
    fetch: Arc<dyn Fetch>,
    issuers: Vec<Arc<Issuer>>,
    introspection: Option<Introspection>,
    supported: Scopes,
    challenge_scopes: Scopes,
    title: Option<String>,
    require_dpop: bool,
    nonces: Option<DpopNonces>,
    allow_other_audiences: bool,
    clock_skew: Duration,
    recheck_every: Duration,
}

#[derive(Debug)]
struct State {
    cache: TokenCache,
    replays: Mutex<ReplayCache>,
    introspections: Arc<IntrospectionQueue>,
    /// Limits the warnings about failed introspection.
    warnings: LogLimiter,
}

impl ResourceServer {
    /// Accepts tokens of an issuer for a resource: the URL of the MCP endpoint, as clients know it. The URLs of the other
    /// transports are derived from it.
    pub fn new(resource: Url, issuer: impl Into<String>, fetch: Arc<dyn Fetch>) -> Self {
        let path = EndpointPath::default();
        let settings = Settings {
            names: names(resource, &path),
            path,
            fetch,
            issuers: vec![Issuer::new(issuer.into())],
            introspection: None,
            supported: Scopes::none(),
            challenge_scopes: Scopes::none(),
            title: None,
            require_dpop: false,
            nonces: None,
            allow_other_audiences: false,
            clock_skew: Duration::from_secs(60),
            recheck_every: Duration::from_secs(30),
        };
        let state = State {
            cache: TokenCache::default(),
            replays: Mutex::new(ReplayCache::new(PROOFS, PROOFS_OF_ONE_KEY)),
            introspections: Arc::default(),
            warnings: LogLimiter::default(),
        };
        Self { settings: Arc::new(settings), state: Arc::new(state) }
    }

    fn set(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }

    /// Adapts it to the options of an endpoint. Behind trusted proxies, tokens may be for each of the allowed hosts.
    pub(crate) fn for_endpoint(self, options: &Options) -> Self {
        let hosts: &[String] = if options.trusted_proxies.is_empty() { &[] } else { &options.hosts };
        self.set(|settings| {
            let names = names(settings.names.resource().clone(), &options.path);
            settings.names = names.and_hosts(hosts.iter().map(String::as_str));
            settings.path = options.path.clone();
        })
    }

    /// Accepts tokens of one more issuer.
    #[must_use]
    pub fn trust_issuer(self, issuer: impl Into<String>) -> Self {
        let issuer = Issuer::new(issuer.into());
        self.set(|settings| settings.issuers.push(issuer))
    }

    /// Introspects every token of the first issuer, and so notices revocation; streams end within a minute then.
    #[must_use]
    pub fn introspection(self, introspection: Introspection) -> Self {
        self.set(|settings| settings.introspection = Some(introspection))
    }

    /// How often the token of an open stream is introspected again: every 30 seconds by default, and at most once a second,
    /// which spares the issuer.
    #[must_use]
    pub fn recheck_every(self, time: Duration) -> Self {
        self.set(|settings| settings.recheck_every = time.max(Duration::from_secs(1)))
    }

    /// The `scopes_supported` of the metadata.
    #[must_use]
    pub fn scopes(self, supported: Scopes) -> Self {
        self.set(|settings| settings.supported = supported)
    }

    /// The scopes that challenges tell a client without a token to request. None by default; clients then request all that
    /// the metadata lists.
    #[must_use]
    pub fn challenge_scopes(self, scopes: Scopes) -> Self {
        self.set(|settings| settings.challenge_scopes = scopes)
    }

    /// The name of the resource, for people.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        let title = title.into();
        self.set(|settings| settings.title = Some(title))
    }

    /// Accepts only DPoP-bound tokens, with a proof for every request.
    #[must_use]
    pub fn require_dpop(self, required: bool) -> Self {
        self.set(|settings| settings.require_dpop = required)
    }

    /// Requires a nonce of the server in every DPoP proof.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn require_dpop_nonces(self) -> Result<Self, RandomError> {
        let nonces = DpopNonces::new()?;
        Ok(self.set(|settings| settings.nonces = Some(nonces)))
    }

    /// Accepts tokens that are for other audiences as well. Those could use them here, so it is off by default.
    #[must_use]
    pub fn allow_other_audiences(self, yes: bool) -> Self {
        self.set(|settings| settings.allow_other_audiences = yes)
    }

    /// How far clocks may differ: a minute by default, and at most.
    #[must_use]
    pub fn clock_skew(self, skew: Duration) -> Self {
        self.set(|settings| settings.clock_skew = skew.min(Duration::from_secs(60)))
    }

    /// The canonical name of the resource.
    pub fn resource(&self) -> &str {
        self.settings.names.canonical()
    }

    /// The issuers whose tokens are accepted.
    pub fn issuers(&self) -> impl Iterator<Item = &str> {
        self.settings.issuers.iter().map(|issuer| issuer.name.as_str())
    }
}

/// The names of a resource and of its other transports.
fn names(resource: Url, path: &EndpointPath) -> ResourceNames {
    let siblings = [Target::WebSocket, Target::Events].map(|target| path.of(target));
    ResourceNames::new(resource, path.as_str(), &siblings)
}

/// The time in seconds since 1970.
fn now() -> Seconds {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
