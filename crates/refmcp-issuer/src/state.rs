//! Everything that is remembered, none of it for ever.

use std::sync::Arc;

use refmcp_auth::claims::Claims;
use refmcp_auth::jose::PrivateKeyError;
use refmcp_auth::resource::{DpopNonces, ReplayCache};
use refmcp_auth::{Scopes, Seconds};

use crate::authorize::Asked;
use crate::bounded::Bounded;
use crate::clients::{Client, Registry};
use crate::keys::Keys;
use crate::once::Once;

/// Tokens, codes and families that are remembered, of each kind.
const MOST: usize = 10_000;

/// Proofs and assertions that are remembered of one key or signer.
const MOST_OF_ONE: usize = 1_000;

/// Consent pages that are open at once.
const OPEN_PAGES: usize = 2_000;

/// Documents of clients that are remembered.
const DOCUMENTS: usize = 256;

/// What is remembered.
pub(crate) struct State {
    pub(crate) keys: Keys,
    pub(crate) clients: Registry,
    /// What came of fetching a client's document, by its URL.
    pub(crate) documents: Bounded<Result<Arc<Client>, String>>,
    /// By the digest of the form's token.
    pub(crate) consents: Bounded<Consent>,
    /// By its digest.
    pub(crate) codes: Bounded<Code>,
    /// By a random name.
    pub(crate) families: Bounded<Family>,
    /// By its `jti`, or by its digest where tokens say nothing.
    pub(crate) access: Bounded<Access>,
    /// By its digest.
    pub(crate) refresh: Bounded<Refresh>,
    /// The proofs that were used to get tokens.
    pub(crate) proofs: ReplayCache,
    /// The assertions of those who were known beforehand that were used.
    pub(crate) assertions: Once,
    /// The assertions of all other clients that were used: anybody can be one of those, and as many as they like.
    pub(crate) assertions_of_strangers: Once,
    pub(crate) nonces: DpopNonces,
}

/// A page that somebody was asked on.
pub(crate) struct Consent {
    /// The digest of the cookie of the browser that it was shown in.
    pub(crate) browser: String,
    pub(crate) asked: Asked,
}

/// What somebody agreed to.
#[derive(Clone)]
pub(crate) struct Granted {
    pub(crate) client_id: String,
    pub(crate) subject: String,
    pub(crate) resource: String,
    pub(crate) scopes: Scopes,
    /// The fingerprint of the key that tokens are bound to.
    pub(crate) jkt: Option<String>,
    /// Whether there is more than one token in it.
    pub(crate) refreshable: bool,
    /// All tokens that come of it, as a name in `families`.
    pub(crate) family: String,
}

/// An authorization code.
pub(crate) struct Code {
    pub(crate) granted: Granted,
    pub(crate) redirect_uri: String,
    pub(crate) challenge: String,
    /// Codes are remembered for longer than they are good, so that a second use is noticed.
    pub(crate) ends: Seconds,
    pub(crate) spent: bool,
}

/// What came of one agreement.
#[derive(Default)]
pub(crate) struct Family {
    pub(crate) revoked: bool,
}

/// An access token.
pub(crate) struct Access {
    pub(crate) family: String,
    pub(crate) claims: Claims,
}

/// A refresh token.
pub(crate) struct Refresh {
    pub(crate) granted: Granted,
    pub(crate) spent: bool,
}

impl State {
    /// Nothing but a key.
    pub(crate) fn new() -> Result<Self, PrivateKeyError> {
        Ok(Self {
            keys: Keys::generate()?,
            clients: Registry::new(),
            documents: Bounded::new(DOCUMENTS),
            consents: Bounded::new(OPEN_PAGES),
            codes: Bounded::new(MOST),
            families: Bounded::new(MOST),
            access: Bounded::new(MOST),
            refresh: Bounded::new(MOST),
            proofs: ReplayCache::new(MOST, MOST_OF_ONE),
            assertions: Once::new(MOST, MOST_OF_ONE),
            assertions_of_strangers: Once::new(MOST, MOST_OF_ONE),
            nonces: DpopNonces::new().map_err(|_| PrivateKeyError::Random)?,
        })
    }

    /// Whether tokens of this family still open something. One that is forgotten does not.
    pub(crate) fn is_alive(&self, family: &str, now: Seconds) -> bool {
        self.families.get(family, now).is_some_and(|family| !family.revoked)
    }

    /// Takes back everything that came of one agreement.
    pub(crate) fn revoke(&mut self, family: &str, now: Seconds) {
        if let Some(family) = self.families.get_mut(family, now) {
            family.revoked = true;
        }
    }
}
