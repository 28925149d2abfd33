//! The state of the authorization server. Every part is bounded and expires.

use std::collections::HashMap;
use std::sync::Arc;

use refmcp_auth::claims::Claims;
use refmcp_auth::jose::{Jwk, Jwks, PrivateKey, PrivateKeyError};
use refmcp_auth::resource::{DpopNonces, ReplayCache};
use refmcp_auth::{ExpiringMap, Scopes, Seconds};

use crate::authorize::AuthorizationRequest;
use crate::clients::{Client, Registry};
use crate::respond::ErrorResponse;

/// Limit of stored tokens, codes and families, each.
const MAX_RECORDS: usize = 10_000;

/// Limit of stored proofs and assertions of one key or signer.
const MAX_RECORDS_OF_ONE: usize = 1_000;

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
            codes: ExpiringMap::new(MAX_RECORDS),
            families: ExpiringMap::new(MAX_RECORDS),
            access: ExpiringMap::new(MAX_RECORDS),
            refresh: ExpiringMap::new(MAX_RECORDS),
            proofs: ReplayCache::new(MAX_RECORDS, MAX_RECORDS_OF_ONE),
            assertions: AssertionReplayCache::new(MAX_RECORDS, MAX_RECORDS_OF_ONE),
            other_assertions: AssertionReplayCache::new(MAX_RECORDS, MAX_RECORDS_OF_ONE),
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

/// Number of former keys that stay published.
const KEPT: usize = 3;

/// The current key and the former ones.
pub(crate) struct Keys {
    current: Named,
    /// From the newest to the oldest.
    former: Vec<Jwk>,
}

/// A key and its key id.
pub(crate) struct Named {
    pub(crate) kid: String,
    pub(crate) key: PrivateKey,
}

impl Named {
    /// A new key whose id is its thumbprint.
    pub(crate) fn generate() -> Result<Self, PrivateKeyError> {
        let key = PrivateKey::generate()?;
        let kid = key.public().thumbprint().map_err(|_| PrivateKeyError::Random)?;
        Ok(Self { kid, key })
    }

    fn public(&self) -> Jwk {
        Jwk { kid: Some(self.kid.clone()), used_for: Some("sig".into()), ..self.key.public() }
    }
}

impl Keys {
    /// A set with one new key.
    pub(crate) fn generate() -> Result<Self, PrivateKeyError> {
        Ok(Self { current: Named::generate()?, former: Vec::new() })
    }

    /// Replaces the current key, which stays published.
    pub(crate) fn rotate(&mut self) -> Result<(), PrivateKeyError> {
        let former = std::mem::replace(&mut self.current, Named::generate()?);
        self.former.insert(0, former.public());
        self.former.truncate(KEPT);
        Ok(())
    }

    /// The key to sign with.
    pub(crate) fn current(&self) -> &Named {
        &self.current
    }

    /// The published keys.
    pub(crate) fn published(&self) -> Jwks {
        Jwks { keys: std::iter::once(self.current.public()).chain(self.former.iter().cloned()).collect() }
    }
}

/// Used assertion ids by signer. None is evicted while its assertion is valid: when the cache is full, the next assertion is
/// refused.
pub(crate) struct AssertionReplayCache {
    most: usize,
    each: usize,
    count: usize,
    /// The ids of each signer and when they expire.
    used: HashMap<String, HashMap<String, Seconds>>,
}

/// Why an assertion is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AssertionError {
    /// It was used before.
    Before,
    /// The cache is full, so its reuse could not be detected.
    Full,
}

impl AssertionError {
    /// The error response; `bad` makes that of an assertion which is not valid.
    pub(crate) fn answer(self, bad: impl Fn(&str) -> ErrorResponse) -> ErrorResponse {
        match self {
            Self::Before => bad("it was used before"),
            Self::Full => ErrorResponse::new("temporarily_unavailable", "too many assertions are in use"),
        }
    }
}

impl AssertionReplayCache {
    /// A cache with a total limit and a limit for each signer.
    pub(crate) fn new(most: usize, each: usize) -> Self {
        Self { most, each, count: 0, used: HashMap::new() }
    }

    /// Records the use of an assertion that is valid until a time.
    pub(crate) fn take(
        &mut self,
        signer: &str,
        name: &str,
        until: Seconds,
        now: Seconds,
    ) -> Result<(), AssertionError> {
        let names = self.used.get(signer);
        if names.and_then(|names| names.get(name)).is_some_and(|until| now < *until) {
            return Err(AssertionError::Before);
        }
        if self.is_full_for(signer) {
            self.drop_old(now);
        }
        if self.is_full_for(signer) {
            return Err(AssertionError::Full);
        }
        let before = self.used.entry(signer.to_owned()).or_default().insert(name.to_owned(), until);
        self.count += usize::from(before.is_none());
        Ok(())
    }

    fn is_full_for(&self, signer: &str) -> bool {
        self.count >= self.most || self.used.get(signer).is_some_and(|names| names.len() >= self.each)
    }

    fn drop_old(&mut self, now: Seconds) {
        self.used.retain(|_, names| {
            names.retain(|_, until| now < *until);
            !names.is_empty()
        });
        self.count = self.used.values().map(HashMap::len).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn former_keys_stay_published() {
        let mut keys = Keys::generate().unwrap();
        let first = keys.current().kid.clone();
        let has =
            |keys: &Keys, kid: &str| keys.published().keys.iter().any(|key| key.kid.as_deref() == Some(kid));
        for _ in 0..KEPT {
            keys.rotate().unwrap();
            assert_ne!(keys.current().kid, first);
            assert!(has(&keys, &first) && has(&keys, &keys.current().kid.clone()));
        }
        keys.rotate().unwrap();
        assert!(!has(&keys, &first));
        assert_eq!(keys.published().keys.len(), KEPT + 1);
    }

    #[test]
    fn an_assertion_id_is_accepted_once_for_each_signer() {
        let mut once = AssertionReplayCache::new(10, 10);
        assert_eq!(once.take("a", "1", 100, 0), Ok(()));
        assert_eq!(once.take("a", "1", 100, 99), Err(AssertionError::Before));
        assert_eq!(once.take("b", "1", 100, 0), Ok(()));
        assert_eq!(once.take("a", "1", 200, 100), Ok(()), "another one of the same name, after its time");
        assert_eq!(once.count, 2);
    }

    #[test]
    fn a_full_replay_cache_refuses_assertions() {
        let mut once = AssertionReplayCache::new(6, 4);
        for name in ["1", "2", "3", "4"] {
            assert_eq!(once.take("a", name, 100, 0), Ok(()));
        }
        assert_eq!(once.take("a", "5", 100, 0), Err(AssertionError::Full));
        assert_eq!(once.take("a", "1", 100, 0), Err(AssertionError::Before), "and none is good twice");
        assert_eq!(once.take("b", "1", 100, 0), Ok(()), "others are not kept out");
        assert_eq!(once.take("b", "2", 200, 0), Ok(()));
        assert_eq!(once.take("c", "1", 200, 0), Err(AssertionError::Full));
        assert_eq!(once.take("c", "1", 200, 100), Ok(()));
        assert_eq!((once.count, once.used.len()), (2, 2));
    }
}
