//! The authorization flow as a state machine.

use bytes::Bytes;
use http::Response;
use url::Url;

use super::authorization::PendingAuthorization;
use super::discovery::{MetadataSearch, Target};
use super::identity::Client;
use super::token_request::TokenRequest;
use super::transitions::{self, AfterRedirect, FlowContext, FlowInput, TokenPurpose};
use super::{
    ClientIdentity, FlowAction, FlowError, FlowRequest, FlowStep, StoreUpdate, StoredState, TokenSet,
};
use crate::Seconds;
use crate::fetch::FetchError;
use crate::metadata::ClientRegistration;

/// Limit of requests in one flow; far more than any flow needs.
const MOST_FETCHES: u32 = 40;

/// One attempt to get an access token.
///
/// Each method returns the next [`FlowAction`]. A call out of order ends the flow, a second redirect of the same login
/// included.
pub struct Flow {
    stage: Stage,
    steps: Vec<FlowStep>,
    fetches: u32,
}

/// The state of a flow: what it waits for, with the data to continue.
pub(crate) enum Stage {
    /// Waits for protected resource metadata.
    ResourceMetadata(FlowInput, MetadataSearch),
    /// Waits for authorization server metadata.
    ServerMetadata(FlowInput, Target, MetadataSearch),
    /// Waits for the metadata of the enterprise's identity provider.
    IdpMetadata(Box<FlowContext>, Client, MetadataSearch),
    /// Waits for the response to a registration.
    Registration(Box<FlowContext>, Url),
    /// Waits until the registration is stored.
    StoringRegistration(Box<FlowContext>, Box<ClientRegistration>),
    /// Waits for the token endpoint to confirm a stored registration.
    RegistrationCheck(Box<FlowContext>, Box<TokenRequest>),
    /// Waits until the store has set a registration aside, before the browser is opened.
    BeforeRedirect(Box<FlowContext>, Box<PendingAuthorization>, Url),
    /// Waits for the redirect of the browser.
    AwaitingRedirect(Box<FlowContext>, Box<PendingAuthorization>),
    /// Waits until the registration is stored again, after the redirect.
    AfterRedirect(Box<AfterRedirect>),
    /// Waits for a token response.
    TokenResponse(Box<TokenRequest>, TokenPurpose),
    /// Waits until the tokens are stored.
    StoringTokens(Box<TokenSet>),
    /// The flow has ended.
    Finished,
}

/// The next state and action, or the end of the flow.
pub(crate) type Transition = Result<(Stage, FlowAction), FlowError>;

impl Flow {
    /// Starts a flow that gets new tokens.
    pub fn start(flow_request: FlowRequest, stored: StoredState, _now: Seconds) -> (Self, FlowAction) {
        Self::with_first(|steps| transitions::begin(flow_request, stored, steps))
    }

    /// Starts a flow that refreshes tokens at their issuer, without a user. [`FlowError::needs_login`] tells whether a new
    /// login is needed instead.
    pub fn refresh(grant: TokenSet, identity: &ClientIdentity, now: Seconds) -> (Self, FlowAction) {
        Self::with_first(|_| transitions::refresh(grant, identity, None, now))
    }

    fn with_first(begin: impl FnOnce(&mut Vec<FlowStep>) -> Transition) -> (Self, FlowAction) {
        let mut flow = Self { stage: Stage::Finished, steps: Vec::new(), fetches: 0 };
        let begun = begin(&mut flow.steps);
        let next = flow.go(begun);
        (flow, next)
    }

    /// Continues with a response.
    pub fn on_response(&mut self, response: Result<Response<Bytes>, FetchError>, now: Seconds) -> FlowAction {
        let steps = &mut self.steps;
        let moved = match std::mem::replace(&mut self.stage, Stage::Finished) {
            Stage::ResourceMetadata(input, search) => {
                transitions::on_resource_metadata(input, search, response, steps)
            }
            Stage::ServerMetadata(input, target, search) => {
                transitions::on_server_metadata(input, target, search, response, steps, now)
            }
            Stage::IdpMetadata(context, client, search) => {
                transitions::on_idp_metadata(context, client, search, response, steps, now)
            }
            Stage::Registration(context, endpoint) => {
                transitions::on_registration(context, &endpoint, response, steps)
            }
            Stage::RegistrationCheck(context, token_request) => {
                transitions::on_registration_check(context, token_request, response, steps, now)
            }
            Stage::TokenResponse(token_request, purpose) => {
                transitions::on_token_response(token_request, purpose, response, steps, now)
            }
            _ => Err(FlowError::OutOfOrder),
        };
        self.go(moved)
    }

    /// True if a redirect answers this flow's authorization request. With several flows at once, it selects the flow to
    /// continue.
    pub fn awaits_redirect(&self, redirect: &Url) -> bool {
        matches!(&self.stage, Stage::AwaitingRedirect(_, pending) if pending.awaits(redirect))
    }

    /// Continues with the URL that the browser was redirected to.
    pub fn on_redirect(&mut self, redirect: &Url, now: Seconds) -> FlowAction {
        let moved = match std::mem::replace(&mut self.stage, Stage::Finished) {
            Stage::AwaitingRedirect(context, pending) => {
                transitions::on_redirect(context, *pending, redirect, &mut self.steps, now)
            }
            _ => Err(FlowError::OutOfOrder),
        };
        self.go(moved)
    }

    /// Ends the flow because the browser was not opened, and returns what has to be stored. A flow whose user does not come
    /// back is simply dropped.
    pub fn cancel_redirect(&mut self) -> Option<StoreUpdate> {
        match std::mem::replace(&mut self.stage, Stage::Finished) {
            Stage::AwaitingRedirect(context, pending) => transitions::cancel_redirect(&context, &pending),
            _ => None,
        }
    }

    /// Continues after a store update was written.
    pub fn on_stored(&mut self, now: Seconds) -> FlowAction {
        let moved = match std::mem::replace(&mut self.stage, Stage::Finished) {
            Stage::StoringRegistration(context, registered) => {
                transitions::on_registration_stored(context, &registered, &mut self.steps, now)
            }
            Stage::BeforeRedirect(context, pending, url) => {
                Ok(transitions::open_browser(context, pending, url))
            }
            Stage::AfterRedirect(then) => transitions::resume_after_redirect(*then, now),
            Stage::StoringTokens(grant) => Ok((Stage::Finished, FlowAction::Done(grant))),
            _ => Err(FlowError::OutOfOrder),
        };
        self.go(moved)
    }

    /// Takes the steps since the last call.
    pub fn take_steps(&mut self) -> Vec<FlowStep> {
        std::mem::take(&mut self.steps)
    }

    fn go(&mut self, moved: Transition) -> FlowAction {
        let (stage, next) = match moved {
            Ok(moved) => moved,
            Err(fault) => (Stage::Finished, FlowAction::Failed(fault)),
        };
        if matches!(next, FlowAction::Fetch(_)) {
            self.fetches += 1;
            if self.fetches > MOST_FETCHES {
                self.stage = Stage::Finished;
                return FlowAction::Failed(FlowError::TooManySteps);
            }
        }
        if let FlowAction::Failed(fault) = &next {
            self.steps.push(FlowStep::new("gave up", fault.to_string()).next(fault.advice()));
        }
        self.stage = stage;
        next
    }
}

impl std::fmt::Debug for Flow {
    /// Most of a flow is secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flow").field("fetches", &self.fetches).finish_non_exhaustive()
    }
}
