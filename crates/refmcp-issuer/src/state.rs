//! The state of the authorization server. Every part is bounded and expires.

use std::sync::Arc;

use refmcp_auth::claims::Claims;
use refmcp_auth::jose::PrivateKeyError;
use refmcp_auth::resource::{DpopNonces, ReplayCache};
use refmcp_auth::{ExpiringMap, Scopes, Seconds};

use crate::assertion_replay::AssertionReplayCache;
use crate::authorize::AuthorizationRequest;
use crate::clients::{Client, Registry};
use crate::keys::Keys;

/// Limit of stored tokens, codes and families, each.
const MOST: usize = 10_000;

/// Limit of stored proofs and assertions of one key or signer.
const MOST_OF_ONE: usize = 1_000;

/// Limit of open consent pages.
const OPEN_PAGES: usize = 2_000;

/// Limit of stored client ID metadata documents.
const DOCUMENTS: usize = 256;

/// The state.
pub(crate) struct State {
    pub(crate) keys: Keys,
    pub(crate) clients: Registry,
    /// Fetched client ID metadata documents, or the reason of a failure, by URL.
    pub(crate) documents: ExpiringMap<String, Result<Arc<Client>, String>>,
    /// Open consent pages by the digest of the form's token.
    pub(crate) consents: ExpiringMap<String, Consent>,
    /// Authorization codes by digest.
    pub(crate) codes: ExpiringMap<String, Code>,
    /// Token families by id.
    pub(crate) families: ExpiringMap<String, Family>,
    /// Access tokens by `jti`, or by digest if they are opaque.
    pub(crate) access: ExpiringMap<String, Access>,
    /// Refresh tokens by digest.
    pub(crate) refresh: ExpiringMap<String, Refresh>,
    /// Used DPoP proofs.
    pub(crate) proofs: ReplayCache,
    /// Used assertions of pre-registered clients and trusted issuers.
    pub(crate) assertions: AssertionReplayCache,
    /// Used assertions of other clients, which anyone can register in any number.
    pub(crate) other_assertions: AssertionReplayCache,
    pub(crate) nonces: DpopNonces,
}

/// An open consent page.
pub(crate) struct Consent {
    /// The digest of the browser's cookie.
    pub(crate) browser: String,
    pub(crate) asked: AuthorizationRequest,
}

/// What a user has authorized.
#[derive(Clone)]
pub(crate) struct Authorization {
    pub(crate) client_id: String,
    pub(crate) subject: String,
    pub(crate) resource: String,
    pub(crate) scopes: Scopes,
    /// The thumbprint of the DPoP key.
    pub(crate) jkt: Option<String>,
    /// True if refresh tokens are issued.
    pub(crate) refreshable: bool,
    /// The id of the token family.
    pub(crate) family: String,
}

/// An authorization code.
pub(crate) struct Code {
    pub(crate) granted: Authorization,
    pub(crate) redirect_uri: String,
    pub(crate) challenge: String,
    /// A code is stored longer than it is valid, so that a second use is detected.
    pub(crate) ends: Seconds,
    pub(crate) spent: bool,
}

/// All tokens of one authorization.
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
    pub(crate) granted: Authorization,
    pub(crate) spent: bool,
}

impl State {
    /// An empty state with a new key.
    pub(crate) fn new() -> Result<Self, PrivateKeyError> {
        Ok(Self {
            keys: Keys::generate()?,
            clients: Registry::new(),
            documents: ExpiringMap::new(DOCUMENTS),
            consents: ExpiringMap::new(OPEN_PAGES),
            codes: ExpiringMap::new(MOST),
            families: ExpiringMap::new(MOST),
            access: ExpiringMap::new(MOST),
            refresh: ExpiringMap::new(MOST),
            proofs: ReplayCache::new(MOST, MOST_OF_ONE),
            assertions: AssertionReplayCache::new(MOST, MOST_OF_ONE),
            other_assertions: AssertionReplayCache::new(MOST, MOST_OF_ONE),
            nonces: DpopNonces::new().map_err(|_| PrivateKeyError::Random)?,
        })
    }

    /// True if the tokens of a family are valid. An evicted family is not.
    pub(crate) fn is_alive(&self, family: &str, now: Seconds) -> bool {
        self.families.get(family, now).is_some_and(|family| !family.revoked)
    }

    /// Revokes a family.
    pub(crate) fn revoke(&mut self, family: &str, now: Seconds) {
        if let Some(family) = self.families.get_mut(family, now) {
            family.revoked = true;
        }
    }
}
