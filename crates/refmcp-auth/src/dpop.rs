//! DPoP proofs of possession (RFC 9449): signed and verified.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use subtle::ConstantTimeEq as _;
use url::Url;

use crate::Seconds;
use crate::jose::{Header, Jws, PrivateKey, PrivateKeyError, decode};
use crate::random::random_token;

/// Seconds for which a proof is accepted after its `iat`.
pub const MAX_AGE: Seconds = 300;

/// Seconds by which a proof's `iat` may be ahead of the verifier's clock.
pub const MAX_SKEW: Seconds = 30;

/// Private members of a JWK, which a proof must not carry.
const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/// Longest accepted `jti`.
const MAX_NAME: usize = 512;

/// The `typ` of a DPoP proof.
pub const TYPE: &str = "dpop+jwt";

/// The claims of a DPoP proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofClaims {
    /// The unique id of the proof, used once.
    pub jti: String,
    /// The method of the request.
    pub htm: String,
    /// The URL of the request, without query and fragment.
    pub htu: String,
    /// The time of creation.
    #[serde(deserialize_with = "crate::numeric_date::required")]
    pub iat: Seconds,
    /// The digest of the access token sent with the proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ath: Option<String>,
    /// The nonce that the server provided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
}

/// Signs a proof for one request. `token` is the access token sent to a resource; a request to a token endpoint has none.
///
/// # Errors
/// The operating system provides no random bytes.
pub fn prove(
    key: &PrivateKey,
    method: &str,
    url: &Url,
    token: Option<&str>,
    nonce: Option<&str>,
    now: Seconds,
) -> Result<String, PrivateKeyError> {
    let proof = ProofClaims {
        jti: random_token().map_err(|_| PrivateKeyError::Random)?,
        htm: method.to_owned(),
        htu: target(url),
        iat: now,
        ath: token.map(token_digest),
        nonce: nonce.map(str::to_owned),
    };
    let header = Header { jwk: Some(key.public()), ..Header::of_type(TYPE) };
    key.sign(header, &proof)
}

/// A URL as the `htu` claim writes it.
pub fn target(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

/// The `ath` claim: the digest of an access token.
pub fn token_digest(token: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, token.as_bytes()))
}

/// The request that a proof came with, as the server sees it.
#[derive(Debug, Clone, Copy)]
pub struct ProofContext<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// Accepted URLs of the request: one for each name of the server.
    pub urls: &'a [Url],
    /// The access token of the request; a request to a token endpoint has none.
    pub token: Option<&'a str>,
}

/// The result of a verified proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedProof {
    /// The JWK thumbprint of the key; the token must be bound to it.
    pub jkt: String,
    /// The unique id, to be used once.
    pub jti: String,
    /// The time of creation.
    pub iat: Seconds,
    /// The nonce that the proof carries. The caller checks it.
    pub nonce: Option<String>,
}

/// Why a proof is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProofError {
    /// No `DPoP` header.
    #[error("no proof of possession")]
    Missing,
    /// More than one `DPoP` header.
    #[error("more than one proof of possession")]
    Several,
    /// Not a JWS of type `dpop+jwt`, or without its own public key.
    #[error("the proof is not a signed token of the kind dpop+jwt with its own public key")]
    Malformed,
    /// The `jwk` has private members.
    #[error("the proof has a private key in it")]
    PrivateKey,
    /// The signature was not made with the proof's own key.
    #[error("the signature of the proof is wrong")]
    Signature,
    /// `htm` is another method.
    #[error("the proof is for another method")]
    Method,
    /// `htu` is another URL.
    #[error("the proof is for another URL")]
    Target,
    /// `iat` is too old or in the future.
    #[error("the proof is too old or from the future")]
    Time,
    /// `ath` is the digest of another token.
    #[error("the proof goes with another token")]
    Token,
    /// The nonce is missing or too old.
    #[error("the proof lacks the nonce of this server, or has an old one")]
    Nonce,
    /// The `jti` was used before.
    #[error("the proof was used before")]
    Replayed,
    /// The access token is bound to another key.
    #[error("the token is bound to another key")]
    Binding,
}

