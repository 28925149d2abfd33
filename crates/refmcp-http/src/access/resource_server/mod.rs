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

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use refmcp_auth::fetch::Fetch;
use refmcp_auth::resource::{DpopNonces, Introspection, ReplayCache, ResourceNames};
use refmcp_auth::{Scopes, Seconds};
use url::Url;

use introspection::IntrospectionQueue;
use issuer::Issuer;
use token_cache::TokenCache;
pub(crate) use verification::VerifiedToken;

use crate::ops::refusal_log::LogLimiter;
use crate::options::Options;
use crate::routes::{EndpointPath, Target};

/// DPoP proofs that are remembered, so that none is used twice.
const PROOFS: usize = 200_000;

/// The same of one key.
const PROOFS_OF_ONE_KEY: usize = 10_000;

/// How long a verified token is cached.
const TOKEN_CACHE_TTL: Duration = Duration::from_secs(60);

/// The same after introspection: the issuer may revoke the token.
const INTROSPECTION_CACHE_TTL: Duration = Duration::from_secs(10);

/// How far clocks may differ.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(60);

/// The resource server of an endpoint: a protected resource of OAuth 2.1 that accepts access tokens of trusted issuers.
/// JWTs are verified by their issuer's keys; with [`introspection`] the issuer is asked instead, about tokens of any kind.
///
/// Cheap to clone; all clones share one cache.
///
/// [`introspection`]: ResourceServerOptions::introspection
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
    clock: WallClock,
    issuers: Vec<Arc<Issuer>>,
    options: ResourceServerOptions,
}

/// What a [`ResourceServer`] wants of tokens, and what it tells about itself.
#[derive(Debug, Clone)]
pub struct ResourceServerOptions {
    /// Introspects every token of the first issuer, and so notices revocation; streams end within a minute then.
    pub introspection: Option<Introspection>,
    /// How often the token of an open stream is introspected again: every 30 seconds by default, and at most once a second,
    /// which spares the issuer.
    pub recheck_every: Duration,
    /// The `scopes_supported` of the metadata.
    pub scopes: Scopes,
    /// The scopes that challenges tell a client without a token to request. None by default; clients then request all that
    /// the metadata lists.
    pub challenge_scopes: Scopes,
    /// The name of the resource, for people.
    pub title: Option<String>,
    /// Accepts only DPoP-bound tokens, with a proof for every request.
    pub require_dpop: bool,
    /// Requires one of these nonces of the server in every DPoP proof.
    pub dpop_nonces: Option<DpopNonces>,
    /// Accepts tokens that are for other audiences as well. Those could use them here, so it is off by default.
    pub allow_other_audiences: bool,
    /// How far clocks may differ: a minute by default, and at most.
    pub clock_skew: Duration,
}

impl Default for ResourceServerOptions {
    fn default() -> Self {
        Self {
            introspection: None,
            recheck_every: Duration::from_secs(30),
            scopes: Scopes::none(),
            challenge_scopes: Scopes::none(),
            title: None,
            require_dpop: false,
            dpop_nonces: None,
            allow_other_audiences: false,
            clock_skew: MAX_CLOCK_SKEW,
        }
    }
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
            clock: WallClock::default(),
            issuers: vec![Issuer::new(issuer.into())],
            options: ResourceServerOptions::default(),
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

    /// Tells the time by this function, in seconds since 1970, instead of by the system's clock; for tests.
    #[must_use]
    pub fn clock(self, now: impl Fn() -> Seconds + Send + Sync + 'static) -> Self {
        self.set(|settings| settings.clock = WallClock(Arc::new(now)))
    }

    /// Sets what it wants of tokens and tells about itself.
    #[must_use]
    pub fn options(self, options: ResourceServerOptions) -> Self {
        let recheck_every = options.recheck_every.max(Duration::from_secs(1));
        let clock_skew = options.clock_skew.min(MAX_CLOCK_SKEW);
        self.set(|settings| {
            settings.options = ResourceServerOptions { recheck_every, clock_skew, ..options };
        })
    }

    /// The time in seconds since 1970.
    fn now(&self) -> Seconds {
        (self.settings.clock.0)()
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

/// Tells the time in seconds since 1970.
#[derive(Clone)]
struct WallClock(Arc<dyn Fn() -> Seconds + Send + Sync>);

impl Default for WallClock {
    fn default() -> Self {
        Self(Arc::new(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()))
    }
}

impl fmt::Debug for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WallClock")
    }
}
