//! Transitions of the flow: the next state and action for each response.

mod discovery;
mod identity;
mod registration_check;
mod tokens;

use bytes::Bytes;
use http::{Request, Response};
use url::Url;

use super::discovery::{Server, Target};
use super::flow::Stage;
use super::identity::Client;
use super::token_request::TokenRequest;
use super::{FlowAction, FlowError, FlowRequest, StoredState, TokenSet};
use crate::fetch::FetchError;
use crate::scope::Scopes;

pub(crate) use discovery::{begin, on_resource_metadata, on_server_metadata};
pub(crate) use identity::{on_registration, on_registration_stored};
pub(crate) use registration_check::{
    cancel_redirect, on_registration_check, open_browser, resume_after_redirect,
};
pub(crate) use tokens::{on_idp_metadata, on_redirect, on_token_response, refresh};

/// The input of a flow.
pub(crate) struct FlowInput {
    flow_request: FlowRequest,
    stored: StoredState,
}

/// The input together with the discovered metadata.
pub(crate) struct FlowContext {
    input: FlowInput,
    target: Target,
    server: Server,
    /// True after a registration in this flow; a flow registers once.
    registered: bool,
    /// True after the token endpoint has confirmed or rejected the client in this flow.
    answered: bool,
}

/// What a token request is for.
pub(crate) enum TokenPurpose {
    /// New tokens. A client that is no longer known registers again, once, if `again` is set.
    NewTokens { resource: String, asked: Scopes, revocation: Option<Url>, again: Option<Box<FlowContext>> },
    /// A refresh; if it fails, `instead` starts a new login.
    Refresh { old: Box<TokenSet>, instead: Option<Box<FlowContext>> },
    /// An ID-JAG of the enterprise's identity provider.
    IdentityAssertion(Box<FlowContext>, Client, Scopes),
}

/// What follows the redirect: a token request, or an error.
pub(crate) type AfterRedirect = Result<(Box<TokenRequest>, TokenPurpose), FlowError>;

type FetchResult = Result<Response<Bytes>, FetchError>;

fn fetch(stage: Stage, request: Request<Bytes>) -> (Stage, FlowAction) {
    (stage, FlowAction::Fetch(request))
}
