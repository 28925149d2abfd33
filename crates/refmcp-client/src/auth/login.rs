//! Getting a token: the steps of a flow, and everything that they wait for.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use hyper::header::{HeaderName, HeaderValue};
use refmcp_auth::client::{
    ChallengeResponse, Flow, FlowAction, FlowError, FlowRequest, GrantKind, StoreUpdate, StoredState,
    TokenSet,
};
use refmcp_auth::fetch::Fetch;
use refmcp_auth::uri::is_secure;
use refmcp_auth::{Scopes, Seconds};
use refmcp_proto::engine::client::WireError;
use refmcp_proto::revision::Revision;
use tokio::time::timeout;
use url::Url;

use super::browser::BrowserFault;
use super::seat::Lands;
use super::settings::Settings;
use super::store::{Held, StoreFault};
use crate::http::{Fetcher, HttpSettings, Reach};

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// What time it is.
pub(super) fn now() -> Seconds {
    // A clock before the epoch is set wrong; then every token looks good, and the server decides.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Everything that getting a token for a server takes.
#[derive(Debug)]
pub(super) struct Login {
    pub(super) settings: Arc<Settings>,
    pub(super) server: Url,
    pub(super) name: String,
    pub(super) http: HttpSettings,
    /// Where the server is: what it names may be as near.
    pub(super) reach: Reach,
    /// Who waits for the token listens here.
    pub(super) lands: Lands,
    /// The grant that there is, which will not do.
    pub(super) before: Option<TokenSet>,
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("the login failed: {0}; {advice}", advice = .0.advice())]
    Flow(#[from] FlowError),
    #[error("the login failed: {0}")]
    Browser(#[from] BrowserFault),
    #[error(
        "the login failed: the authorization server names {0} for people to visit, which no browser should open"
    )]
    Unvisitable(String),
    #[error("the store of tokens fails: {0}")]
    Store(#[from] StoreFault),
    #[error("nobody waits for the login any more")]
    Unwanted,
}

impl Fault {
    /// Whether nobody was sent anywhere.
    fn is_before_leaving(&self) -> bool {
        matches!(self, Self::Browser(BrowserFault::Nobody | BrowserFault::Declined) | Self::Unvisitable(_))
    }
}

impl From<Fault> for WireError {
    fn from(fault: Fault) -> Self {
        Self::NotAuthorized { why: fault.to_string() }
    }
}

impl Login {
    /// What the store has.
    pub(super) async fn load(&self) -> Option<TokenSet> {
        match self.settings.store.load(&self.name).await {
            Ok(known) => known.tokens,
            // The server may let everybody in. If it does not, the store is asked again, and its fault is the end of it.
            Err(fault) => {
                tracing::warn!(server = %self.name, %fault, "the store of tokens fails");
                None
            }
        }
    }

    /// Another token without asking anybody but the authorization server; none where there is no way to get one.
    pub(super) async fn renew(&self) -> Result<Option<TokenSet>, WireError> {
        let _held = self.lock().await?;
        let known = self.settings.store.load(&self.name).await.map_err(Fault::from)?;
        if let Some(newer) = self.newer(&known) {
            return Ok(Some(newer));
        }
        Ok(self.refresh(&known).await?)
    }

    /// A token, in whatever way it takes.
    pub(super) async fn run(
        &self,
        refusal: &ChallengeResponse,
        thorough: bool,
        version: Option<HeaderValue>,
    ) -> Result<TokenSet, WireError> {
        // Held while a person logs in as well: whoever comes meanwhile gets in by the same login.
        let _held = self.lock().await?;
        let mut known = self.settings.store.load(&self.name).await.map_err(Fault::from)?;
        if let Some(newer) = self.newer(&known) {
            return Ok(newer);
        }
        if let (true, Some(grant)) = (thorough, &mut known.tokens) {
            grant.refresh_token = None;
        }
        let way = match self.way().await {
            Ok(way) => way,
            // Where nobody can log in, at least what is kept is renewed.
            Err(nobody) if !refusal.is_insufficient_scope() => {
                return Ok(self.refresh(&known).await?.ok_or(nobody)?);
            }
            // Whoever can do something about it wants to know what is missing.
            Err(_) => return Err(told(refusal)),
        };
        Ok(self.begin(way, refusal, known, version).await?)
    }

    async fn lock(&self) -> Result<Held, Fault> {
        Ok(self.while_wanted(self.settings.store.lock(&self.name)).await??)
    }

    /// Waits for people, here or where else the store is used, for as long as anybody waits for the token. Nothing else
    /// is broken off: an authorization server that has answered takes no refresh token a second time.
    async fn while_wanted<T>(&self, waiting: impl Future<Output = T>) -> Result<T, Fault> {
        tokio::select! {
            biased;
            () = self.lands.closed() => Err(Fault::Unwanted),
            came = waiting => Ok(came),
        }
    }

    async fn way(&self) -> Result<GrantKind, Fault> {
        match (&self.settings.way, &self.settings.browser) {
            (Some(way), _) => Ok(way.clone()),
            (None, Some(browser)) => {
                let redirect_uri = self.while_wanted(browser.redirect_uri()).await??;
                Ok(GrantKind::AuthorizationCode { redirect_uri })
            }
            (None, None) => Err(BrowserFault::Nobody.into()),
        }
    }

    /// The grant that somebody else has got meanwhile.
    fn newer(&self, known: &StoredState) -> Option<TokenSet> {
        let grant = known.tokens.as_ref().filter(|grant| !grant.ends_within(0, now()))?;
        let refused = self.before.as_ref().is_some_and(|before| before.token == grant.token);
        (!refused).then(|| grant.clone())
    }

    /// Renews the grant that is kept, where that is possible; none where only a new login helps. One that is no longer
    /// kept is not renewed: somebody has logged out.
    async fn refresh(&self, known: &StoredState) -> Result<Option<TokenSet>, Fault> {
        let kept = known.tokens.as_ref().filter(|grant| grant.refresh_token.is_some());
        let Some(grant) = kept else { return Ok(None) };
        let (flow, next) = Flow::refresh(grant.clone(), &self.settings.identity, now());
        match self.drive(flow, next).await {
            Ok(renewed) => Ok(Some(renewed)),
            Err(Fault::Flow(fault)) if fault.needs_login() => {
                tracing::debug!(server = %self.name, %fault, "a new login is needed");
                // Kept without what works no more, or it would be tried again and again.
                let spent = TokenSet { refresh_token: None, ..grant.clone() };
                self.settings.store.save(&self.name, &StoreUpdate::Tokens(Box::new(spent))).await?;
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }

    /// Asks the server whom it trusts, and them for a token: by renewing what is kept of them, or by a login.
    async fn begin(
        &self,
        way: GrantKind,
        refusal: &ChallengeResponse,
        known: StoredState,
        version: Option<HeaderValue>,
    ) -> Result<TokenSet, Fault> {
        let settings = &*self.settings;
        let before = known.tokens.as_ref().or(self.before.as_ref());
        let earlier = before.filter(|_| refusal.is_insufficient_scope());
        let mut wanted = FlowRequest::new(self.server.clone(), way, settings.identity.clone());
        wanted.challenge = Some(refusal.clone());
        wanted.scopes = settings.scopes.clone();
        wanted.previous_scopes =
            earlier.map_or_else(Scopes::none, |grant| grant.scope.union(&grant.requested_scope));
        wanted.dpop = settings.proofs;
        wanted.legacy_discovery = settings.legacy;
        let version = version.unwrap_or_else(|| HeaderValue::from_static(Revision::LATEST.as_str()));
        wanted.headers.insert(PROTOCOL_VERSION, version);
        let (flow, next) = Flow::start(wanted, known, now());
        self.drive(flow, next).await
    }

    /// Does what a flow wants done until it has come to its end.
    async fn drive(&self, mut flow: Flow, mut next: FlowAction) -> Result<TokenSet, Fault> {
        let fetcher = self.fetcher();
        loop {
            for step in flow.take_steps() {
                tracing::debug!(server = %self.name, %step, "a step of the login");
                if let Some(heard) = &self.settings.on_step {
                    heard(&step);
                }
            }
            next = match next {
                FlowAction::Fetch(request) => flow.on_response(fetcher.fetch(request).await, now()),
                FlowAction::Store(save) => {
                    self.settings.store.save(&self.name, &save).await?;
                    flow.on_stored(now())
                }
                FlowAction::OpenBrowser(url) => match self.visit(url).await {
                    Ok(back) => flow.on_redirect(&back, now()),
                    Err(fault) => {
                        if fault.is_before_leaving()
                            && let Some(save) = flow.cancel_redirect()
                        {
                            self.settings.store.save(&self.name, &save).await?;
                        }
                        return Err(fault);
                    }
                },
                FlowAction::Done(grant) => return Ok(*grant),
                FlowAction::Failed(fault) => return Err(fault.into()),
            };
        }
    }

    /// Sends a person somewhere, and waits until they are back.
    async fn visit(&self, url: Url) -> Result<Url, Fault> {
        if !is_secure(&url) {
            let shown: String = format!("{}:{}", url.scheme(), url.path()).chars().take(100).collect();
            return Err(Fault::Unvisitable(shown));
        }
        let browser = self.settings.browser.as_ref().ok_or(BrowserFault::Nobody)?;
        let back = self.while_wanted(timeout(self.settings.login_timeout, browser.visit(url))).await?;
        Ok(back.map_err(|_| BrowserFault::TooSlow)??)
    }

    fn fetcher(&self) -> Arc<dyn Fetch> {
        if let Some(fetcher) = &self.settings.fetcher {
            return fetcher.clone();
        }
        // What passes here are logins; whoever listens in on the conversation does not want them.
        let http = HttpSettings { tap: None, ..self.http.clone() };
        Arc::new(Fetcher::guarded(self.reach).settings(http))
    }
}

/// A refusal as it was, for whoever asked.
fn told(refusal: &ChallengeResponse) -> WireError {
    let challenges: Vec<String> = refusal.challenges.iter().map(ToString::to_string).collect();
    let challenge = (!challenges.is_empty()).then(|| challenges.join(", "));
    WireError::Unauthorized { status: refusal.status.as_u16(), challenge }
}
