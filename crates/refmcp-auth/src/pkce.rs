//! PKCE with S256 (RFC 7636). The method `plain` is not supported.

use crate::dpop::token_digest;
use crate::random::{RandomError, random_token};
use crate::secret::Secret;

/// The name of the only supported method.
pub const S256: &str = "S256";

/// A new code verifier.
pub fn verifier() -> Result<Secret, RandomError> {
    random_token().map(Secret::from)
}

/// The code challenge of a verifier.
pub fn challenge(verifier: &str) -> String {
    token_digest(verifier)
}

/// True if a text has the form of a verifier: 43 to 128 unreserved characters.
pub fn is_verifier(text: &str) -> bool {
    (43..=128).contains(&text.len()) && is_unreserved(text)
}

/// True if a text has the form of an S256 challenge.
pub fn is_challenge(text: &str) -> bool {
    text.len() == 43 && is_unreserved(text)
}

fn is_unreserved(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
}

/// True if the challenge was made from this verifier.
pub fn proves(verifier: &str, challenge: &str) -> bool {
    is_verifier(verifier) && Secret::new(self::challenge(verifier)).is(challenge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_7636_holds() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert!(proves(verifier, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"));
        assert!(!proves(verifier, verifier));
    }

    #[test]
    fn verifiers_have_the_required_form() {
        assert!(is_verifier(super::verifier().unwrap().reveal()));
        let short = "a".repeat(42);
        assert!(!is_verifier(&short) && !is_verifier(&"a".repeat(129)) && !is_verifier(&"ä".repeat(30)));
        assert!(!proves(&short, &challenge(&short)));
    }
}
