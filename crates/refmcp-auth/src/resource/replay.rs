//! DPoP proofs at a server: nonces derived from the time, so that none has to be stored, and the cache that makes proofs
//! single-use.

use std::collections::{BTreeSet, HashMap};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::{digest, hmac};
use subtle::ConstantTimeEq as _;

use crate::Seconds;
use crate::dpop::{MAX_AGE, ProofError, VerifiedProof};
use crate::random::{RandomError, random_token};

/// Seconds until the nonce changes; the previous one stays valid for as long again.
const NONCE_INTERVAL: Seconds = 120;

/// The key of the nonces.
#[derive(Debug, Clone)]
pub struct DpopNonces(hmac::Key);

impl DpopNonces {
    /// A new random key.
    ///
    /// # Errors
    /// The operating system provides no random bytes.
    pub fn new() -> Result<Self, RandomError> {
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, random_token()?.as_bytes())))
    }

    /// The current nonce.
    pub fn current(&self, now: Seconds) -> String {
        self.of(now / NONCE_INTERVAL)
    }

    /// True if a nonce is the current or the previous one.
    pub fn is_good(&self, nonce: &str, now: Seconds) -> bool {
        let turn = now / NONCE_INTERVAL;
        let is = |turn| bool::from(self.of(turn).as_bytes().ct_eq(nonce.as_bytes()));
        is(turn) || turn.checked_sub(1).is_some_and(is)
    }

    fn of(&self, turn: u64) -> String {
        let tag = hmac::sign(&self.0, &turn.to_be_bytes());
        URL_SAFE_NO_PAD.encode(tag.as_ref().get(..16).unwrap_or_default())
    }
}

/// A digest of a key thumbprint or of a `jti`.
type Name = [u8; 16];

/// Recently used proofs, within bounds. After an entry is evicted, proofs of its age or older are rejected, so no proof is
/// ever accepted twice:
///
/// - A key with too many proofs evicts its own oldest. Under a flood its proofs must be more recent; other keys are not
///   affected.
/// - With too many proofs in all, the least recently used key is evicted. Unknown keys then need more recent proofs; active
///   keys are not affected.
#[derive(Debug, Clone)]
pub struct ReplayCache {
    most: usize,
    each: usize,
    count: usize,
    keys: HashMap<Name, Used>,
    /// Keys by the time of their latest proof.
    order: BTreeSet<(Seconds, Name)>,
    /// Proofs of unknown keys, of this time or older, may have been used.
    forgotten: Option<Seconds>,
}

/// The proofs of one key.
#[derive(Debug, Clone, Default)]
struct Used {
    proofs: BTreeSet<(Seconds, Name)>,
    /// Proofs of this time or older were evicted.
    forgotten: Option<Seconds>,
}

impl Used {
    /// The time of the latest stored proof.
    fn latest(&self) -> Option<Seconds> {
        self.proofs.last().map(|(made, _)| *made)
    }
}

impl ReplayCache {
    /// A cache with a total limit and a limit for each key.
    pub fn new(most: usize, each: usize) -> Self {
        Self {
            most: most.max(1),
            each: each.clamp(1, most.max(1)),
            count: 0,
            keys: HashMap::new(),
            order: BTreeSet::new(),
            forgotten: None,
        }
    }

    /// Records the use of a verified proof.
    ///
    /// # Errors
    /// It was used before, or may have been.
    pub fn use_once(&mut self, proof: &VerifiedProof, now: Seconds) -> Result<(), ProofError> {
        self.drop_old(now);
        let key = name(&proof.jkt);
        let known = self.keys.get(&key);
        let forgotten = known.map_or(self.forgotten, |used| used.forgotten);
        if forgotten.is_some_and(|forgotten| proof.iat <= forgotten) {
            return Err(ProofError::Time);
        }
        let entry = (proof.iat, name(&proof.jti));
        if known.is_some_and(|used| used.proofs.contains(&entry)) {
            return Err(ProofError::Replayed);
        }
        self.remember(key, entry, now);
        while self.count > self.most && self.forget_a_key() {}
        Ok(())
    }

    fn remember(&mut self, key: Name, entry: (Seconds, Name), now: Seconds) {
        // A key that returns may have been evicted, so the rule for unknown keys applies.
        let new = || Used { forgotten: self.forgotten, ..Used::default() };
        let used = self.keys.entry(key).or_insert_with(new);
        if let Some(latest) = used.latest() {
            self.order.remove(&(latest, key));
        }
        while used.proofs.first().is_some_and(|(made, _)| made.saturating_add(MAX_AGE) < now) {
            used.proofs.pop_first();
            self.count -= 1;
        }
        used.proofs.insert(entry);
        self.count += 1;
        if used.proofs.len() > self.each
            && let Some((made, _)) = used.proofs.pop_first()
        {
            used.forgotten = used.forgotten.max(Some(made));
            self.count -= 1;
        }
        if let Some(latest) = used.latest() {
            self.order.insert((latest, key));
        }
    }

    /// Evicts keys whose proofs have all expired.
    fn drop_old(&mut self, now: Seconds) {
        while self.order.first().is_some_and(|(latest, _)| latest.saturating_add(MAX_AGE) < now) {
            if let Some((_, key)) = self.order.pop_first()
                && let Some(used) = self.keys.remove(&key)
            {
                self.count -= used.proofs.len();
            }
        }
    }