/// Verifies a proof against its request. Replay, nonce and the binding of the token are checked by the caller, who has
/// their state.
///
/// # Errors
/// Names what is wrong, and quotes nothing of the proof.
pub fn check(proof: &str, asked: &ProofContext<'_>, now: Seconds) -> Result<VerifiedProof, ProofError> {
    let jws = Jws::parse(proof).map_err(|_| ProofError::Malformed)?;
    if !jws.header().is_one_of(&[TYPE]) {
        return Err(ProofError::Malformed);
    }
    if shows_private_key(proof) {
        return Err(ProofError::PrivateKey);
    }
    let key = jws.header().jwk.as_ref().ok_or(ProofError::Malformed)?;
    let jkt = key.thumbprint().map_err(|_| ProofError::Malformed)?;
    if !jws.is_signed_with(key) {
        return Err(ProofError::Signature);
    }
    let said: ProofClaims = jws.claims_unchecked().map_err(|_| ProofError::Malformed)?;
    if said.jti.is_empty() || said.jti.len() > MAX_NAME {
        return Err(ProofError::Malformed);
    }
    if said.htm != asked.method {
        return Err(ProofError::Method);
    }
    let said_to = Url::parse(&said.htu).map(|url| target(&url)).map_err(|_| ProofError::Target)?;
    if !asked.urls.iter().any(|url| target(url) == said_to) {
        return Err(ProofError::Target);
    }
    if said.iat.saturating_add(MAX_AGE) < now || said.iat > now.saturating_add(MAX_SKEW) {
        return Err(ProofError::Time);
    }
    if let Some(token) = asked.token {
        let named = said.ath.as_deref().unwrap_or_default();
        if !bool::from(named.as_bytes().ct_eq(token_digest(token).as_bytes())) {
            return Err(ProofError::Token);
        }
    }
    Ok(VerifiedProof { jkt, jti: said.jti, iat: said.iat, nonce: said.nonce })
}

