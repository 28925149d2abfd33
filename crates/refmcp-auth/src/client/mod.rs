//! The authorization flow of a client, from a challenge to an access token. Sans-IO.
//!
//! A [`Flow`] returns a [`FlowAction`]: a request to send, a URL to open in a browser, data to store. The caller performs it
//! and passes the outcome back, until the flow ends with a [`TokenSet`] or a [`FlowError`].

mod authorization;
mod discovery;
mod flow;
mod flow_error;
mod flow_step;
mod identity;
mod login;
mod registration;
mod request;
#[cfg(test)]
mod tests;
mod token_request;
mod token_set;

use std::fmt;

use bytes::Bytes;
use http::Request;
use url::Url;

pub use flow::Flow;
pub use flow_error::{Blame, FlowError, FlowErrorKind};
pub use flow_step::FlowStep;
pub use identity::AuthMethod;
pub use request::{
    ClientIdentity, DpopPolicy, EnterpriseIdp, FlowRequest, GrantKind, LastClient, PreRegistered,
    StoredState, UnauthorizedResponse,
};
pub use token_request::revocations;
pub use token_set::{BoundKey, StoreUpdate, TokenSet, TokenType};

/// The JWT bearer grant type (RFC 7523).
pub(crate) const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// What the caller of a [`Flow`] has to do next.
#[derive(Clone)]
pub enum FlowAction {
    /// Send this request and pass the response to [`Flow::on_response`].
    Fetch(Request<Bytes>),
    /// Store this, then call [`Flow::on_stored`].
    Store(StoreUpdate),
    /// Open this URL in a browser and pass the redirect to [`Flow::on_redirect`].
    OpenBrowser(Url),
    /// The flow succeeded.
    Done(Box<TokenSet>),
    /// The flow failed.
    Failed(FlowError),
}

impl fmt::Debug for FlowAction {
    /// Leaves out bodies, headers and queries: they contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fetch(request) => write!(f, "Fetch({} {})", request.method(), request.uri().path()),
            Self::Store(save) => f.debug_tuple("Store").field(save).finish(),
            Self::OpenBrowser(url) => write!(f, "OpenBrowser({})", flow_step::redacted_url(url)),
            Self::Done(grant) => f.debug_tuple("Done").field(grant).finish(),
            Self::Failed(error) => f.debug_tuple("Failed").field(error).finish(),
        }
    }
}
