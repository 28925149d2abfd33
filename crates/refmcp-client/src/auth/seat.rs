//! The token of one server, and who gets the next: one for all who wait.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hyper::header::HeaderValue;
use hyper::{HeaderMap, Method, StatusCode, Uri};
use refmcp_auth::client::{ChallengeResponse, TokenSet};
use refmcp_auth::{Scopes, Seconds};
use refmcp_proto::engine::client::WireError;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use url::Url;

use super::login::{Login, now};
use super::settings::Settings;
use super::token::{Nonce, Token};
use crate::http::{HttpSettings, Reach};

/// How long a renewal that failed is not tried again.
const PAUSE: Seconds = 10;
/// How often one request is sent again because the server wants something else repeated in proofs.
const NONCES: u32 = 3;

/// The token of one server.
pub(crate) struct Seat {
    settings: Arc<Settings>,
    server: Url,
    /// The server's canonical URL.
    name: String,
    http: HttpSettings,
    nonce: Nonce,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether the store was asked.
    loaded: bool,
    token: Option<Arc<Token>>,
    tokens: u64,
    /// The farthest place that the server has answered from.
    reach: Option<Reach>,
    /// No renewal before this.
    patient_until: Seconds,
    flight: Option<Flight>,
}

/// A token that is being got.
#[derive(Debug)]
struct Flight {
    purpose: Purpose,
    landed: Landed,
    task: AbortHandle,
}

/// Why it is.
#[derive(Debug, Clone, PartialEq)]
enum Purpose {
    /// The store may have one.
    Load,
    /// The one there is ends soon.
    Renew,
    /// The one there is was refused, or there is none.
    Login {
        refusal: ChallengeResponse,
        /// Whether renewing the old one has not helped before.
        thorough: bool,
        /// The protocol's version in the request that was refused.
        version: Option<HeaderValue>,
    },
}

/// How much may be done to have a request accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Whatever is possible.
    Insist,
    /// Nobody is to be bothered: it is a farewell.
    Quiet,
}

/// What was done so far for one request.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    made: u32,
    nonces: u32,
}

/// What follows from a response.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It is the answer, whatever it says.
    Final,
    /// The request has to be sent again, with what the server wants repeated.
    Again,
    /// A token is wanted.
    Refused(ChallengeResponse),
}

