//! DPoP nonces derived from the time, so that none has to be stored.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use subtle::ConstantTimeEq as _;

use crate::Seconds;
use crate::random::{RandomError, random_token};

/// Seconds until the nonce changes; the previous one stays valid for as long again.
const EVERY: Seconds = 120;

/// The key of the nonces.
#[derive(Clone)]
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
        self.of(now / EVERY)
    }

    /// True if a nonce is the current or the previous one.
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

impl fmt::Debug for DpopNonces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonces")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dpop_nonces_expire() {
        let nonces = DpopNonces::new().unwrap();
        let nonce = nonces.current(1200);
        assert!(nonces.is_good(&nonce, 1200) && nonces.is_good(&nonce, 1200 + 2 * EVERY - 1));
        assert!(!nonces.is_good(&nonce, 1200 + 2 * EVERY) && !nonces.is_good(&nonce, 1199));
        assert!(!nonces.is_good("", 1200) && !DpopNonces::new().unwrap().is_good(&nonce, 1200));
        assert_ne!(nonce, nonces.current(1200 + EVERY));
    }
}
