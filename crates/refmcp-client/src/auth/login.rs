//! Token acquisition: drives a [`Flow`] with its fetches, store updates and browser.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use hyper::header::{HeaderName, HeaderValue};
use refmcp_auth::client::{
    Flow, FlowAction, FlowError, FlowRequest, GrantKind, StoreUpdate, StoredState, TokenSet,
    UnauthorizedResponse,
};
use refmcp_auth::fetch::Fetch;
use refmcp_auth::uri::is_secure;
use refmcp_auth::{Scopes, Seconds};
use refmcp_proto::engine::client::TransportError;
use refmcp_proto::revision::Revision;
use tokio::time::timeout;
use url::Url;

use super::browser::BrowserError;
use super::settings::Settings;
use super::store::{TokenStoreError, TokenStoreGuard};
use super::token_manager::Completion;
use crate::http::{AddressScope, Fetcher, HttpSettings};

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The current time.
pub(super) fn now() -> Seconds {
    // A clock before the epoch is wrong; every token then looks valid, and the server decides.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Everything needed to get a token for a server.
pub(super) struct Login {
    pub(super) settings: Arc<Settings>,
    pub(super) server: Url,
    pub(super) name: String,
    pub(super) http: HttpSettings,
    /// The scope of the server's address: URLs that it names may be as near.
    pub(super) address_scope: AddressScope,
    /// Signals the outcome to all waiters.
    pub(super) done_tx: Completion,
    /// The current tokens, which do not suffice.
    pub(super) before: Option<TokenSet>,
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
enum LoginError {
    #[error("the login failed: {0}; {advice}", advice = .0.advice())]
    Flow(#[from] FlowError),
    #[error("the login failed: {0}")]
    Browser(#[from] BrowserError),
    #[error(
        "the login failed: the authorization server names {0} for people to visit, which no browser should open"
    )]
    Unvisitable(String),
    #[error("the store of tokens fails: {0}")]
    Store(#[from] TokenStoreError),
    #[error("the login is no longer waited for")]
    Unwanted,
}

impl LoginError {
    /// True if the browser was not opened.
    fn is_before_leaving(&self) -> bool {
        matches!(
            self,
            Self::Browser(BrowserError::Unavailable | BrowserError::Declined) | Self::Unvisitable(_)
        )
    }
}

impl From<LoginError> for TransportError {
    fn from(error: LoginError) -> Self {
        Self::NotAuthorized { why: error.to_string() }
    }
}

impl Login {
    /// The stored tokens.
    pub(super) async fn load(&self) -> Option<TokenSet> {
        match self.settings.store.load(&self.name).await {
            Ok(known) => known.tokens,
            // The server may need no token. If it does, the store is asked again, and its error ends the login.
            Err(error) => {
                tracing::warn!(server = %self.name, %error, "the store of tokens fails");
                None
            }
        }
    }

    /// New tokens without a user: those of another process, or a refresh.
    pub(super) async fn refresh_quietly(&self) -> Result<Option<TokenSet>, TransportError> {
        let _held = self.lock().await?;
        let known = self.settings.store.load(&self.name).await.map_err(LoginError::from)?;
        if let Some(newer) = self.newer(&known) {
            return Ok(Some(newer));
        }
        Ok(self.refresh(&known).await?)
    }

    /// New tokens by any means.
    pub(super) async fn run(
        &self,
        refusal: &UnauthorizedResponse,
        skip_refresh: bool,
        version: Option<HeaderValue>,
    ) -> Result<TokenSet, TransportError> {
        // Held during the login as well: concurrent callers share its outcome.
        let _held = self.lock().await?;
        let mut known = self.settings.store.load(&self.name).await.map_err(LoginError::from)?;
        if let Some(newer) = self.newer(&known) {
            return Ok(newer);
        }
        if let (true, Some(tokens)) = (skip_refresh, &mut known.tokens) {
            tokens.refresh_token = None;
        }
        let grant = match self.grant_kind().await {
            Ok(grant) => grant,
            // Without a grant, the stored tokens are at least refreshed.
            Err(no_user) if !refusal.is_insufficient_scope() => {
                return Ok(self.refresh(&known).await?.ok_or(no_user)?);
            }
            // The caller can act on the challenge.
            Err(_) => return Err(challenge_error(refusal)),
        };
        Ok(self.start_flow(grant, refusal, known, version).await?)
    }

    async fn lock(&self) -> Result<TokenStoreGuard, LoginError> {
        Ok(self.while_wanted(self.settings.store.lock(&self.name)).await??)
    }

    /// Waits for a user, or for another holder of the store's lock, as long as a caller waits for the token. Requests to the
    /// authorization server are never cancelled: a refresh token works only once.
    async fn while_wanted<T>(&self, waiting: impl Future<Output = T>) -> Result<T, LoginError> {
        tokio::select! {
            biased;
            () = self.done_tx.closed() => Err(LoginError::Unwanted),
            came = waiting => Ok(came),
        }
    }

    async fn grant_kind(&self) -> Result<GrantKind, LoginError> {
        match (&self.settings.grant, &self.settings.browser) {
            (Some(grant), _) => Ok(grant.clone()),
            (None, Some(browser)) => {
                let redirect_uri = self.while_wanted(browser.redirect_uri()).await??;
                Ok(GrantKind::AuthorizationCode { redirect_uri })
            }
            (None, None) => Err(BrowserError::Unavailable.into()),
        }
    }

    /// The tokens that another process has stored in the meantime.
    fn newer(&self, known: &StoredState) -> Option<TokenSet> {
        let tokens = known.tokens.as_ref().filter(|tokens| !tokens.ends_within(0, now()))?;
        let refused = self.before.as_ref().is_some_and(|before| before.token == tokens.token);
        (!refused).then(|| tokens.clone())
    }

    /// Refreshes the stored tokens, if possible. Tokens that are no longer stored are not refreshed: the user has logged out.
    async fn refresh(&self, known: &StoredState) -> Result<Option<TokenSet>, LoginError> {
        let kept = known.tokens.as_ref().filter(|tokens| tokens.refresh_token.is_some());
        let Some(tokens) = kept else { return Ok(None) };
        let (flow, next) = Flow::refresh(tokens.clone(), &self.settings.identity, now());
        match self.drive(flow, next).await {
            Ok(renewed) => Ok(Some(renewed)),
            Err(LoginError::Flow(error)) if error.needs_login() => {
                tracing::debug!(server = %self.name, %error, "a new login is needed");
                // The spent refresh token is removed, so that it is not tried again.
                let spent = TokenSet { refresh_token: None, ..tokens.clone() };
                self.settings.store.save(&self.name, &StoreUpdate::Tokens(Box::new(spent))).await?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Starts a flow: a refresh of the stored tokens, or a login.
    async fn start_flow(
        &self,
        grant: GrantKind,
        refusal: &UnauthorizedResponse,
        known: StoredState,
        version: Option<HeaderValue>,
    ) -> Result<TokenSet, LoginError> {
        let settings = &*self.settings;
        let before = known.tokens.as_ref().or(self.before.as_ref());
        let earlier = before.filter(|_| refusal.is_insufficient_scope());
        let mut wanted = FlowRequest::new(self.server.clone(), grant, settings.identity.clone());
        wanted.challenge = Some(refusal.clone());
        wanted.scopes = settings.scopes.clone();
        wanted.previous_scopes =
            earlier.map_or_else(Scopes::none, |tokens| tokens.scope.union(&tokens.requested_scope));
        wanted.dpop = settings.dpop;
        wanted.legacy_discovery = settings.legacy;
        let version = version.unwrap_or_else(|| HeaderValue::from_static(Revision::LATEST.as_str()));
        wanted.headers.insert(PROTOCOL_VERSION, version);
        let (flow, next) = Flow::start(wanted, known, now());
        self.drive(flow, next).await
    }

    /// Performs the actions of a flow until it ends.
    async fn drive(&self, mut flow: Flow, mut next: FlowAction) -> Result<TokenSet, LoginError> {
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
                    Err(error) => {
                        if error.is_before_leaving()
                            && let Some(save) = flow.cancel_redirect()
                        {
                            self.settings.store.save(&self.name, &save).await?;
                        }
                        return Err(error);
                    }
                },
                FlowAction::Done(tokens) => return Ok(*tokens),
                FlowAction::Failed(error) => return Err(error.into()),
            };
        }
    }

    /// Opens the browser and waits for the redirect.
    async fn visit(&self, url: Url) -> Result<Url, LoginError> {
        if !is_secure(&url) {
            let shown: String = format!("{}:{}", url.scheme(), url.path()).chars().take(100).collect();
            return Err(LoginError::Unvisitable(shown));
        }
        let browser = self.settings.browser.as_ref().ok_or(BrowserError::Unavailable)?;
        let back = self.while_wanted(timeout(self.settings.login_timeout, browser.visit(url))).await?;
        Ok(back.map_err(|_| BrowserError::TimedOut)??)
    }

    fn fetcher(&self) -> Arc<dyn Fetch> {
        if let Some(fetcher) = &self.settings.fetcher {
            return fetcher.clone();
        }
        Arc::new(Fetcher::guarded(self.address_scope).settings(self.http.clone()))
    }
}

/// The challenge as an error for the caller.
fn challenge_error(refusal: &UnauthorizedResponse) -> TransportError {
    let challenges: Vec<String> = refusal.challenges.iter().map(ToString::to_string).collect();
    let challenge = (!challenges.is_empty()).then(|| challenges.join(", "));
    TransportError::Unauthorized { status: refusal.status.as_u16(), challenge, reason: None }
}
