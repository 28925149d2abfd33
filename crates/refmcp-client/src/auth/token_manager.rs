//! The token manager of one server: caches the access token, and refreshes it before it expires (`refresh_token` grant),
//! once for all waiting requests.

use std::sync::{Arc, Weak};

use hyper::header::HeaderValue;
use hyper::{HeaderMap, Method, StatusCode, Uri};
use parking_lot::Mutex;
use refmcp_auth::client::{TokenSet, UnauthorizedResponse};
use refmcp_auth::{Scopes, Seconds};
use refmcp_proto::engine::client::TransportError;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use url::Url;

use super::login::{Login, now};
use super::settings::Settings;
use super::token::{Nonce, Token};
use crate::http::{AddressScope, HttpSettings};

/// Seconds after a failed refresh during which none is tried.
const REFRESH_PAUSE: Seconds = 10;
/// How often a request is repeated with a new DPoP nonce.
const MAX_NONCE_RETRIES: u32 = 3;

/// The token manager of one server.
pub(crate) struct TokenManager {
    settings: Arc<Settings>,
    server: Url,
    /// The key of the server in the store.
    name: String,
    http: HttpSettings,
    nonce: Nonce,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// True after the store was read.
    loaded: bool,
    token: Option<Arc<Token>>,
    tokens: u64,
    /// The farthest address scope that the server has answered from.
    address_scope: Option<AddressScope>,
    /// No refresh before this time.
    retry_after: Seconds,
    acquisition: Option<Acquisition>,
}

/// A token acquisition in progress.
struct Acquisition {
    kind: AcquisitionKind,
    done_rx: Completed,
    task: AbortHandle,
}

/// The kind of an acquisition.
#[derive(Debug, Clone, PartialEq)]
enum AcquisitionKind {
    /// Reads the store.
    Load,
    /// Refreshes a token that expires soon.
    Refresh,
    /// Gets a new token after a challenge.
    Login {
        refusal: UnauthorizedResponse,
        /// True if a refresh has not helped before.
        skip_refresh: bool,
        /// The protocol version of the challenged request.
        version: Option<HeaderValue>,
    },
}

/// Whether a request may start a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoginPolicy {
    /// A login may be started.
    Allow,
    /// No login: the request ends the session, and no user should be bothered for it.
    Forbid,
}

/// What was tried for one request.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    made: u32,
    nonces: u32,
}

/// What follows from a response.
enum ResponseAction {
    /// The response is final.
    Accept,
    /// The request has to be repeated with a new DPoP nonce.
    Retry,
    /// A token is needed.
    Authorize(UnauthorizedResponse),
}

impl TokenManager {
    pub(super) fn new(settings: Arc<Settings>, server: Url, name: String, http: HttpSettings) -> Self {
        Self { settings, server, name, http, nonce: Nonce::default(), state: Mutex::default() }
    }

    /// The token for the next request, if there is one. It is refreshed first when it expires soon.
    pub(crate) async fn token(
        self: &Arc<Self>,
        policy: LoginPolicy,
    ) -> Result<Option<Arc<Token>>, TransportError> {
        loop {
            let (done_rx, is_ours, refreshes) = {
                let mut state = self.state.lock();
                let refreshes = state.loaded;
                let kind = if !refreshes {
                    AcquisitionKind::Load
                } else if state.needs_refresh(policy, now()) {
                    AcquisitionKind::Refresh
                } else {
                    return Ok(state.token.clone());
                };
                let (done_rx, is_ours) = self.join(&mut state, kind);
                (done_rx, is_ours, refreshes)
            };
            let outcome = wait(done_rx).await;
            // The outcome of an acquisition for another kind does not matter here.
            if is_ours {
                outcome?;
                // A stored token may have expired, and one that was just issued is used however soon it expires.
                if refreshes {
                    return Ok(self.state.lock().token.clone());
                }
            }
        }
    }

    /// Adds a token to a request.
    pub(crate) fn apply(
        &self,
        token: &Token,
        headers: &mut HeaderMap,
        method: &Method,
        url: &Uri,
    ) -> Result<(), TransportError> {
        let unfit = |why| TransportError::NotAuthorized { why: format!("the token cannot be sent: {why}") };
        token.apply(headers, method, url, &self.nonce, now()).map_err(unfit)
    }

    /// True if a request has to be sent again after this response: with a new DPoP nonce, or with a new token, which is
    /// acquired first. `version` is the protocol version of the request.
    pub(crate) async fn should_retry(
        self: &Arc<Self>,
        (status, headers, address_scope): (StatusCode, &HeaderMap, AddressScope),
        token: Option<&Token>,
        attempts: &mut Attempts,
        policy: LoginPolicy,
        version: impl FnOnce() -> Option<HeaderValue>,
    ) -> Result<bool, TransportError> {
        match self.classify(status, headers, address_scope, token, attempts) {
            ResponseAction::Accept => Ok(false),
            ResponseAction::Retry => Ok(true),
            ResponseAction::Authorize(refusal) => {
                self.authorize(refusal, token, attempts, policy, version()).await
            }
        }
    }

