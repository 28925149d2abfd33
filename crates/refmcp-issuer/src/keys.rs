//! The keys that tokens are signed with.

use refmcp_auth::jose::{Jwk, Jwks, PrivateKey, PrivateKeyError};

/// Keys that stay published after others have taken their place.
const KEPT: usize = 3;

/// The key of today, and those whose tokens are still about.
pub(crate) struct Keys {
    current: Named,
    /// From the newest to the oldest.
    former: Vec<Jwk>,
}

/// A key and its name.
pub(crate) struct Named {
    pub(crate) kid: String,
    pub(crate) key: PrivateKey,
}

impl Named {
    /// A new key, named by its fingerprint.
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
    /// One new key.
    pub(crate) fn generate() -> Result<Self, PrivateKeyError> {
        Ok(Self { current: Named::generate()?, former: Vec::new() })
    }

    /// Puts a new key in the place of the current one, which stays published for a while.
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

    /// What is published.
    pub(crate) fn published(&self) -> Jwks {
        Jwks { keys: std::iter::once(self.current.public()).chain(self.former.iter().cloned()).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn former_keys_stay_for_a_while() {
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
