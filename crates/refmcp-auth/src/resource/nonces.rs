//! Nonces that a server wants to have in proofs: made from the time, so that none has to be remembered.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use subtle::ConstantTimeEq as _;

use crate::Seconds;
use crate::random::{NoRandom, unguessable};

/// Seconds after which there is a new one; the one before is good for as long again.
const EVERY: Seconds = 120;

/// What nonces are made with.
#[derive(Clone)]
pub struct Nonces(hmac::Key);

impl Nonces {
    /// Nonces that nobody else can make.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn new() -> Result<Self, NoRandom> {
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, unguessable()?.as_bytes())))
    }

    /// The one to be used now.
    pub fn current(&self, now: Seconds) -> String {
        self.of(now / EVERY)
    }

    /// Whether it is one of ours, and not too old.
    pub fn is_good(&self, nonce: &str, now: Seconds) -> bool {
        let turn = now / EVERY;
        let is = |turn| bool::from(self.of(turn).as_bytes().ct_eq(nonce.as_bytes()));
        is(turn) || turn.checked_sub(1).is_some_and(is)
    }

    fn of(&self, turn: u64) -> String {
        let tag = hmac::sign(&self.0, &turn.to_be_bytes());
        URL_SAFE_NO_PAD.encode(tag.as_ref().get(..16).unwrap_or_default())
    }
}

impl fmt::Debug for Nonces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonces")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_are_good_for_a_while() {
        let nonces = Nonces::new().unwrap();
        let nonce = nonces.current(1200);
        assert!(nonces.is_good(&nonce, 1200) && nonces.is_good(&nonce, 1200 + 2 * EVERY - 1));
        assert!(!nonces.is_good(&nonce, 1200 + 2 * EVERY) && !nonces.is_good(&nonce, 1199));
        assert!(!nonces.is_good("", 1200) && !Nonces::new().unwrap().is_good(&nonce, 1200));
        assert_ne!(nonce, nonces.current(1200 + EVERY));
    }
}
