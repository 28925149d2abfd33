//! Signed tokens: keys, signatures and the compact form of JWS (RFC 7515, 7517, 7518, 8037).
//!
//! Only signatures by asymmetric keys exist here; `none` and the algorithms of shared secrets cannot be named, and which
//! algorithm fits is decided by the key and never by the token.

mod algorithm;
mod jwk;
mod jws;
mod private;

pub use algorithm::Algorithm;
pub use jwk::{BadKey, Jwk, Jwks};
pub use jws::{BadToken, Header, Jws};
pub use private::{BadPrivateKey, PrivateKey};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

pub(crate) fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}