    /// Decides what follows from a response to a request with this token.
    fn classify(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        address_scope: AddressScope,
        token: Option<&Token>,
        attempts: &mut Attempts,
    ) -> ResponseAction {
        let new_nonce = self.nonce.update(headers);
        {
            let mut state = self.state.lock();
            state.address_scope = state.address_scope.max(Some(address_scope));
        }
        if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return ResponseAction::Accept;
        }
        let refusal = UnauthorizedResponse::read(status, headers);
        let error = refusal.get("error");
        if error == Some("use_dpop_nonce") && token.is_some_and(Token::is_bound) {
            // The error is about the proof; another token would not help.
            attempts.nonces += 1;
            return if new_nonce && attempts.nonces <= MAX_NONCE_RETRIES {
                ResponseAction::Retry
            } else {
                ResponseAction::Accept
            };
        }
        let ours = refusal.challenges.iter().any(|challenge| challenge.is("Bearer") || challenge.is("DPoP"));
        let about_tokens = match status {
            // Some servers answer 401 without a challenge.
            StatusCode::UNAUTHORIZED => ours || refusal.challenges.is_empty(),
            _ => error == Some("insufficient_scope"),
        };
        let asked = token.is_some_and(|token| token.token_set.requested_scope.cover(&scopes(&refusal)));
        let in_vain = status == StatusCode::FORBIDDEN && attempts.made > 0 && asked;
        if !about_tokens || in_vain || attempts.made >= self.settings.max_attempts {
            return ResponseAction::Accept;
        }
        ResponseAction::Authorize(refusal)
    }

    /// Gets a token after a challenge, or waits for an acquisition in progress; true if there is a new token to try.
    async fn authorize(
        self: &Arc<Self>,
        refusal: UnauthorizedResponse,
        refused: Option<&Token>,
        attempts: &mut Attempts,
        policy: LoginPolicy,
        version: Option<HeaderValue>,
    ) -> Result<bool, TransportError> {
        let number = refused.map(|token| token.number);
        let kind = match policy {
            LoginPolicy::Allow => {
                AcquisitionKind::Login { refusal, skip_refresh: attempts.made > 0, version }
            }
            LoginPolicy::Forbid => AcquisitionKind::Refresh,
        };
        loop {
            let (done_rx, is_ours) = {
                let mut state = self.state.lock();
                if state.token.as_ref().map(|token| token.number) != number {
                    return Ok(true);
                }
                if policy == LoginPolicy::Forbid && state.is_logging_in() {
                    return Ok(false);
                }
                self.join(&mut state, kind.clone())
            };
            if is_ours {
                attempts.made += 1;
            }
            let outcome = wait(done_rx).await;
            // The outcome of an acquisition for another kind does not matter here.
            if is_ours {
                outcome?;
                return Ok(self.state.lock().token.as_ref().map(|token| token.number) != number);
            }
        }
    }

    /// Waits for a login in progress.
    pub(crate) fn login(&self) -> Option<impl Future<Output = Result<(), TransportError>> + Send + 'static> {
        let state = self.state.lock();
        let acquisition = state.acquisition.as_ref()?;
        matches!(acquisition.kind, AcquisitionKind::Login { .. }).then(|| wait(acquisition.done_rx.clone()))
    }

    /// Joins an acquisition in progress, or starts one; true if it serves this kind.
    fn join(self: &Arc<Self>, state: &mut State, kind: AcquisitionKind) -> (Completed, bool) {
        // A task that ended without an outcome has panicked; the next may succeed.
        if let Some(acquisition) =
            state.acquisition.as_ref().filter(|acquisition| !acquisition.task.is_finished())
        {
            return (acquisition.done_rx.clone(), acquisition.kind.serves(&kind));
        }
        let (done_tx, done_rx) = watch::channel(None);
        let address_scope = state.address_scope.unwrap_or_else(|| AddressScope::of_url(&self.server));
        let login = Login {
            settings: self.settings.clone(),
            server: self.server.clone(),
            name: self.name.clone(),
            http: self.http.clone(),
            address_scope,
            done_tx,
            before: state.token.as_ref().map(|token| token.token_set.clone()),
        };
        // The task holds only a weak reference, so a dropped client does not wait for a user. Requests to the authorization server
        // are completed nevertheless: an issued token must not be lost.
        let task = tokio::spawn(acquire(Arc::downgrade(self), login, kind.clone())).abort_handle();
        state.acquisition = Some(Acquisition { kind, done_rx: done_rx.clone(), task });
        (done_rx, true)
    }

    /// Stores the outcome of an acquisition.
    fn complete(
        &self,
        kind: &AcquisitionKind,
        got: Result<Option<TokenSet>, TransportError>,
    ) -> Result<(), TransportError> {
        let mut state = self.state.lock();
        state.acquisition = None;
        if matches!(kind, AcquisitionKind::Refresh) && !matches!(got, Ok(Some(_))) {
            // The server decides whether the old token is still valid.
            state.retry_after = now().saturating_add(REFRESH_PAUSE);
            return Ok(());
        }
        let token_set = got?;
        state.loaded = true;
        let Some(token_set) = token_set else { return Ok(()) };
        state.tokens += 1;
        let unfit = |why| TransportError::NotAuthorized { why: format!("the token cannot be used: {why}") };
        state.token = Some(Arc::new(Token::new(token_set, state.tokens, now()).map_err(unfit)?));
        state.retry_after = 0;
        Ok(())
    }
}

