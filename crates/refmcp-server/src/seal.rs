//! Sealing what clients carry for us: request states and cursors.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, AeadCore, KeyInit, OsRng, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use refmcp_proto::engine::Sealer;

/// Bytes of a nonce.
const NONCE: usize = 24;

/// Seals with XChaCha20-Poly1305: unreadable, unforgeable, and good for one purpose only.
///
/// The key is made at random unless one is given; servers that share work share a key.
pub struct StateSealer {
    cipher: XChaCha20Poly1305,
}

impl StateSealer {
    /// Seals with this key.
    pub fn with_key(key: [u8; 32]) -> Self {
        Self { cipher: XChaCha20Poly1305::new(&key.into()) }
    }

    /// Seals with a key that nobody knows.
    pub fn random() -> Self {
        Self { cipher: XChaCha20Poly1305::new(&XChaCha20Poly1305::generate_key(&mut OsRng)) }
    }
}

impl fmt::Debug for StateSealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateSealer(…)")
    }
}

impl Sealer for StateSealer {
    fn seal(&self, purpose: &[u8], content: &[u8]) -> String {
        let nonce = XChaCha20Poly1305::generate_nonce(&mut OsRng);
        let mut sealed = nonce.to_vec();
        // Sealing fails only for contents of hundreds of gigabytes; an empty text opens for nobody.
        if let Ok(secret) = self.cipher.encrypt(&nonce, Payload { msg: content, aad: purpose }) {
            sealed.extend(secret);
        }
        URL_SAFE_NO_PAD.encode(sealed)
    }

    fn open(&self, purpose: &[u8], sealed: &str) -> Option<Vec<u8>> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, secret) = bytes.split_at_checked(NONCE)?;
        self.cipher.decrypt(XNonce::from_slice(nonce), Payload { msg: secret, aad: purpose }).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_only_what_was_sealed_for_the_same_purpose() {
        let seal = StateSealer::random();
        let sealed = seal.seal(b"a", b"content");
        assert_eq!(seal.open(b"a", &sealed).as_deref(), Some(&b"content"[..]));
        assert_eq!(seal.open(b"b", &sealed), None);
        assert_eq!(seal.open(b"a", ""), None);
        assert_eq!(seal.open(b"a", &format!("{sealed}-TAMPERED")), None);
        assert_eq!(StateSealer::random().open(b"a", &sealed), None);
        assert_ne!(sealed, seal.seal(b"a", b"content"), "no two seals are alike");
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let seal = StateSealer::with_key([7; 32]);
        let sealed = URL_SAFE_NO_PAD.decode(seal.seal(b"", b"secret")).unwrap();
        for bit in 0..sealed.len() * 8 {
            let mut forged = sealed.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(seal.open(b"", &URL_SAFE_NO_PAD.encode(forged)), None, "bit {bit}");
        }
    }
}
