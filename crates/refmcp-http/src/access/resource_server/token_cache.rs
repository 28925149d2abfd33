//! Tokens that were checked just now, by their digests.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use refmcp_auth::Seconds;

use super::verification::VerifiedToken;

/// Tokens that are remembered, good and bad ones each.
const MOST: usize = 10_000;

/// The digest of a token.
pub(super) type Digest = [u8; 32];

/// What is remembered of tokens, within bounds and for a short time.
#[derive(Debug, Default)]
pub(super) struct TokenCache {
    good: Shelf<Arc<VerifiedToken>>,
    /// Of those that an issuer had to be asked about.
    bad: Shelf<()>,
}

/// Things that are kept for some time.
#[derive(Debug)]
struct Shelf<T>(RwLock<HashMap<Digest, (T, Seconds)>>);

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<T: Clone> Shelf<T> {
    fn get(&self, token: &Digest, now: Seconds) -> Option<T> {
        let kept = self.0.read();
        kept.get(token).filter(|(_, until)| now < *until).map(|(thing, _)| thing.clone())
    }

    fn put(&self, token: Digest, thing: T, now: Seconds, until: Seconds) {
        let mut kept = self.0.write();
        if kept.len() >= MOST {
            kept.retain(|_, (_, until)| now < *until);
        }
        // Whoever is forgotten is checked again, which does no harm.
        if kept.len() >= MOST {
            kept.clear();
        }
        kept.insert(token, (thing, until));
    }
}

impl TokenCache {
    /// What a token grants, if it was found good just now.
    pub(super) fn good(&self, token: &Digest, now: Seconds) -> Option<Arc<VerifiedToken>> {
        self.good.get(token, now)
    }

    /// Whether it was found bad just now.
    pub(super) fn is_bad(&self, token: &Digest, now: Seconds) -> bool {
        self.bad.get(token, now).is_some()
    }

    pub(super) fn found_good(&self, token: Digest, grant: Arc<VerifiedToken>, now: Seconds, until: Seconds) {
        self.good.put(token, grant, now, until);
    }

    pub(super) fn found_bad(&self, token: Digest, now: Seconds, until: Seconds) {
        self.good.0.write().remove(&token);
        self.bad.put(token, (), now, until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shelf_keeps_things_for_a_while_and_not_too_many() {
        let shelf = Shelf::<usize>::default();
        shelf.put([1; 32], 1, 100, 110);
        assert_eq!(
            (shelf.get(&[1; 32], 109), shelf.get(&[1; 32], 110), shelf.get(&[2; 32], 100)),
            (Some(1), None, None)
        );
        for number in 0..3 * MOST {
            let mut token = [0; 32];
            token[..8].copy_from_slice(&number.to_be_bytes());
            shelf.put(token, number, 100, 110);
            assert_eq!(shelf.get(&token, 100), Some(number));
        }
        assert!(shelf.0.read().len() <= MOST);
    }
}