impl State {
    fn needs_refresh(&self, policy: LoginPolicy, now: Seconds) -> bool {
        let Some(token) = &self.token else { return false };
        // During a login, a token that has not expired is used as it is.
        let will_do =
            self.is_logging_in() && (policy == LoginPolicy::Forbid || !token.token_set.ends_within(0, now));
        token.refresh_at.is_some_and(|at| at <= now) && self.retry_after <= now && !will_do
    }

    fn is_logging_in(&self) -> bool {
        self.acquisition.as_ref().is_some_and(|acquisition| {
            matches!(acquisition.kind, AcquisitionKind::Login { .. }) && !acquisition.task.is_finished()
        })
    }
}

impl AcquisitionKind {
    /// True if an acquisition of this kind also serves the other.
    fn serves(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Login { refusal, .. }, Self::Login { refusal: wanted, .. }) => {
                refusal.status == wanted.status && scopes(refusal).cover(&scopes(wanted))
            }
            _ => self == other,
        }
    }
}

fn scopes(refusal: &UnauthorizedResponse) -> Scopes {
    Scopes::parse_leniently(refusal.get("scope").unwrap_or_default())
}

/// Signals the outcome of an acquisition.
pub(super) type Completion = watch::Sender<Option<Result<(), TransportError>>>;
type Completed = watch::Receiver<Option<Result<(), TransportError>>>;

/// Waits for an acquisition; dropping the future does not stop it.
async fn wait(mut done_rx: Completed) -> Result<(), TransportError> {
    match done_rx.wait_for(Option::is_some).await {
        Ok(outcome) => outcome.clone().unwrap_or(Ok(())),
        Err(_) => Err(TransportError::NotAuthorized { why: "the login was broken off".to_owned() }),
    }
}

async fn acquire(token_manager: Weak<TokenManager>, login: Login, kind: AcquisitionKind) {
    // Every client starts with reading the store, which needs little memory; the futures of a login are boxed.
    let got = match &kind {
        AcquisitionKind::Load => Ok(login.load().await),
        AcquisitionKind::Refresh => Box::pin(login.refresh_quietly()).await,
        AcquisitionKind::Login { refusal, skip_refresh, version } => {
            Box::pin(login.run(refusal, *skip_refresh, version.clone())).await.map(Some)
        }
    };
    if let Err(error) = &got {
        tracing::debug!(server = %login.name, %error, "there is no new token");
    }
    if let Some(token_manager) = token_manager.upgrade() {
        let outcome = token_manager.complete(&kind, got);
        login.done_tx.send_replace(Some(outcome));
    }
}

#[cfg(test)]
mod tests {
    mod schedules;

    use serde_json::json;

    use super::*;

    fn token_set(expires_at: Seconds) -> TokenSet {
        let token_set = json!({
            "issuer": "https://h", "resource": "https://h/mcp", "method": "none", "token": "t",
            "token_type": "Bearer", "scope": "a", "expires_at": expires_at, "refresh_token": "r",
            "token_endpoint": "https://h/token",
        });
        serde_json::from_value(token_set).unwrap()
    }

    /// A token issued at 1000, refreshed from 1075 on and expired at 1100, with an acquisition in progress.
    fn state(kind: AcquisitionKind) -> State {
        let token = Token::new(token_set(1100), 1, 1000).unwrap();
        let task = tokio::spawn(std::future::pending::<()>()).abort_handle();
        let acquisition = Acquisition { kind, done_rx: watch::channel(None).1, task };
        State {
            loaded: true,
            token: Some(Arc::new(token)),
            acquisition: Some(acquisition),
            ..State::default()
        }
    }

    #[tokio::test]
    async fn a_token_that_lasts_does_not_wait_for_a_login() {
        let refusal = UnauthorizedResponse::read(StatusCode::FORBIDDEN, &HeaderMap::new());
        let mut amid_login = state(AcquisitionKind::Login { refusal, skip_refresh: false, version: None });
        let due =
            |state: &State, policy| [1074, 1075, 1099, 1100].map(|now| state.needs_refresh(policy, now));
        assert_eq!(due(&amid_login, LoginPolicy::Allow), [false, false, false, true]);
        assert_eq!(due(&amid_login, LoginPolicy::Forbid), [false; 4]);
        let alone = [false, true, true, true];
        assert_eq!(due(&state(AcquisitionKind::Refresh), LoginPolicy::Allow), alone);
        amid_login.acquisition = None;
        assert_eq!(due(&amid_login, LoginPolicy::Forbid), alone);
    }
}
