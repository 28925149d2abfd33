//! The cache of an issuer's JWK Set.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use crate::Seconds;
use crate::jose::{Algorithm, Jwk, Jwks};

/// Limit of keys of one issuer.
const MAX_KEYS: usize = 100;

/// Seconds after which keys are fetched again.
const REFRESH_AFTER: Seconds = 600;

/// Seconds after which keys are not used any more: an unreachable issuer may have revoked them.
const MAX_AGE: Seconds = 24 * 3600;

/// Minimum of seconds between two fetches, whatever key ids tokens name.
const MIN_FETCH_INTERVAL: Seconds = 2;

/// Seconds until a failed fetch is repeated.
const RETRY_AFTER_FAILURE: Seconds = 10;

/// An issuer's keys and the time of their fetch. They stay in use for a day while newer ones cannot be fetched.
#[derive(Debug, Clone, Default)]
pub struct JwksCache {
    known: Arc<Jwks>,
    /// The time of the last successful fetch.
    fetched: Option<Seconds>,
    /// The time of the last attempt.
    tried: Option<Seconds>,
}

/// A JWK Set whose keys are parsed one by one, so that an unsupported key does not spoil the others.
#[derive(Deserialize)]
struct Loose {
    keys: Vec<Value>,
}

impl JwksCache {
    /// The keys that are valid now.
    pub fn known(&self, now: Seconds) -> Arc<Jwks> {
        let good = self.fetched.is_some_and(|at| now.saturating_sub(at) < MAX_AGE);
        if good { Arc::clone(&self.known) } else { Arc::default() }
    }

    /// True if there is a key for this algorithm and key id.
    pub fn has(&self, algorithm: Algorithm, kid: Option<&str>, now: Seconds) -> bool {
        self.known(now).candidates(algorithm, kid).next().is_some()
    }

    /// True if the keys should be fetched: they are old, or none fits the token, and the last attempt is not too recent. The
    /// pause bounds the load that made-up key ids cause.
    pub fn should_fetch(&self, algorithm: Algorithm, kid: Option<&str>, now: Seconds) -> bool {
        let old = self.fetched.is_none_or(|at| now.saturating_sub(at) >= REFRESH_AFTER);
        let pause = if self.fetched >= self.tried { MIN_FETCH_INTERVAL } else { RETRY_AFTER_FAILURE };
        let patient = self.tried.is_none_or(|at| now.saturating_sub(at) >= pause);
        patient && (old || !self.has(algorithm, kid, now))
    }

    /// Records an attempt.
    pub fn trying(&mut self, now: Seconds) {
        self.tried = Some(now);
    }

    /// Stores a fetched JWK Set. Unsupported keys are left out.
    ///
    /// # Errors
    /// It is not a JWK Set, or has no supported key.
    pub fn take(&mut self, body: &[u8], now: Seconds) -> Result<(), InvalidJwks> {
        let loose: Loose = serde_json::from_slice(body).map_err(|_| InvalidJwks)?;
        let keys = loose.keys.into_iter().filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
        let useful = |key: &Jwk| Algorithm::ALL.into_iter().any(|algorithm| key.is_for(algorithm));
        let keys: Vec<Jwk> = keys.filter(useful).take(MAX_KEYS).collect();
        if keys.is_empty() {
            return Err(InvalidJwks);
        }
        self.known = Arc::new(Jwks { keys });
        self.fetched = Some(now);
        Ok(())
    }
}

