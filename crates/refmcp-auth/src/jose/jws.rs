//! JWS in compact serialisation (RFC 7515).

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Algorithm, Jwk, Jwks, decode};

/// Longest accepted token in bytes.
const MAX_TOKEN_BYTES: usize = 16 << 10;

json_struct! {
    /// The JOSE header.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Header {
        /// The algorithm.
        alg: String,
        /// The media type of the token.
        typ?: String,
        /// The key id.
        kid?: String,
        /// The public key itself, in DPoP proofs.
        jwk?: Jwk,
        /// Critical extensions; none is supported.
        #[serde(deserialize_with = "never_null")]
        crit?: Vec<String>,
    }
}

/// The list itself: `null` is none, and must not pass for an absent one.
fn never_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    Vec::deserialize(deserializer).map(Some)
}

impl Header {
    /// A header with this `typ`.
    pub fn of_type(typ: &str) -> Self {
        Self { typ: Some(typ.to_owned()), ..Self::default() }
    }

    /// True if `typ` is one of these; case and a prefix `application/` are ignored.
    pub fn is_one_of(&self, types: &[&str]) -> bool {
        let typ = self.typ.as_deref().unwrap_or_default().to_ascii_lowercase();
        types.contains(&typ.strip_prefix("application/").unwrap_or(&typ))
    }
}

/// Why a JWS is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JwsError {
    /// It is not a JWS.
    #[error("it is not a signed token")]
    Malformed,
    /// Its algorithm is not accepted.
    #[error("its algorithm is not one of those that are taken")]
    Algorithm,
    /// No known key fits.
    #[error("it is signed with a key that is not known")]
    UnknownKey,
    /// The signature is wrong.
    #[error("its signature is wrong")]
    Signature,
}

/// A parsed JWS whose signature is not verified yet.
#[derive(Clone)]
pub struct Jws<'a> {
    header: Header,
    algorithm: Algorithm,
    message: &'a str,
    claims: Vec<u8>,
    signature: Vec<u8>,
}

impl<'a> Jws<'a> {
    /// Parses a token.
    ///
    /// # Errors
    /// It is not a JWS, or its algorithm is never accepted.
    pub fn parse(token: &'a str) -> Result<Self, JwsError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(JwsError::Malformed);
        }
        let (message, signature) = token.rsplit_once('.').ok_or(JwsError::Malformed)?;
        let (header, claims) = message.split_once('.').ok_or(JwsError::Malformed)?;
        let part = |text: &str| decode(text).ok_or(JwsError::Malformed);
        let header: Header = read_object(&part(header)?)?;
        if header.crit.is_some() {
            return Err(JwsError::Malformed);
        }
        let algorithm = Algorithm::named(&header.alg).ok_or(JwsError::Algorithm)?;
        Ok(Self { algorithm, message, claims: part(claims)?, signature: part(signature)?, header })
    }

    /// The header, unverified.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The algorithm that the header names.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The claims, verified by one of these keys and algorithms.
    ///
    /// # Errors
    /// No key verifies the signature, or the claims have another shape.
    pub fn verify<T: DeserializeOwned>(&self, keys: &Jwks, algorithms: &[Algorithm]) -> Result<T, JwsError> {
        if !algorithms.contains(&self.algorithm) {
            return Err(JwsError::Algorithm);
        }
        let mut known = keys.candidates(self.algorithm, self.header.kid.as_deref()).peekable();
        if known.peek().is_none() {
            return Err(JwsError::UnknownKey);
        }
        if !known.any(|key| self.is_signed_with(key)) {
            return Err(JwsError::Signature);
        }
        self.claims_unchecked()
    }

    /// True if this key signed the token.
    pub fn is_signed_with(&self, key: &Jwk) -> bool {
        key.verify(self.algorithm, self.message.as_bytes(), &self.signature)
    }

    /// The claims without verification, only for finding the key or the issuer.
    ///
    /// # Errors
    /// The claims have another shape.
    pub fn claims_unchecked<T: DeserializeOwned>(&self) -> Result<T, JwsError> {
        read_object(&self.claims)
    }
}

/// Reads a JSON object. A struct could be read from an array as well, which neither a header nor claims may be.
fn read_object<T: DeserializeOwned>(json: &[u8]) -> Result<T, JwsError> {
    let is_object = json.trim_ascii_start().starts_with(b"{");
    serde_json::from_slice(json).ok().filter(|_| is_object).ok_or(JwsError::Malformed)
}

impl std::fmt::Debug for Jws<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jws").field("header", &self.header).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{PrivateKey, encode};
    use super::*;

    fn keys(key: &PrivateKey) -> Jwks {
        Jwks { keys: vec![Jwk { kid: Some("one".into()), ..key.public() }] }
    }

    #[test]
    fn a_signed_jws_verifies() {
        let key = PrivateKey::generate().unwrap();
        let token = key.sign(Header::of_type("at+jwt"), &json!({ "sub": "me" })).unwrap();
        let jws = Jws::parse(&token).unwrap();
        assert!(jws.header().is_one_of(&["at+jwt"]));
        let claims: Value = jws.verify(&keys(&key), &[Algorithm::Es256]).unwrap();
        assert_eq!(claims["sub"], "me");
        let stranger = PrivateKey::generate().unwrap();
        let verify =
            |jws: &Jws<'_>, keys: &Jwks, algorithms: &[Algorithm]| jws.verify::<Value>(keys, algorithms);
        assert_eq!(verify(&jws, &keys(&stranger), &[Algorithm::Es256]), Err(JwsError::Signature));
        assert_eq!(verify(&jws, &keys(&key), &[Algorithm::Rs256]), Err(JwsError::Algorithm));
        assert_eq!(verify(&jws, &Jwks::default(), &[Algorithm::Es256]), Err(JwsError::UnknownKey));
    }

    #[test]
    fn a_jws_cannot_choose_its_algorithm() {
        let claims = encode(r#"{"sub":"me"}"#);
        for header in [r#"{"alg":"none"}"#, r#"{"alg":"HS256"}"#, r#"{"alg":"es256"}"#, r#"{"alg":""}"#] {
            let token = format!("{}.{claims}.", encode(header));
            assert_eq!(Jws::parse(&token).unwrap_err(), JwsError::Algorithm, "{header}");
        }
        for token in ["", ".", "..", "a.b.c", "a.b", "💥.💥.💥", &"a".repeat(MAX_TOKEN_BYTES + 1)] {
            assert_eq!(Jws::parse(token).unwrap_err(), JwsError::Malformed);
        }
        let critical = format!("{}.{claims}.", encode(r#"{"alg":"ES256","crit":["x"]}"#));
        assert_eq!(Jws::parse(&critical).unwrap_err(), JwsError::Malformed);
    }

    #[test]
    fn changed_claims_fail_verification() {
        let key = PrivateKey::generate().unwrap();
        let token = key.sign(Header::default(), &json!({ "sub": "me" })).unwrap();
        let parts: Vec<&str> = token.split('.').collect();
        let forged = format!("{}.{}.{}", parts[0], encode(r#"{"sub":"you"}"#), parts[2]);
        let forged = Jws::parse(&forged).unwrap();
        assert_eq!(forged.verify::<Value>(&keys(&key), &Algorithm::ALL), Err(JwsError::Signature));
    }
}
