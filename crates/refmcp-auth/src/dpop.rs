//! Proofs that whoever uses a token holds its key (RFC 9449): made and checked.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use subtle::ConstantTimeEq as _;
use url::Url;

use crate::Seconds;
use crate::jose::{BadPrivateKey, Header, Jws, PrivateKey, decode};
use crate::random::unguessable;

/// Seconds for which a proof is taken after it was made.
pub const WITHIN: Seconds = 300;

/// Seconds by which the clock of whoever made it may be ahead of ours.
pub const AHEAD: Seconds = 30;

/// Members of a key that are nobody else's business.
const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/// The longest name of a proof that is looked at.
const LONGEST_NAME: usize = 512;

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

/// A request that came with a proof, as its server knows it.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The method.
    pub method: &'a str,
    /// Where it went, by each of the names that the server has.
    pub urls: &'a [Url],
    /// The token that it carries; none at a token endpoint.
    pub token: Option<&'a str>,
}

/// What a good proof has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proven {
    /// The fingerprint of the key, which the token has to be bound to.
    pub jkt: String,
    /// The proof's own name, to be used once.
    pub jti: String,
    /// When it was made.
    pub iat: Seconds,
    /// What the server had asked to have in it, by the client's account.
    pub nonce: Option<String>,
}

/// Why a proof shows nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProofFault {
    /// There is none.
    #[error("no proof of possession")]
    Missing,
    /// There is more than one.
    #[error("more than one proof of possession")]
    Several,
    /// It is no signed token, or not signed by what it carries.
    #[error("the proof is not a signed token of the kind dpop+jwt with its own public key")]
    Malformed,
    /// It gives its private key away.
    #[error("the proof has a private key in it")]
    PrivateKey,
    /// It was signed with another key.
    #[error("the signature of the proof is wrong")]
    Signature,
    /// It is for another method.
    #[error("the proof is for another method")]
    Method,
    /// It is for another place.
    #[error("the proof is for another URL")]
    Target,
    /// It is too old, or of the future.
    #[error("the proof was not made just now")]
    Time,
    /// It goes with another token.
    #[error("the proof goes with another token")]
    Token,
    /// It lacks what the server wants to have in it.
    #[error("the proof lacks the nonce of this server, or has an old one")]
    Nonce,
    /// It was used before.
    #[error("the proof was used before")]
    Replayed,
    /// It was made with another key than the token's.
    #[error("the token is bound to another key")]
    Binding,
}

/// Checks a proof against the request that it came with: all but whether it was used before, whether its nonce is ours,
/// and whether its key is the token's.
///
/// # Errors
/// Says what is wrong with it, without a word of it.
pub fn check(proof: &str, asked: &Asked<'_>, now: Seconds) -> Result<Proven, ProofFault> {
    let jws = Jws::parse(proof).map_err(|_| ProofFault::Malformed)?;
    if !jws.header().is_one_of(&[TYPE]) {
        return Err(ProofFault::Malformed);
    }
    if shows_private_key(proof) {
        return Err(ProofFault::PrivateKey);
    }
    let key = jws.header().jwk.as_ref().ok_or(ProofFault::Malformed)?;
    let jkt = key.thumbprint().map_err(|_| ProofFault::Malformed)?;
    if !jws.is_signed_with(key) {
        return Err(ProofFault::Signature);
    }
    let said: Proof = jws.claims_unchecked().map_err(|_| ProofFault::Malformed)?;
    if said.jti.is_empty() || said.jti.len() > LONGEST_NAME {
        return Err(ProofFault::Malformed);
    }
    if said.htm != asked.method {
        return Err(ProofFault::Method);
    }
    let said_to = Url::parse(&said.htu).map(|url| target(&url)).map_err(|_| ProofFault::Target)?;
    if !asked.urls.iter().any(|url| target(url) == said_to) {
        return Err(ProofFault::Target);
    }
    if said.iat.saturating_add(WITHIN) < now || said.iat > now.saturating_add(AHEAD) {
        return Err(ProofFault::Time);
    }
    if let Some(token) = asked.token {
        let named = said.ath.as_deref().unwrap_or_default();
        if !bool::from(named.as_bytes().ct_eq(token_digest(token).as_bytes())) {
            return Err(ProofFault::Token);
        }
    }
    Ok(Proven { jkt, jti: said.jti, iat: said.iat, nonce: said.nonce })
}

