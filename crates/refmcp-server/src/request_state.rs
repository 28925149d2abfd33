//! Request states and cursors, which clients carry: sealed, and each request state accepted once.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, AeadCore, KeyInit, OsRng, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use parking_lot::Mutex;
use refmcp_proto::engine::{RequestStateUse, Sealer};
use refmcp_proto::time::Timestamp;

/// Bytes of a nonce.
const NONCE: usize = 24;

/// Seals with XChaCha20-Poly1305: unreadable, unforgeable, and valid for one purpose only.
///
/// Servers that share work share a key.
pub struct StateSealer {
    cipher: XChaCha20Poly1305,
}

impl StateSealer {
    /// Seals with this key.
    pub fn with_key(key: [u8; 32]) -> Self {
        Self { cipher: XChaCha20Poly1305::new(&key.into()) }
    }

    /// Seals with a random key.
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
        // Sealing fails only for contents of hundreds of gigabytes; an empty text never opens.
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

/// The request states that were used and have not expired.
///
/// Only a keyed hash is kept of each, since clients decide how long states are. Should two ever have the same, the
/// second is refused, which does no harm.
#[derive(Debug, Default)]
pub(crate) struct UsedStates {
    hashes: RandomState,
    used: Mutex<HashMap<u64, Timestamp>>,
}

/// Above this many, nothing is accepted until some expire: forgetting one would let it be used again.
const MOST: usize = 100_000;

impl UsedStates {
    /// Uses a state; `false` when it was used before.
    pub(crate) fn take(&self, state: &RequestStateUse, now: Timestamp) -> bool {
        let hash = self.hashes.hash_one(&state.sealed);
        let mut used = self.used.lock();
        if used.len() >= MOST {
            used.retain(|_, expires| *expires > now);
        }
        if used.len() >= MOST || used.contains_key(&hash) {
            return false;
        }
        used.insert(hash, state.expires);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seals_open_for_their_purpose_only() {
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
    fn flipped_bits_do_not_open() {
        let seal = StateSealer::with_key([7; 32]);
        let sealed = URL_SAFE_NO_PAD.decode(seal.seal(b"", b"secret")).unwrap();
        for bit in 0..sealed.len() * 8 {
            let mut forged = sealed.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(seal.open(b"", &URL_SAFE_NO_PAD.encode(forged)), None, "bit {bit}");
        }
    }

    #[test]
    fn request_states_are_accepted_once() {
        let states = UsedStates::default();
        let state = RequestStateUse { sealed: "x".into(), expires: Timestamp::from_millis(10) };
        assert!(states.take(&state, Timestamp::from_millis(1)));
        assert!(!states.take(&state, Timestamp::from_millis(1)));
    }
}
