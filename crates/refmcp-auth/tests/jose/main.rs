//! Signed tokens that must be refused, and those that they differ from: headers, spellings, and signatures of every
//! algorithm.

mod ecdsa;
mod eddsa;
mod headers;
mod rsa;
mod rsa_signatures;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use refmcp_auth::jose::{Algorithm, Jwk, Jwks, Jws, JwsError};
use serde_json::Value;

/// What becomes of a token with these keys, where every algorithm is taken.
fn verify(token: &str, keys: &[Jwk]) -> Result<Value, JwsError> {
    Jws::parse(token)?.verify(&Jwks { keys: keys.to_vec() }, &Algorithm::ALL)
}

/// A token of these parts, the header and the claims as JSON.
fn token(header: &str, claims: &str, signature: &[u8]) -> String {
    format!("{}.{}.{}", encode(header), encode(claims), encode(signature))
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn decode(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).unwrap()
}

/// A token with another signature.
fn signed_otherwise(token: &str, signature: &[u8]) -> String {
    let (message, _) = token.rsplit_once('.').unwrap();
    format!("{message}.{}", encode(signature))
}

fn signature_of(token: &str) -> Vec<u8> {
    decode(token.rsplit_once('.').unwrap().1)
}
