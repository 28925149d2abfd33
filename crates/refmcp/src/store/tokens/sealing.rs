//! Sealing of a file's content with a key in the system's keyring: keyrings are made for short secrets, and a file can be
//! locked and replaced as a whole.

use std::fmt;

use anyhow::{Context, Result, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, AeadCore, KeyInit, OsRng, Payload};
use chacha20poly1305::{ChaCha20Poly1305, Nonce};
use serde::{Deserialize, Serialize};

use super::keyring::CredentialHelper;

/// Bytes of a nonce, which stands before what it sealed.
const NONCE_BYTES: usize = 12;

/// Sealed content, and where its key is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Sealed {
    pub(super) helper: CredentialHelper,
    /// The name of the key in the keyring.
    pub(super) name: String,
    /// A nonce and the ciphertext, in Base64.
    content: String,
}

/// A key in the keyring.
pub(super) struct SealingKey {
    helper: CredentialHelper,
    name: String,
    cipher: ChaCha20Poly1305,
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealingKey({}, {})", self.helper.program(), self.name)
    }
}

impl SealingKey {
    /// Makes a key and stores it in the keyring.
    pub(super) fn generate(helper: &CredentialHelper) -> Result<Self> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(std::io::Error::other).context("no random numbers")?;
        // Helpers expect URLs.
        let name = format!("https://refmcp.localhost/tokens/{:032x}", u128::from_be_bytes(id));
        helper.store(&name, &STANDARD.encode(ChaCha20Poly1305::generate_key(&mut OsRng)))?;
        // A key that cannot be got back must not seal anything.
        Self::get(helper, &name)
            .with_context(|| format!("{} does not keep what it is given", helper.program()))
    }

    /// The key of this name.
    pub(super) fn get(helper: &CredentialHelper, name: &str) -> Result<Self> {
        let secret = helper.get(name)?;
        let secret =
            secret.context("it has no such key any more; without that, remove it and log in again")?;
        let key = STANDARD.decode(secret).ok().and_then(|key| ChaCha20Poly1305::new_from_slice(&key).ok());
        let cipher = key.context("what it keeps is no key of ours")?;
        Ok(Self { helper: helper.clone(), name: name.to_owned(), cipher })
    }

    /// Erases the key: what it sealed stays closed.
    pub(super) fn erase(&self) -> Result<()> {
        self.helper.erase(&self.name)
    }

    /// Seals content; the seal holds under the name of this key alone.
    pub(super) fn seal(&self, content: &[u8]) -> Result<Sealed> {
        let nonce = ChaCha20Poly1305::generate_nonce(&mut OsRng);
        let payload = Payload { msg: content, aad: self.name.as_bytes() };
        let sealed = self.cipher.encrypt(&nonce, payload).map_err(|_| anyhow!("too long to be sealed"))?;
        let content = STANDARD.encode([nonce.as_slice(), &sealed].concat());
        Ok(Sealed { helper: self.helper.clone(), name: self.name.clone(), content })
    }

    /// Opens what was sealed.
    pub(super) fn open(&self, sealed: &Sealed) -> Result<Vec<u8>> {
        let content = STANDARD.decode(&sealed.content).ok();
        let opened = content.as_deref().and_then(|content| {
            let (nonce, sealed) = content.split_at_checked(NONCE_BYTES)?;
            let payload = Payload { msg: sealed, aad: self.name.as_bytes() };
            self.cipher.decrypt(Nonce::from_slice(nonce), payload).ok()
        });
        opened.context(
            "it was changed, or sealed with another key; without the right one, remove it and log in again",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the file of an earlier version has it.
    const SEALED: &str = "AAECAwQFBgcICQoLV1eWUQ312181TFqXwuSeso2OWlhG3Y+EEjnactc=";

    #[test]
    fn what_was_sealed_before_is_opened_and_nothing_that_was_changed() {
        let helper = CredentialHelper::try_from("pass".to_owned()).unwrap();
        let cipher = ChaCha20Poly1305::new_from_slice(&[7; 32]).unwrap();
        let key = SealingKey {
            helper: helper.clone(),
            name: "https://refmcp.localhost/tokens/1".to_owned(),
            cipher,
        };
        let sealed = |content: &str| Sealed {
            helper: helper.clone(),
            name: key.name.clone(),
            content: content.to_owned(),
        };
        assert_eq!(key.open(&sealed(SEALED)).unwrap(), b"{\"grants\":[]}");
        assert_eq!(key.open(&key.seal(b"new").unwrap()).unwrap(), b"new");
        for changed in ["", "?", "AAAA", &SEALED.replacen('A', "B", 1), &SEALED[..24]] {
            let fault = key.open(&sealed(changed)).unwrap_err().to_string();
            assert!(fault.contains("was changed"), "{changed}: {fault}");
        }
    }
}
