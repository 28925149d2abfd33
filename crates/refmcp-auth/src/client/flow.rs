//! The authorization flow as its caller drives it: responses, redirects and times go in, actions come out.
//!
//! The flow itself is straight-line code (`login`) that awaits the caller's part through [`FlowIo`]. [`Flow`] polls it by hand
//! whenever there is something new, so neither an executor nor a clock is involved.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use url::Url;

use super::authorization::PendingAuthorization;
use super::{
    Blame, ClientIdentity, FlowAction, FlowError, FlowErrorKind, FlowRequest, FlowStep, StoreUpdate,
    StoredState, TokenSet, login,
};
use crate::Seconds;
use crate::fetch::FetchError;

/// Limit of requests in one flow; far more than any flow needs.
const MAX_FETCHES: u32 = 40;

/// One attempt to get an access token.
///
/// Each method returns the next [`FlowAction`]. A call out of order ends the flow, a second redirect of the same login
/// included.
pub struct Flow {
    /// The code of the flow, until it has ended.
    code: Option<Pin<Box<FlowCode>>>,
    io: FlowIo,
}

type FlowCode = dyn Future<Output = Result<TokenSet, FlowError>> + Send;

impl Flow {
    /// Starts a flow that gets new tokens.
    pub fn start(flow_request: FlowRequest, stored: StoredState, now: Seconds) -> (Self, FlowAction) {
        let io = FlowIo::default();
        Self::begin(Box::pin(login::login(io.clone(), flow_request, stored)), io, now)
    }

    /// Starts a flow that refreshes tokens at their issuer, without a user. [`FlowError::needs_login`] tells whether a new
    /// login is needed instead.
    pub fn refresh(grant: TokenSet, identity: &ClientIdentity, now: Seconds) -> (Self, FlowAction) {
        let io = FlowIo::default();
        Self::begin(Box::pin(login::refresh(io.clone(), grant, identity.clone())), io, now)
    }

    fn begin(code: Pin<Box<FlowCode>>, io: FlowIo, now: Seconds) -> (Self, FlowAction) {
        let mut flow = Self { code: Some(code), io };
        let action = flow.resume(None, now);
        (flow, action)
    }

    /// Continues with a response.
    pub fn on_response(&mut self, response: Result<Response<Bytes>, FetchError>, now: Seconds) -> FlowAction {
        self.resume(Some(Input::Response(response)), now)
    }

    /// True if a redirect answers this flow's authorization request. With several flows at once, it selects the flow to
    /// continue.
    pub fn awaits_redirect(&self, redirect: &Url) -> bool {
        matches!(&self.io.lock().awaited, Some((pending, _)) if pending.awaits(redirect))
    }

    /// Continues with the URL that the browser was redirected to.
    pub fn on_redirect(&mut self, redirect: &Url, now: Seconds) -> FlowAction {
        self.resume(Some(Input::Redirect(redirect.clone())), now)
    }

    /// Ends the flow because the browser was not opened, and returns what has to be stored. A flow whose user does not come
    /// back is simply dropped.
    pub fn cancel_redirect(&mut self) -> Option<StoreUpdate> {
        self.code = None;
        self.io.lock().awaited.take().and_then(|(_, restore)| restore)
    }

    /// Continues after a store update was written.
    pub fn on_stored(&mut self, now: Seconds) -> FlowAction {
        self.resume(Some(Input::Stored), now)
    }

    /// Takes the steps since the last call.
    pub fn take_steps(&mut self) -> Vec<FlowStep> {
        std::mem::take(&mut self.io.lock().steps)
    }

    /// Runs the code of the flow up to its next action or its end.
    fn resume(&mut self, input: Option<Input>, now: Seconds) -> FlowAction {
        {
            let mut shared = self.io.lock();
            (shared.input, shared.now) = (input, now);
        }
        let polled = match &mut self.code {
            Some(code) => code.as_mut().poll(&mut Context::from_waker(Waker::noop())),
            None => Poll::Ready(Err(FlowError::out_of_order())),
        };
        let ended = match (polled, self.io.lock().action.take()) {
            (Poll::Pending, Some(action)) => return action,
            (Poll::Pending, None) => Err(FlowError::out_of_order()),
            (Poll::Ready(ended), _) => ended,
        };
        self.code = None;
        match ended {
            Ok(tokens) => FlowAction::Done(Box::new(tokens)),
            Err(error) => {
                self.io.step(FlowStep::new("gave up", error.to_string()).next(error.advice()));
                FlowAction::Failed(error)
            }
        }
    }
}

impl std::fmt::Debug for Flow {
    /// Most of a flow is secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flow").field("fetches", &self.io.lock().fetches).finish_non_exhaustive()
    }
}

/// What the code of a flow gets from its caller.
#[derive(Clone, Default)]
pub(crate) struct FlowIo(Arc<Mutex<Shared>>);

/// What a flow and its caller pass to each other.
#[derive(Default)]
struct Shared {
    now: Seconds,
    steps: Vec<FlowStep>,
    fetches: u32,
    action: Option<FlowAction>,
    input: Option<Input>,
    /// The authorization request while the browser is open, and what is stored again if it is not opened after all.
    awaited: Option<(PendingAuthorization, Option<StoreUpdate>)>,
}

/// The outcome of an action.
enum Input {
    Response(Result<Response<Bytes>, FetchError>),
    Redirect(Url),
    Stored,
}

impl FlowIo {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time of the last input.
    pub(crate) fn now(&self) -> Seconds {
        self.lock().now
    }

    /// Adds a step to the log for people.
    pub(crate) fn step(&self, step: FlowStep) {
        self.lock().steps.push(step);
    }

    /// Sends a request to a party.
    pub(crate) async fn fetch(
        &self,
        request: Request<Bytes>,
        url: &Url,
        whose: Blame,
    ) -> Result<Response<Bytes>, FlowError> {
        self.lock().fetches += 1;
        if self.lock().fetches > MAX_FETCHES {
            let message = "the login takes more requests than the limit allows";
            return Err(FlowError::new(FlowErrorKind::TooManySteps, message));
        }
        match self.perform(FlowAction::Fetch(request)).await {
            Input::Response(response) => response.map_err(|why| FlowError::fetch(url, whose, &why)),
            _ => Err(FlowError::out_of_order()),
        }
    }

    /// Waits until an update of the store is written.
    pub(crate) async fn store(&self, update: StoreUpdate) -> Result<(), FlowError> {
        match self.perform(FlowAction::Store(update)).await {
            Input::Stored => Ok(()),
            _ => Err(FlowError::out_of_order()),
        }
    }

    /// Opens the browser and waits for its redirect.
    pub(crate) async fn open_browser(
        &self,
        url: Url,
        pending: PendingAuthorization,
        restore: Option<StoreUpdate>,
    ) -> Result<(PendingAuthorization, Url), FlowError> {
        self.lock().awaited = Some((pending, restore));
        let input = self.perform(FlowAction::OpenBrowser(url)).await;
        match (input, self.lock().awaited.take()) {
            (Input::Redirect(redirect), Some((pending, _))) => Ok((pending, redirect)),
            _ => Err(FlowError::out_of_order()),
        }
    }

    /// Hands an action to the caller, and waits for its outcome.
    async fn perform(&self, action: FlowAction) -> Input {
        self.lock().action = Some(action);
        poll_fn(|_| self.lock().input.take().map_or(Poll::Pending, Poll::Ready)).await
    }
}