impl Seat {
    pub(super) fn new(settings: Arc<Settings>, server: Url, name: String, http: HttpSettings) -> Self {
        Self { settings, server, name, http, nonce: Nonce::default(), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The token to send with the next request, if there is one. It is renewed first when it is about to end.
    pub(crate) async fn token(self: &Arc<Self>, manner: Manner) -> Result<Option<Arc<Token>>, WireError> {
        loop {
            let (landed, is_ours) = {
                let mut state = self.state();
                let purpose = if !state.loaded {
                    Purpose::Load
                } else if state.is_renewal_due(manner, now()) {
                    Purpose::Renew
                } else {
                    return Ok(state.token.clone());
                };
                self.join(&mut state, purpose)
            };
            let landed = wait(landed).await;
            // What became of what others wanted is their business.
            if is_ours {
                landed?;
                return Ok(self.state().token.clone());
            }
        }
    }

    /// Puts a token on a request.
    pub(crate) fn put_on(
        &self,
        token: &Token,
        headers: &mut HeaderMap,
        method: &Method,
        url: &Uri,
    ) -> Result<(), WireError> {
        let unfit = |why| WireError::NotAuthorized { why: format!("the token cannot be sent: {why}") };
        token.put_on(headers, method, url, &self.nonce, now()).map_err(unfit)
    }

    /// What follows from a response, from there, to a request that had this token.
    pub(crate) fn judge(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        reach: Reach,
        token: Option<&Token>,
        attempts: &mut Attempts,
    ) -> Verdict {
        let new_nonce = self.nonce.note(headers);
        {
            let mut state = self.state();
            state.reach = state.reach.max(Some(reach));
        }
        if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Verdict::Final;
        }
        let refusal = ChallengeResponse::read(status, headers);
        let error = refusal.get("error");
        if error == Some("use_dpop_nonce") && token.is_some_and(Token::is_bound) {
            // It is about the proof: with another token it would be no better.
            attempts.nonces += 1;
            return if new_nonce && attempts.nonces <= NONCES { Verdict::Again } else { Verdict::Final };
        }
        let ours = refusal.challenges.iter().any(|challenge| challenge.is("Bearer") || challenge.is("DPoP"));
        let about_tokens = match status {
            // Some say only that they want to know who asks, and not how to tell them.
            StatusCode::UNAUTHORIZED => ours || refusal.challenges.is_empty(),
            _ => error == Some("insufficient_scope"),
        };
        let asked = token.is_some_and(|token| token.grant.requested_scope.cover(&scopes(&refusal)));
        let in_vain = status == StatusCode::FORBIDDEN && attempts.made > 0 && asked;
        if !about_tokens || in_vain || attempts.made >= self.settings.max_attempts {
            return Verdict::Final;
        }
        Verdict::Refused(refusal)
    }

    /// Gets a token after a refusal, or waits for whoever gets one; whether there is another one now that is worth a try.
    pub(crate) async fn authorize(
        self: &Arc<Self>,
        refusal: ChallengeResponse,
        refused: Option<&Token>,
        attempts: &mut Attempts,
        manner: Manner,
        version: Option<HeaderValue>,
    ) -> Result<bool, WireError> {
        let number = refused.map(|token| token.number);
        let purpose = match manner {
            Manner::Insist => Purpose::Login { refusal, thorough: attempts.made > 0, version },
            Manner::Quiet => Purpose::Renew,
        };
        loop {
            let (landed, is_ours) = {
                let mut state = self.state();
                if state.token.as_ref().map(|token| token.number) != number {
                    return Ok(true);
                }
                if manner == Manner::Quiet && state.is_logging_in() {
                    return Ok(false);
                }
                self.join(&mut state, purpose.clone())
            };
            if is_ours {
                attempts.made += 1;
            }
            let landed = wait(landed).await;
            // What became of what others wanted is their business.
            if is_ours {
                landed?;
                return Ok(self.state().token.as_ref().map(|token| token.number) != number);
            }
        }
    }

    /// Waits for a login that is under way.
    pub(crate) fn login(&self) -> Option<impl Future<Output = Result<(), WireError>> + Send + 'static> {
        let state = self.state();
        let flight = state.flight.as_ref()?;
        matches!(flight.purpose, Purpose::Login { .. }).then(|| wait(flight.landed.clone()))
    }

    /// Waits for what is under way, or starts something; and whether it serves this purpose.
    fn join(self: &Arc<Self>, state: &mut State, purpose: Purpose) -> (Landed, bool) {
        // One that ended without landing has failed badly; the next may not.
        if let Some(flight) = state.flight.as_ref().filter(|flight| !flight.task.is_finished()) {
            return (flight.landed.clone(), flight.purpose.serves(&purpose));
        }
        let (lands, landed) = watch::channel(None);
        let reach = state.reach.unwrap_or_else(|| Reach::of_url(&self.server));
        let login = Login {
            settings: self.settings.clone(),
            server: self.server.clone(),
            name: self.name.clone(),
            http: self.http.clone(),
            reach,
            lands,
            before: state.token.as_ref().map(|token| token.grant.clone()),
        };
        // The task does not keep the seat: when nobody has it any more, nobody is waited for. What is under way with the
        // authorization server comes to its end even so: a token that it has given must not be lost.
        let task = tokio::spawn(fly(Arc::downgrade(self), login, purpose.clone())).abort_handle();
        state.flight = Some(Flight { purpose, landed: landed.clone(), task });
        (landed, true)
    }

    /// Takes over what was got.
    fn land(&self, purpose: &Purpose, got: Result<Option<TokenSet>, WireError>) -> Result<(), WireError> {
        let mut state = self.state();
        state.flight = None;
        if matches!(purpose, Purpose::Renew) && !matches!(got, Ok(Some(_))) {
            // The server decides what the old one is still good for.
            state.patient_until = now().saturating_add(PAUSE);
            return Ok(());
        }
        let grant = got?;
        state.loaded = true;
        let Some(grant) = grant else { return Ok(()) };
        state.tokens += 1;
        let unfit = |why| WireError::NotAuthorized { why: format!("the token cannot be used: {why}") };
        state.token = Some(Arc::new(Token::new(grant, state.tokens, now()).map_err(unfit)?));
        state.patient_until = 0;
        Ok(())
    }
}