    /// Evicts the least recently used key; one always stays.
    fn forget_a_key(&mut self) -> bool {
        if self.order.len() < 2 {
            return false;
        }
        let Some((latest, key)) = self.order.pop_first() else { return false };
        let used = self.keys.remove(&key).unwrap_or_default();
        self.count -= used.proofs.len();
        self.forgotten = self.forgotten.max(Some(latest)).max(used.forgotten);
        true
    }
}

fn name(text: &str) -> Name {
    let whole = digest::digest(&digest::SHA256, text.as_bytes());
    let mut name = [0; 16];
    name.iter_mut().zip(whole.as_ref()).for_each(|(to, from)| *to = *from);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof(jkt: &str, jti: &str, iat: Seconds) -> VerifiedProof {
        VerifiedProof { jkt: jkt.into(), jti: jti.into(), iat, nonce: None }
    }

    #[test]
    fn a_dpop_proof_is_accepted_once() {
        let mut replays = ReplayCache::new(10, 10);
        assert_eq!(replays.use_once(&proof("k", "a", 1000), 1000), Ok(()));
        assert_eq!(replays.use_once(&proof("k", "a", 1000), 1300), Err(ProofError::Replayed));
        assert_eq!(replays.use_once(&proof("l", "a", 1000), 1000), Ok(()));
        assert_eq!(replays.use_once(&proof("k", "b", 1000), 1000), Ok(()));
    }

    #[test]
    fn a_flood_of_proofs_allows_no_replay() {
        let mut replays = ReplayCache::new(100, 10);
        for number in 0..20 {
            assert_eq!(replays.use_once(&proof("k", &number.to_string(), 1000 + number), 1010), Ok(()));
        }
        assert_eq!(replays.count, 10);
        for number in 0..20 {
            let again = replays.use_once(&proof("k", &number.to_string(), 1000 + number), 1010);
            assert!(again.is_err(), "{number}");
        }
        assert_eq!(replays.use_once(&proof("k", "late", 1001), 1010), Err(ProofError::Time));
    }

    #[test]
    fn a_flood_of_one_key_does_not_affect_others() {
        let mut replays = ReplayCache::new(100, 10);
        assert_eq!(replays.use_once(&proof("mine", "a", 1000), 1010), Ok(()));
        for number in 0..1000 {
            let flood = proof("flood", &number.to_string(), 1000 + number % 30);
            if let Err(error) = replays.use_once(&flood, 1010) {
                assert_eq!(error, ProofError::Time);
            }
        }
        assert!(replays.count <= 11);
        assert_eq!(replays.use_once(&proof("mine", "b", 1000), 1010), Ok(()), "another of the same second");
        assert_eq!(replays.use_once(&proof("mine", "a", 1000), 1010), Err(ProofError::Replayed));
        assert_eq!(replays.use_once(&proof("new", "a", 900), 1010), Ok(()), "an unknown key");
    }

    #[test]
    fn evicted_keys_allow_no_replay() {
        let mut replays = ReplayCache::new(100, 10);
        for number in 0..1000 {
            let (name, made) = (number.to_string(), 1000 + number);
            assert_eq!(replays.use_once(&proof(&name, "a", made), made), Ok(()), "{number}");
            assert!(replays.count <= 100 && replays.keys.len() == replays.order.len());
        }
        for number in 0..1000 {
            let (name, made) = (number.to_string(), 1000 + number);
            assert!(replays.use_once(&proof(&name, "a", made), 1999).is_err(), "{number}");
        }
        assert_eq!(replays.use_once(&proof("0", "b", 1999), 1999), Ok(()), "one that was forgotten");
    }

    #[test]
    fn expired_proofs_are_evicted() {
        let mut replays = ReplayCache::new(10, 10);
        replays.use_once(&proof("k", "a", 1000), 1000).unwrap();
        replays.use_once(&proof("l", "b", 1301), 1301).unwrap();
        assert_eq!((replays.count, replays.keys.len(), replays.forgotten), (1, 1, None));
        replays.use_once(&proof("l", "c", 1602), 1602).unwrap();
        assert_eq!((replays.count, replays.keys.len(), replays.forgotten), (1, 1, None));
        replays.use_once(&proof("l", "d", 1700), 1700).unwrap();
        replays.use_once(&proof("l", "e", 1950), 1950).unwrap();
        assert_eq!((replays.count, replays.forgotten), (2, None), "of a key that is at work, too");
    }

    #[test]
    fn dpop_nonces_expire() {
        let nonces = DpopNonces::new().unwrap();
        let nonce = nonces.current(1200);
        assert!(nonces.is_good(&nonce, 1200) && nonces.is_good(&nonce, 1200 + 2 * NONCE_INTERVAL - 1));
        assert!(!nonces.is_good(&nonce, 1200 + 2 * NONCE_INTERVAL) && !nonces.is_good(&nonce, 1199));
        assert!(!nonces.is_good("", 1200) && !DpopNonces::new().unwrap().is_good(&nonce, 1200));
        assert_ne!(nonce, nonces.current(1200 + NONCE_INTERVAL));
    }
}