/// Whether the key in the header has parts that nobody else should know; reading the header leaves them out.
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

    fn checked(proof: &str) -> Result<Proven, ProofFault> {
        let urls = [url("https://localhost/mcp"), url("https://rs.example/mcp")];
        check(proof, &Asked { method: "POST", urls: &urls, token: Some("token") }, NOW)
    }

    #[test]
    fn a_proof_shows_who_holds_the_key() {
        let key = PrivateKey::generate().unwrap();
        let proof =
            prove(&key, "POST", &url("https://rs.example/mcp?a=b#c"), Some("token"), Some("n"), NOW).unwrap();
        let proven = checked(&proof).unwrap();
        assert_eq!(proven.jkt, key.public().thumbprint().unwrap());
        assert_eq!((proven.iat, proven.nonce.as_deref()), (NOW, Some("n")));
        let urls = [url("https://as/token")];
        let proof = prove(&key, "POST", &urls[0], None, None, NOW).unwrap();
        let asked = Asked { method: "POST", urls: &urls, token: None };
        assert!(check(&proof, &asked, NOW + WITHIN).is_ok(), "without a token, for a token endpoint");
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
            json!({ "iat": NOW - WITHIN }),
            json!({ "iat": NOW + AHEAD }),
        ] {
            assert!(with(good.clone()).is_ok(), "{good}");
        }
        for (bad, fault) in [
            (json!({ "htm": "GET" }), ProofFault::Method),
            (json!({ "htm": "post" }), ProofFault::Method),
            (json!({ "htu": "https://rs.example/mcp/" }), ProofFault::Target),
            (json!({ "htu": "https://rs.example/MCP" }), ProofFault::Target),
            (json!({ "htu": "http://rs.example/mcp" }), ProofFault::Target),
            (json!({ "htu": "https://evil.example/mcp" }), ProofFault::Target),
            (json!({ "htu": "https://rs.example:444/mcp" }), ProofFault::Target),
            (json!({ "htu": "/mcp" }), ProofFault::Target),
            (json!({ "iat": NOW - WITHIN - 1 }), ProofFault::Time),
            (json!({ "iat": NOW + AHEAD + 1 }), ProofFault::Time),
            (json!({ "iat": u64::MAX }), ProofFault::Time),
            (json!({ "iat": 0 }), ProofFault::Time),
            (json!({ "iat": "now" }), ProofFault::Malformed),
            (json!({ "jti": "" }), ProofFault::Malformed),
            (json!({ "jti": "j".repeat(LONGEST_NAME + 1) }), ProofFault::Malformed),
            (json!({ "jti": null }), ProofFault::Malformed),
            (json!({ "ath": null }), ProofFault::Token),
            (json!({ "ath": token_digest("other") }), ProofFault::Token),
            (json!({ "ath": "" }), ProofFault::Token),
        ] {
            assert_eq!(with(bad.clone()), Err(fault), "{bad}");
        }
    }

    #[test]
    fn the_key_is_the_one_that_signed_and_shows_nothing_private() {
        let (key, other) = (PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap());
        let claims = json!({
            "jti": "j", "htm": "POST", "htu": "https://rs.example/mcp", "iat": NOW, "ath": token_digest("token"),
        });
        let header = |jwk, typ: &str| Header { jwk, ..Header::of_type(typ) };
        let signed = |header| checked(&key.sign(header, &claims).unwrap());
        assert!(signed(header(Some(key.public()), TYPE)).is_ok());
        assert_eq!(signed(header(Some(other.public()), TYPE)), Err(ProofFault::Signature));
        assert_eq!(signed(header(None, TYPE)), Err(ProofFault::Malformed));
        assert_eq!(signed(header(Some(key.public()), "JWT")), Err(ProofFault::Malformed));
        assert_eq!(
            signed(Header { jwk: Some(key.public()), ..Header::default() }),
            Err(ProofFault::Malformed)
        );
        let jwk = serde_json::to_value(key.public()).unwrap();
        for private in PRIVATE {
            let mut jwk = jwk.clone();
            jwk[private] = "c2VjcmV0".into();
            let header = encode(json!({ "alg": "ES256", "typ": TYPE, "jwk": jwk }).to_string());
            let proof = format!("{header}.{}.", encode(claims.to_string()));
            assert_eq!(checked(&proof), Err(ProofFault::PrivateKey), "{private}");
        }
        for alg in ["none", "HS256", ""] {
            let header = encode(json!({ "alg": alg, "typ": TYPE, "jwk": jwk }).to_string());
            let proof = format!("{header}.{}.", encode(claims.to_string()));
            assert_eq!(checked(&proof), Err(ProofFault::Malformed), "{alg}");
        }
        for nonsense in ["", "a", "a.b.c", &"a".repeat(100_000)] {
            assert_eq!(checked(nonsense), Err(ProofFault::Malformed));
        }
    }
}