impl State {
    fn is_renewal_due(&self, manner: Manner, now: Seconds) -> bool {
        let Some(token) = &self.token else { return false };
        // While somebody logs in, what there is will do for as long as it lasts.
        let will_do = self.is_logging_in() && (manner == Manner::Quiet || !token.grant.ends_within(0, now));
        token.renew_at.is_some_and(|at| at <= now) && self.patient_until <= now && !will_do
    }

    fn is_logging_in(&self) -> bool {
        self.flight.as_ref().is_some_and(|flight| {
            matches!(flight.purpose, Purpose::Login { .. }) && !flight.task.is_finished()
        })
    }
}

impl Purpose {
    /// Whether what is got for this serves the other as well.
    fn serves(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Login { refusal, .. }, Self::Login { refusal: wanted, .. }) => {
                refusal.status == wanted.status && scopes(refusal).cover(&scopes(wanted))
            }
            _ => self == other,
        }
    }
}

fn scopes(refusal: &ChallengeResponse) -> Scopes {
    Scopes::parse_leniently(refusal.get("scope").unwrap_or_default())
}

/// Where it is said what became of it.
pub(super) type Lands = watch::Sender<Option<Result<(), WireError>>>;
type Landed = watch::Receiver<Option<Result<(), WireError>>>;

/// Waits for what is under way; leaving does not stop it.
async fn wait(mut landed: Landed) -> Result<(), WireError> {
    match landed.wait_for(Option::is_some).await {
        Ok(outcome) => outcome.clone().unwrap_or(Ok(())),
        Err(_) => Err(WireError::NotAuthorized { why: "the login was broken off".to_owned() }),
    }
}

async fn fly(seat: Weak<Seat>, login: Login, purpose: Purpose) {
    // Every client begins with a look at what is kept, which needs little room; what logging in needs is boxed.
    let got = match &purpose {
        Purpose::Load => Ok(login.load().await),
        Purpose::Renew => Box::pin(login.renew()).await,
        Purpose::Login { refusal, thorough, version } => {
            Box::pin(login.run(refusal, *thorough, version.clone())).await.map(Some)
        }
    };
    if let Err(fault) = &got {
        tracing::debug!(server = %login.name, %fault, "there is no new token");
    }
    if let Some(seat) = seat.upgrade() {
        let landed = seat.land(&purpose, got);
        login.lands.send_replace(Some(landed));
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat").field("server", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A token that is given at 1000, renewed from 1075 on and over at 1100, and a flight for this.
    fn state(purpose: Purpose) -> State {
        let grant = json!({
            "issuer": "https://h", "resource": "https://h/mcp", "method": "none", "token": "t",
            "token_type": "Bearer", "scope": "a", "expires_at": 1100, "refresh_token": "r",
            "token_endpoint": "https://h/token",
        });
        let token = Token::new(serde_json::from_value(grant).unwrap(), 1, 1000).unwrap();
        let task = tokio::spawn(std::future::pending::<()>()).abort_handle();
        let flight = Flight { purpose, landed: watch::channel(None).1, task };
        State { loaded: true, token: Some(Arc::new(token)), flight: Some(flight), ..State::default() }
    }

    #[tokio::test]
    async fn a_token_that_lasts_does_not_wait_for_somebody_who_logs_in() {
        let refusal = ChallengeResponse::read(StatusCode::FORBIDDEN, &HeaderMap::new());
        let mut amid_login = state(Purpose::Login { refusal, thorough: false, version: None });
        let due =
            |state: &State, manner| [1074, 1075, 1099, 1100].map(|now| state.is_renewal_due(manner, now));
        assert_eq!(due(&amid_login, Manner::Insist), [false, false, false, true]);
        assert_eq!(due(&amid_login, Manner::Quiet), [false; 4]);
        let alone = [false, true, true, true];
        assert_eq!(due(&state(Purpose::Renew), Manner::Insist), alone);
        amid_login.flight = None;
        assert_eq!(due(&amid_login, Manner::Quiet), alone);
    }
}
