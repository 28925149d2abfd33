//! JOSE: keys, signatures and JWS (RFC 7515, 7517, 7518, 8037).
//!
//! Only asymmetric signatures exist here. `none` and HMAC algorithms cannot be named, and the key decides which algorithm
//! is used, never the token.

mod algorithm;
mod jwk;
mod jws;
mod private_key;

pub use algorithm::Algorithm;
pub use jwk::{InvalidKey, Jwk, Jwks};
pub use jws::{Header, Jws, JwsError};
pub use private_key::{PrivateKey, PrivateKeyError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

pub(crate) fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}
