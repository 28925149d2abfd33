//! Signing keys and their rotation.

use refmcp_auth::jose::{Jwk, Jwks, PrivateKey, PrivateKeyError};

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
}
