//! An issuer's public keys, as they are kept.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use crate::Seconds;
use crate::jose::{Algorithm, Jwk, Jwks};

/// Keys of one issuer that are kept; an issuer has a handful.
const MOST: usize = 100;

/// Seconds for which keys are good without being looked at again.
const FRESH: Seconds = 600;

/// Seconds for which they are good at all: an issuer that has been silent for so long may have revoked them.
const STALE: Seconds = 24 * 3600;

/// Seconds until they are fetched again, whatever tokens name.
const AGAIN: Seconds = 2;

/// Seconds until that is tried again when nobody answered.
const AFTER_FAILURE: Seconds = 10;

/// The keys of an issuer, and when they were fetched. Those that are known stay in use for a day when newer ones cannot be
/// had.
#[derive(Debug, Clone, Default)]
pub struct Keys {
    known: Arc<Jwks>,
    /// When they were fetched.
    fetched: Option<Seconds>,
    /// When that was last tried.
    tried: Option<Seconds>,
}

/// What a set of keys is, as far as it can be read.
#[derive(Deserialize)]
struct Loose {
    keys: Vec<Value>,
}

impl Keys {
    /// The keys that are good now.
    pub fn known(&self, now: Seconds) -> Arc<Jwks> {
        let good = self.fetched.is_some_and(|at| now.saturating_sub(at) < STALE);
        if good { Arc::clone(&self.known) } else { Arc::default() }
    }

    /// Whether there is a key for a token of this algorithm that names this one.
    pub fn has(&self, algorithm: Algorithm, kid: Option<&str>, now: Seconds) -> bool {
        self.known(now).candidates(algorithm, kid).next().is_some()
    }

    /// Whether to fetch them now: they are old, or there is none for this token; and they were not asked for just now. So
    /// whoever makes up names of keys makes us ask no more often than that.
    pub fn should_fetch(&self, algorithm: Algorithm, kid: Option<&str>, now: Seconds) -> bool {
        let old = self.fetched.is_none_or(|at| now.saturating_sub(at) >= FRESH);
        let pause = if self.fetched >= self.tried { AGAIN } else { AFTER_FAILURE };
        let patient = self.tried.is_none_or(|at| now.saturating_sub(at) >= pause);
        patient && (old || !self.has(algorithm, kid, now))
    }

    /// They are asked for.
    pub fn trying(&mut self, now: Seconds) {
        self.tried = Some(now);
    }

    /// Takes what was fetched. Keys that make no sense are left out; what has no other ones changes nothing.
    ///
    /// # Errors
    /// It is no set of keys, or has none that is of use.
    pub fn take(&mut self, body: &[u8], now: Seconds) -> Result<(), BadKeys> {
        let loose: Loose = serde_json::from_slice(body).map_err(|_| BadKeys)?;
        let keys = loose.keys.into_iter().filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
        let useful = |key: &Jwk| Algorithm::ALL.into_iter().any(|algorithm| key.is_for(algorithm));
        let keys: Vec<Jwk> = keys.filter(useful).take(MOST).collect();
        if keys.is_empty() {
            return Err(BadKeys);
        }
        self.known = Arc::new(Jwks { keys });
        self.fetched = Some(now);
        Ok(())
    }
}

/// Something that is no set of keys, or an empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no set of keys that could be used")]
pub struct BadKeys;

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
    fn unknown_keys_are_asked_for_now_and_then() {
        let mut keys = Keys::default();
        assert!(keys.should_fetch(ES256, Some("a"), NOW));
        keys.trying(NOW);
        assert!(!keys.should_fetch(ES256, Some("a"), NOW), "not while they are asked for");
        assert!(!keys.should_fetch(ES256, Some("a"), NOW + AFTER_FAILURE - 1), "nor soon after that failed");
        assert!(keys.should_fetch(ES256, Some("a"), NOW + AFTER_FAILURE));
        keys.take(&set(&["a"]), NOW).unwrap();
        assert!(
            keys.has(ES256, Some("a"), NOW) && !keys.has(ES256, Some("b"), NOW) && keys.has(ES256, None, NOW)
        );
        assert!(!keys.should_fetch(ES256, Some("a"), NOW + FRESH - 1));
        assert!(keys.should_fetch(ES256, Some("a"), NOW + FRESH));
        assert!(!keys.should_fetch(ES256, Some("b"), NOW + AGAIN - 1));
        assert!(keys.should_fetch(ES256, Some("b"), NOW + AGAIN));
        assert!(keys.should_fetch(ES256, Some("../../etc/passwd"), NOW + AGAIN), "a name like any other");
        assert!(!keys.has(ES256, Some("../../etc/passwd"), NOW));
    }

    #[test]
    fn keys_stay_until_there_are_others() {
        let mut keys = Keys::default();
        keys.take(&set(&["a"]), NOW).unwrap();
        for bad in ["", "{}", "[]", "<html>", r#"{"keys":{}}"#, r#"{"keys":[]}"#, r#"{"keys":[{}]}"#] {
            assert_eq!(keys.take(bad.as_bytes(), NOW), Err(BadKeys), "{bad}");
            assert!(keys.has(ES256, Some("a"), NOW));
        }
        keys.take(&set(&["b"]), NOW).unwrap();
        assert!(!keys.has(ES256, Some("a"), NOW) && keys.has(ES256, Some("b"), NOW));
    }

    #[test]
    fn keys_of_an_issuer_that_stays_silent_end_after_a_day() {
        let mut keys = Keys::default();
        keys.take(&set(&["a"]), NOW).unwrap();
        assert!(keys.has(ES256, Some("a"), NOW + STALE - 1));
        assert!(!keys.has(ES256, Some("a"), NOW + STALE) && keys.known(NOW + STALE).keys.is_empty());
        keys.take(&set(&["a"]), NOW + STALE).unwrap();
        assert!(keys.has(ES256, Some("a"), NOW + STALE));
    }

    #[test]
    fn of_many_keys_some_are_kept_and_strange_ones_are_not() {
        let mut keys = Keys::default();
        let names: Vec<String> = (0..10_000).map(|number| number.to_string()).collect();
        keys.take(&set(&names.iter().map(String::as_str).collect::<Vec<_>>()), NOW).unwrap();
        assert_eq!(keys.known(NOW).keys.len(), MOST);
        let good: Value = serde_json::from_slice(&set(&["a"])).unwrap();
        let strange = json!({ "keys": [
            null, 1, {}, { "kty": "oct", "k": "c2VjcmV0" }, { "kty": 1 },
            { "kty": "EC", "crv": "P-256", "use": "enc" }, good["keys"][0],
        ]});
        keys.take(strange.to_string().as_bytes(), NOW).unwrap();
        assert_eq!(keys.known(NOW).keys.len(), 1);
    }
}