/// True if the proof's `jwk` has private members. [`Jws`] does not read them, so the raw header is searched.
fn shows_private_key(proof: &str) -> bool {
    let header = proof.split('.').next().and_then(decode).unwrap_or_default();
    let header: Map<String, Value> = serde_json::from_slice(&header).unwrap_or_default();
    let key = header.get("jwk").and_then(Value::as_object);
    key.is_some_and(|key| PRIVATE.iter().any(|member| key.contains_key(*member)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::jose::encode;

    const NOW: Seconds = 1_000_000;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn checked(proof: &str) -> Result<VerifiedProof, ProofError> {
        let urls = [url("https://localhost/mcp"), url("https://rs.example/mcp")];
        check(proof, &ProofContext { method: "POST", urls: &urls, token: Some("token") }, NOW)
    }

    #[test]
    fn a_dpop_proof_verifies() {
        let key = PrivateKey::generate().unwrap();
        let proof =
            prove(&key, "POST", &url("https://rs.example/mcp?a=b#c"), Some("token"), Some("n"), NOW).unwrap();
        let proven = checked(&proof).unwrap();
        assert_eq!(proven.jkt, key.public().thumbprint().unwrap());
        assert_eq!((proven.iat, proven.nonce.as_deref()), (NOW, Some("n")));
        let urls = [url("https://as/token")];
        let proof = prove(&key, "POST", &urls[0], None, None, NOW).unwrap();
        let asked = ProofContext { method: "POST", urls: &urls, token: None };
        assert!(check(&proof, &asked, NOW + MAX_AGE).is_ok(), "without a token, for a token endpoint");
    }

    #[test]
    fn every_claim_counts() {
        let key = PrivateKey::generate().unwrap();
        let ath = token_digest("token");
        let with = |changes: Value| {
            let mut claims =
                json!({ "jti": "j", "htm": "POST", "htu": "https://rs.example/mcp", "iat": NOW, "ath": ath });
            for (name, value) in changes.as_object().unwrap() {
                claims[name] = value.clone();
            }
            let header = Header { jwk: Some(key.public()), ..Header::of_type(TYPE) };
            checked(&key.sign(header, &claims).unwrap())
        };
        for good in [
            json!({}),
            json!({ "htu": "HTTPS://RS.example:443/mcp?x=1" }),
            json!({ "htu": "https://localhost/mcp" }),
            json!({ "iat": NOW - MAX_AGE }),
            json!({ "iat": NOW + MAX_SKEW }),
        ] {
            assert!(with(good.clone()).is_ok(), "{good}");
        }
        for (bad, error) in [
            (json!({ "htm": "GET" }), ProofError::Method),
            (json!({ "htm": "post" }), ProofError::Method),
            (json!({ "htu": "https://rs.example/mcp/" }), ProofError::Target),
            (json!({ "htu": "https://rs.example/MCP" }), ProofError::Target),
            (json!({ "htu": "http://rs.example/mcp" }), ProofError::Target),
            (json!({ "htu": "https://evil.example/mcp" }), ProofError::Target),
            (json!({ "htu": "https://rs.example:444/mcp" }), ProofError::Target),
            (json!({ "htu": "/mcp" }), ProofError::Target),
            (json!({ "iat": NOW - MAX_AGE - 1 }), ProofError::Time),
            (json!({ "iat": NOW + MAX_SKEW + 1 }), ProofError::Time),
            (json!({ "iat": u64::MAX }), ProofError::Time),
            (json!({ "iat": 0 }), ProofError::Time),
            (json!({ "iat": "now" }), ProofError::Malformed),
            (json!({ "jti": "" }), ProofError::Malformed),
            (json!({ "jti": "j".repeat(MAX_NAME + 1) }), ProofError::Malformed),
            (json!({ "jti": null }), ProofError::Malformed),
            (json!({ "ath": null }), ProofError::Token),
            (json!({ "ath": token_digest("other") }), ProofError::Token),
            (json!({ "ath": "" }), ProofError::Token),
        ] {
            assert_eq!(with(bad.clone()), Err(error), "{bad}");
        }
    }

    #[test]
    fn a_dpop_proof_is_signed_by_its_own_public_jwk() {
        let (key, other) = (PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap());
        let claims = json!({
            "jti": "j", "htm": "POST", "htu": "https://rs.example/mcp", "iat": NOW, "ath": token_digest("token"),
        });
        let header = |jwk, typ: &str| Header { jwk, ..Header::of_type(typ) };
        let signed = |header| checked(&key.sign(header, &claims).unwrap());
        assert!(signed(header(Some(key.public()), TYPE)).is_ok());
        assert_eq!(signed(header(Some(other.public()), TYPE)), Err(ProofError::Signature));
        assert_eq!(signed(header(None, TYPE)), Err(ProofError::Malformed));
        assert_eq!(signed(header(Some(key.public()), "JWT")), Err(ProofError::Malformed));
        assert_eq!(
            signed(Header { jwk: Some(key.public()), ..Header::default() }),
            Err(ProofError::Malformed)
        );
        let jwk = serde_json::to_value(key.public()).unwrap();
        for private in PRIVATE {
            let mut jwk = jwk.clone();
            jwk[private] = "c2VjcmV0".into();
            let header = encode(json!({ "alg": "ES256", "typ": TYPE, "jwk": jwk }).to_string());
            let proof = format!("{header}.{}.", encode(claims.to_string()));
            assert_eq!(checked(&proof), Err(ProofError::PrivateKey), "{private}");
        }
        for alg in ["none", "HS256", ""] {
            let header = encode(json!({ "alg": alg, "typ": TYPE, "jwk": jwk }).to_string());
            let proof = format!("{header}.{}.", encode(claims.to_string()));
            assert_eq!(checked(&proof), Err(ProofError::Malformed), "{alg}");
        }
        for nonsense in ["", "a", "a.b.c", &"a".repeat(100_000)] {
            assert_eq!(checked(nonsense), Err(ProofError::Malformed));
        }
    }
}
