//! The course of a flow: what follows from what came.

mod discovery;
mod identity;
mod recognition;
mod tokens;

use bytes::Bytes;
use http::{Request, Response};
use url::Url;

use super::discovery::{Server, Target};
use super::flow::Stage;
use super::identity::Client;
use super::token::Errand;
use super::{FlowError, Grant, Known, Next, Wanted};
use crate::fetch::Unfetched;
use crate::scope::Scopes;

pub(crate) use discovery::{begin, resource_came, server_came};
pub(crate) use identity::{registration_came, registration_kept};
pub(crate) use recognition::{go_on, recognition_came, set_out, stays};
pub(crate) use tokens::{person_came, provider_came, renew, tokens_came};

/// What is wanted and known.
pub(crate) struct Job {
    wanted: Wanted,
    known: Known,
}

/// A job, once it is known where tokens are had for it.
pub(crate) struct Place {
    job: Job,
    target: Target,
    server: Server,
    /// Whether we registered in this very flow, which we do once.
    registered: bool,
    /// Whether the token endpoint has answered us in this very flow, and so said whether we are known.
    answered: bool,
}

/// What tokens are for.
pub(crate) enum Purpose {
    /// The grant that is wanted. A client that is no longer known registers again, once, if it still can.
    Grant { resource: String, asked: Scopes, revocation: Option<Url>, again: Option<Box<Place>> },
    /// To renew a grant; if that fails, a new one is got, if it is known how.
    Renewal { old: Box<Grant>, instead: Option<Box<Place>> },
    /// To be vouched for.
    Vouching(Box<Place>, Client, Scopes),
}

/// What follows when a person is back: a token is asked for, or there is none to ask for.
pub(crate) type Then = Result<(Box<Errand>, Purpose), FlowError>;

type Came = Result<Response<Bytes>, Unfetched>;

fn fetch(stage: Stage, request: Request<Bytes>) -> (Stage, Next) {
    (stage, Next::Fetch(request))
}
