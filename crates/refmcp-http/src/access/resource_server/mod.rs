//! Who may use the server: those with a token of an issuer that is trusted, for this server and no other.
//!
//! | module | what it is |
//! |---|---|
//! | `admission` | from the head of a request to what its token grants, or to a refusal |
//! | `asking` | asking an issuer about tokens, each once |
//! | `issuer` | the keys of one issuer, fetched once for all who wait for them |
//! | `verdicts` | tokens that were checked just now |
//! | `document` | what the server tells about itself as a protected resource |
//! | `ending` | responses that end with the token |

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
pub(crate) use verification::{Head, TokenStatus, VerifiedToken};

use crate::ops::refusal_log::LogLimiter;
use crate::options::Options;
use crate::routes::{EndpointPath, Target};

/// Proofs of possession that are remembered, so that none is used twice.
const PROOFS: usize = 200_000;

/// The same of one key.
const PROOFS_OF_ONE: usize = 10_000;

/// How long a token that was checked is taken to be good.
const REMEMBERED: Duration = Duration::from_secs(60);

/// The same where the issuer was asked, who may have changed its mind.
const REMEMBERED_ANSWER: Duration = Duration::from_secs(10);

/// How often an issuer is asked again about the token of a stream that stays open.
const ASKED_AGAIN: Duration = Duration::from_secs(30);

/// It is not asked more often than this, about one token.
const SOONEST_AGAIN: Duration = Duration::from_secs(1);

/// Decides who may use a server: it is a protected resource of OAuth 2.1, and takes tokens of the issuers that it was
/// told to trust. Tokens that carry their claims are checked by their issuer's keys; where [`introspection`] is set, the
/// issuer is asked instead, about tokens of any kind.
///
/// Cheap to clone; every clone remembers the same.
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
    asked_for: Scopes,
    title: Option<String>,
    only_bound: bool,
    nonces: Option<DpopNonces>,
    allow_other_audiences: bool,
    skew: Duration,
    asked_again: Duration,
}

#[derive(Debug)]
struct State {
    verdicts: TokenCache,
    replays: Mutex<ReplayCache>,
    asking: Arc<IntrospectionQueue>,
    /// How often it is said that an issuer cannot be asked.
    warnings: LogLimiter,
}

impl ResourceServer {
    /// Takes tokens of an issuer for a resource: the URL of the server's main endpoint, as its clients know it. Its other
    /// endpoints are named beside it.
    pub fn new(resource: Url, issuer: impl Into<String>, fetch: Arc<dyn Fetch>) -> Self {
        let path = EndpointPath::default();
        let settings = Settings {
            names: names(resource, &path),
            path,
            fetch,
            issuers: vec![Issuer::new(issuer.into())],
            introspection: None,
            supported: Scopes::none(),
            asked_for: Scopes::none(),
            title: None,
            only_bound: false,
            nonces: None,
            allow_other_audiences: false,
            skew: Duration::from_secs(60),
            asked_again: ASKED_AGAIN,
        };
        let state = State {
            verdicts: TokenCache::default(),
            replays: Mutex::new(ReplayCache::new(PROOFS, PROOFS_OF_ONE)),
            asking: Arc::default(),
            warnings: LogLimiter::default(),
        };
        Self { settings: Arc::new(settings), state: Arc::new(state) }
    }

    fn set(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }

    /// The same for an endpoint with these options. Where proxies are believed about the name that they were called by,
    /// each name that the server may have is one that tokens may be for.
    pub(crate) fn at(self, options: &Options) -> Self {
        let hosts: &[String] = if options.trusted_proxies.is_empty() { &[] } else { &options.hosts };
        self.set(|settings| {
            let names = names(settings.names.resource().clone(), &options.path);
            settings.names = names.and_hosts(hosts.iter().map(String::as_str));
            settings.path = options.path.clone();
        })
    }

    /// Takes tokens of one more issuer.
    #[must_use]
    pub fn trust_issuer(self, issuer: impl Into<String>) -> Self {
        let issuer = Issuer::new(issuer.into());
        self.set(|settings| settings.issuers.push(issuer))
    }

    /// Asks the first issuer about every token of its, and so hears when one is revoked; streams end within a minute then.
    #[must_use]
    pub fn introspection(self, introspection: Introspection) -> Self {
        self.set(|settings| settings.introspection = Some(introspection))
    }

    /// How often it is asked about the token of a stream that stays open; every 30 seconds unless told, and never more
    /// often than once in a second: an issuer that is asked without a pause is attacked.
    #[must_use]
    pub fn recheck_every(self, time: Duration) -> Self {
        self.set(|settings| settings.asked_again = time.max(SOONEST_AGAIN))
    }

    /// The scopes that clients may find of use, as the metadata of the resource lists them.
    #[must_use]
    pub fn scopes(self, supported: Scopes) -> Self {
        self.set(|settings| settings.supported = supported)
    }

    /// The scopes that a client without a token is told to ask for. None unless told; clients then ask for all that the
    /// metadata lists.
    #[must_use]
    pub fn challenge_scopes(self, scopes: Scopes) -> Self {
        self.set(|settings| settings.asked_for = scopes)
    }

    /// The name of the resource, for people.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        let title = title.into();
        self.set(|settings| settings.title = Some(title))
    }

    /// Takes only tokens that are bound to a key, with a proof for every request.
    #[must_use]
    pub fn require_dpop(self, only: bool) -> Self {
        self.set(|settings| settings.only_bound = only)
    }

    /// Wants a nonce of its own in every proof.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn require_dpop_nonces(self) -> Result<Self, RandomError> {
        let nonces = DpopNonces::new()?;
        Ok(self.set(|settings| settings.nonces = Some(nonces)))
    }

    /// Takes tokens that are for others as well. They could use them here, so it is off unless told.
    #[must_use]
    pub fn allow_other_audiences(self, yes: bool) -> Self {
        self.set(|settings| settings.allow_other_audiences = yes)
    }

    /// How far clocks may differ; a minute unless told, and never more.
    #[must_use]
    pub fn clock_skew(self, skew: Duration) -> Self {
        self.set(|settings| settings.skew = skew.min(Duration::from_secs(60)))
    }

    /// The canonical name of the resource.
    pub fn resource(&self) -> &str {
        self.settings.names.canonical()
    }

    /// The issuers whose tokens are taken.
    pub fn issuers(&self) -> impl Iterator<Item = &str> {
        self.settings.issuers.iter().map(|issuer| issuer.name.as_str())
    }
}

/// The names of a resource and of what belongs to it.
fn names(resource: Url, path: &EndpointPath) -> ResourceNames {
    let siblings = [Target::WebSocket, Target::Events].map(|target| path.of(target));
    ResourceNames::new(resource, path.as_str(), &siblings)
}

/// The time as tokens count it.
fn now() -> Seconds {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
