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
use serde::{Deserialize, Serialize};

/// An asymmetric signature algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Algorithm {
    /// ECDSA on P-256 with SHA-256.
    #[serde(rename = "ES256")]
    Es256,
    /// ECDSA on P-384 with SHA-384.
    #[serde(rename = "ES384")]
    Es384,
    /// Ed25519.
    #[serde(rename = "EdDSA")]
    EdDsa,
    /// RSA, PSS, SHA-256.
    #[serde(rename = "PS256")]
    Ps256,
    /// RSA, PKCS #1 1.5, SHA-256.
    #[serde(rename = "RS256")]
    Rs256,
}

impl Algorithm {
    /// All supported algorithms.
    pub const ALL: [Self; 5] = [Self::Es256, Self::Es384, Self::EdDsa, Self::Ps256, Self::Rs256];

    /// The JOSE name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
            Self::Ps256 => "PS256",
            Self::Rs256 => "RS256",
        }
    }

    /// The algorithm of a JOSE name, if it is supported.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
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
