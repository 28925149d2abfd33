//! The client's side: everything from a refusal to a token, as steps without IO and without a clock.
//!
//! A [`Flow`] says what comes [`Next`]: a request to send, a person to send somewhere, something to keep. Whoever drives
//! it does that and tells it what came, until there is a [`Grant`] or a [`FlowError`].

mod assertion;
mod authorize;
mod course;
mod discovery;
mod error;
mod exchange;
mod flow;
mod grant;
mod identity;
mod register;
mod step;
#[cfg(test)]
mod tests;
mod token;
mod wanted;

use std::fmt;

use bytes::Bytes;
use http::Request;
use url::Url;

pub use error::{Blame, FlowError};
pub use exchange::revocations;
pub use flow::Flow;
pub use grant::{BoundKey, Grant, Save, TokenType};
pub use identity::AuthMethod;
pub use step::Step;
pub use wanted::{Enterprise, Identity, Known, PreRegistered, Proofs, Refusal, Used, Wanted, Way};

/// The grant type of assertions (RFC 7523).
pub(crate) const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// What has to be done next.
#[derive(Clone)]
pub enum Next {
    /// Send this and tell [`Flow::fetched`] what came.
    Fetch(Request<Bytes>),
    /// Keep this, then tell [`Flow::saved`].
    Save(Save),
    /// Send a person there, and tell [`Flow::returned`] where their browser was sent back to.
    Browse(Url),
    /// There is a token.
    Done(Box<Grant>),
    /// There will be none.
    Failed(FlowError),
}

impl fmt::Debug for Next {
    /// Bodies, headers and queries are left out: they hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fetch(request) => write!(f, "Fetch({} {})", request.method(), request.uri().path()),
            Self::Save(save) => f.debug_tuple("Save").field(save).finish(),
            Self::Browse(url) => write!(f, "Browse({})", step::place(url)),
            Self::Done(grant) => f.debug_tuple("Done").field(grant).finish(),
            Self::Failed(error) => f.debug_tuple("Failed").field(error).finish(),
        }
    }
}
