//! Proof that whoever redeems a code is whoever asked for it (RFC 7636). Only S256 exists here.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest;

use crate::random::{NoRandom, unguessable};
use crate::secret::Secret;

/// The name of the only method.
pub const S256: &str = "S256";

/// A new verifier.
pub fn verifier() -> Result<Secret, NoRandom> {
    unguessable().map(Secret::from)
}

/// What is shown of a verifier beforehand.
pub fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, verifier.as_bytes()))
}

/// Whether a text can be a verifier at all: 43 to 128 of the characters that URLs leave alone.
pub fn is_verifier(text: &str) -> bool {
    (43..=128).contains(&text.len()) && is_unreserved(text)
}

/// Whether a text can be an S256 challenge.
pub fn is_challenge(text: &str) -> bool {
    text.len() == 43 && is_unreserved(text)
}

fn is_unreserved(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
}

/// Whether a verifier is the one that a challenge was made from.
pub fn proves(verifier: &str, challenge: &str) -> bool {
    is_verifier(verifier) && Secret::new(self::challenge(verifier)).is(challenge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc_holds() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert!(proves(verifier, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"));
        assert!(!proves(verifier, verifier));
    }

    #[test]
    fn verifiers_are_long_enough_and_plain() {
        assert!(is_verifier(super::verifier().unwrap().reveal()));
        let short = "a".repeat(42);
        assert!(!is_verifier(&short) && !is_verifier(&"a".repeat(129)) && !is_verifier(&"ä".repeat(30)));
        assert!(!proves(&short, &challenge(&short)));
    }
}