/// A body without a usable JWK Set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no set of keys that could be used")]
pub struct InvalidJwks;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::jose::PrivateKey;

    const NOW: Seconds = 1_000_000;
    const ES256: Algorithm = Algorithm::Es256;

    fn set(names: &[&str]) -> Vec<u8> {
        let key = PrivateKey::generate().unwrap();
        let keys = names.iter().map(|kid| Jwk { kid: Some((*kid).to_owned()), ..key.public() });
        serde_json::to_vec(&Jwks { keys: keys.collect() }).unwrap()
    }

    #[test]
    fn unknown_key_ids_cause_bounded_fetches() {
        let mut keys = JwksCache::default();
        assert!(keys.should_fetch(ES256, Some("a"), NOW));
        keys.trying(NOW);
        assert!(!keys.should_fetch(ES256, Some("a"), NOW), "not while they are asked for");
        assert!(
            !keys.should_fetch(ES256, Some("a"), NOW + RETRY_AFTER_FAILURE - 1),
            "nor soon after that failed"
        );
        assert!(keys.should_fetch(ES256, Some("a"), NOW + RETRY_AFTER_FAILURE));
        keys.take(&set(&["a"]), NOW).unwrap();
        assert!(
            keys.has(ES256, Some("a"), NOW) && !keys.has(ES256, Some("b"), NOW) && keys.has(ES256, None, NOW)
        );
        assert!(!keys.should_fetch(ES256, Some("a"), NOW + REFRESH_AFTER - 1));
        assert!(keys.should_fetch(ES256, Some("a"), NOW + REFRESH_AFTER));
        assert!(!keys.should_fetch(ES256, Some("b"), NOW + MIN_FETCH_INTERVAL - 1));
        assert!(keys.should_fetch(ES256, Some("b"), NOW + MIN_FETCH_INTERVAL));
        assert!(
            keys.should_fetch(ES256, Some("../../etc/passwd"), NOW + MIN_FETCH_INTERVAL),
            "a name like any other"
        );
        assert!(!keys.has(ES256, Some("../../etc/passwd"), NOW));
    }

    #[test]
    fn keys_stay_until_a_valid_jwk_set_replaces_them() {
        let mut keys = JwksCache::default();
        keys.take(&set(&["a"]), NOW).unwrap();
        for bad in ["", "{}", "[]", "<html>", r#"{"keys":{}}"#, r#"{"keys":[]}"#, r#"{"keys":[{}]}"#] {
            assert_eq!(keys.take(bad.as_bytes(), NOW), Err(InvalidJwks), "{bad}");
            assert!(keys.has(ES256, Some("a"), NOW));
        }
        keys.take(&set(&["b"]), NOW).unwrap();
        assert!(!keys.has(ES256, Some("a"), NOW) && keys.has(ES256, Some("b"), NOW));
    }

    #[test]
    fn keys_of_an_unreachable_issuer_expire_after_a_day() {
        let mut keys = JwksCache::default();
        keys.take(&set(&["a"]), NOW).unwrap();
        assert!(keys.has(ES256, Some("a"), NOW + MAX_AGE - 1));
        assert!(!keys.has(ES256, Some("a"), NOW + MAX_AGE) && keys.known(NOW + MAX_AGE).keys.is_empty());
        keys.take(&set(&["a"]), NOW + MAX_AGE).unwrap();
        assert!(keys.has(ES256, Some("a"), NOW + MAX_AGE));
    }

    #[test]
    fn the_jwks_cache_is_bounded_and_skips_unsupported_keys() {
        let mut keys = JwksCache::default();
        let names: Vec<String> = (0..10_000).map(|number| number.to_string()).collect();
        keys.take(&set(&names.iter().map(String::as_str).collect::<Vec<_>>()), NOW).unwrap();
        assert_eq!(keys.known(NOW).keys.len(), MAX_KEYS);
        let good: Value = serde_json::from_slice(&set(&["a"])).unwrap();
        let strange = json!({ "keys": [
            null, 1, {}, { "kty": "oct", "k": "c2VjcmV0" }, { "kty": 1 },
            { "kty": "EC", "crv": "P-256", "use": "enc" }, good["keys"][0],
        ]});
        keys.take(strange.to_string().as_bytes(), NOW).unwrap();
        assert_eq!(keys.known(NOW).keys.len(), 1);
    }
}
