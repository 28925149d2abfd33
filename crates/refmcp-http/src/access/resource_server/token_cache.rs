//! The cache of access tokens that were verified recently, by their digests.

use std::sync::Arc;

use parking_lot::RwLock;
use refmcp_auth::{ExpiringMap, Seconds};

use super::verification::VerifiedToken;

/// Tokens that are cached, valid and inactive ones each.
const MAX_TOKENS: usize = 10_000;

pub(super) type Digest = [u8; 32];

#[derive(Debug)]
pub(super) struct TokenCache {
    valid: RwLock<ExpiringMap<Digest, Arc<VerifiedToken>>>,
    /// Tokens that introspection found inactive. In a map of their own, so that a flood of them evicts no valid token.
    inactive: RwLock<ExpiringMap<Digest, ()>>,
}

impl Default for TokenCache {
    fn default() -> Self {
        Self {
            valid: RwLock::new(ExpiringMap::new(MAX_TOKENS)),
            inactive: RwLock::new(ExpiringMap::new(MAX_TOKENS)),
        }
    }
}

impl TokenCache {
    pub(super) fn valid(&self, token: &Digest, now: Seconds) -> Option<Arc<VerifiedToken>> {
        self.valid.read().get(token, now).cloned()
    }

    pub(super) fn is_inactive(&self, token: &Digest, now: Seconds) -> bool {
        self.inactive.read().get(token, now).is_some()
    }

    pub(super) fn insert(&self, digest: Digest, token: Arc<VerifiedToken>, until: Seconds, now: Seconds) {
        self.valid.write().insert(digest, token, until, now);
    }

    pub(super) fn insert_inactive(&self, digest: Digest, until: Seconds, now: Seconds) {
        self.valid.write().remove(&digest);
        self.inactive.write().insert(digest, (), until, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_cached_for_a_while_and_not_too_many() {
        let cache = TokenCache::default();
        cache.insert_inactive([1; 32], 110, 100);
        assert_eq!(
            [(1, 109), (1, 110), (2, 100)].map(|(token, now)| cache.is_inactive(&[token; 32], now)),
            [true, false, false]
        );
        for number in 0..3 * MAX_TOKENS {
            let mut token = [0; 32];
            token[..8].copy_from_slice(&number.to_be_bytes());
            cache.insert_inactive(token, 110, 100);
            assert!(cache.is_inactive(&token, 100));
        }
        assert!(cache.inactive.read().len() <= MAX_TOKENS);
    }
}
