//! Proofs that whoever uses a token holds its key (RFC 9449).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::Seconds;
use crate::jose::{BadPrivateKey, Header, PrivateKey};
use crate::random::unguessable;

/// The kind of token that a proof is.
pub const TYPE: &str = "dpop+jwt";

/// The claims of a proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// Its own name, used once.
    pub jti: String,
    /// The method of the request that it goes with.
    pub htm: String,
    /// Where that request goes, without query and fragment.
    pub htu: String,
    /// When it was made.
    pub iat: Seconds,
    /// The digest of the token that it goes with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ath: Option<String>,
    /// What the server asked to have in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
}

/// A new proof for one request: without a token for one to a token endpoint, with the token that goes to a resource.
///
/// # Errors
/// The system gives no random bytes.
pub fn prove(
    key: &PrivateKey,
    method: &str,
    url: &Url,
    token: Option<&str>,
    nonce: Option<&str>,
    now: Seconds,
) -> Result<String, BadPrivateKey> {
    let proof = Proof {
        jti: unguessable().map_err(|_| BadPrivateKey::NoRandom)?,
        htm: method.to_owned(),
        htu: target(url),
        iat: now,
        ath: token.map(token_digest),
        nonce: nonce.map(str::to_owned),
    };
    let header = Header { jwk: Some(key.public()), ..Header::of_type(TYPE) };
    key.sign(header, &proof)
}

/// A URL as proofs name it.
pub fn target(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

/// What a proof says of the token that it goes with.
pub fn token_digest(token: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, token.as_bytes()))
}
