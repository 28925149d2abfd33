//! JOSE: keys, signatures and JWS (RFC 7515, 7517, 7518, 8037).
//!
//! Only asymmetric signatures exist here. `none` and HMAC algorithms cannot be named, and the key decides which algorithm
//! is used, never the token.

mod jwk;
mod jws;
mod private_key;

pub use jwk::{InvalidKey, Jwk, Jwks};
pub use jws::{Header, Jws, JwsError};
pub use private_key::{PrivateKey, PrivateKeyError};

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

named_enum! {
    /// An asymmetric signature algorithm.
    pub enum Algorithm {
        /// ECDSA on P-256 with SHA-256.
        Es256 = "ES256",
        /// ECDSA on P-384 with SHA-384.
        Es384 = "ES384",
        /// Ed25519.
        EdDsa = "EdDSA",
        /// RSA, PSS, SHA-256.
        Ps256 = "PS256",
        /// RSA, PKCS #1 1.5, SHA-256.
        Rs256 = "RS256",
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

pub(crate) fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}
