//! Tokens in their compact form: header, claims and signature.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Algorithm, Jwk, Jwks, decode};

/// Bytes of a token that are looked at.
const LONGEST: usize = 16 << 10;

/// What a token says of how it was signed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The algorithm.
    pub alg: String,
    /// The kind of token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typ: Option<String>,
    /// The name of the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kid: Option<String>,
    /// The key itself, where that is what is proven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwk: Option<Jwk>,
    /// Extensions that must be understood; none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crit: Option<Vec<String>>,
}

impl Header {
    /// A header for a kind of token.
    pub fn of_type(typ: &str) -> Self {
        Self { typ: Some(typ.to_owned()), ..Self::default() }
    }

    /// Whether the token is of one of these kinds; case and `application/` do not matter.
    pub fn is_one_of(&self, types: &[&str]) -> bool {
        let typ = self.typ.as_deref().unwrap_or_default().to_ascii_lowercase();
        types.contains(&typ.strip_prefix("application/").unwrap_or(&typ))
    }
}

/// Why a token is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadToken {
    /// It is no signed token.
    #[error("it is not a signed token")]
    Malformed,
    /// It is signed in a way that is not taken.
    #[error("its algorithm is not one of those that are taken")]
    Algorithm,
    /// No key is known by which it can be checked.
    #[error("it is signed with a key that is not known")]
    UnknownKey,
    /// The signature is wrong.
    #[error("its signature is wrong")]
    Signature,
}

/// A token that was taken apart and not checked yet.
#[derive(Clone)]
pub struct Jws<'a> {
    header: Header,
    algorithm: Algorithm,
    message: &'a str,
    claims: Vec<u8>,
    signature: Vec<u8>,
}

impl<'a> Jws<'a> {
    /// Takes a token apart.
    ///
    /// # Errors
    /// It is no token, or one of an algorithm that is never taken.
    pub fn parse(token: &'a str) -> Result<Self, BadToken> {
        if token.len() > LONGEST {
            return Err(BadToken::Malformed);
        }
        let (message, signature) = token.rsplit_once('.').ok_or(BadToken::Malformed)?;
        let (header, claims) = message.split_once('.').ok_or(BadToken::Malformed)?;
        let part = |text: &str| decode(text).ok_or(BadToken::Malformed);
        let header: Header = serde_json::from_slice(&part(header)?).map_err(|_| BadToken::Malformed)?;
        if header.crit.is_some() {
            return Err(BadToken::Malformed);
        }
        let algorithm = Algorithm::named(&header.alg).ok_or(BadToken::Algorithm)?;
        Ok(Self { algorithm, message, claims: part(claims)?, signature: part(signature)?, header })
    }

    /// What it says of itself. Nothing of it is proven.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The algorithm it says it was signed by.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Its claims, when one of these keys signed them by one of these algorithms.
    ///
    /// # Errors
    /// It was not, or the claims make no sense.
    pub fn verify<T: DeserializeOwned>(&self, keys: &Jwks, algorithms: &[Algorithm]) -> Result<T, BadToken> {
        if !algorithms.contains(&self.algorithm) {
            return Err(BadToken::Algorithm);
        }
        let mut known = keys.candidates(self.algorithm, self.header.kid.as_deref()).peekable();
        if known.peek().is_none() {
            return Err(BadToken::UnknownKey);
        }
        if !known.any(|key| self.is_signed_with(key)) {
            return Err(BadToken::Signature);
        }
        self.claims_unchecked()
    }

    /// Whether this key signed it.
    pub fn is_signed_with(&self, key: &Jwk) -> bool {
        key.verify(self.algorithm, self.message.as_bytes(), &self.signature)
    }

    /// Its claims, which nobody has vouched for: only to find out whom to ask.
    ///
    /// # Errors
    /// They make no sense.
    pub fn claims_unchecked<T: DeserializeOwned>(&self) -> Result<T, BadToken> {
        serde_json::from_slice(&self.claims).map_err(|_| BadToken::Malformed)
    }
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
    fn what_is_signed_is_verified() {
        let key = PrivateKey::generate().unwrap();
        let token = key.sign(Header::of_type("at+jwt"), &json!({ "sub": "me" })).unwrap();
        let jws = Jws::parse(&token).unwrap();
        assert!(jws.header().is_one_of(&["at+jwt"]));
        let claims: Value = jws.verify(&keys(&key), &[Algorithm::Es256]).unwrap();
        assert_eq!(claims["sub"], "me");
        let stranger = PrivateKey::generate().unwrap();
        let verify =
            |jws: &Jws<'_>, keys: &Jwks, algorithms: &[Algorithm]| jws.verify::<Value>(keys, algorithms);
        assert_eq!(verify(&jws, &keys(&stranger), &[Algorithm::Es256]), Err(BadToken::Signature));
        assert_eq!(verify(&jws, &keys(&key), &[Algorithm::Rs256]), Err(BadToken::Algorithm));
        assert_eq!(verify(&jws, &Jwks::default(), &[Algorithm::Es256]), Err(BadToken::UnknownKey));
    }

    #[test]
    fn tokens_cannot_choose_how_they_are_checked() {
        let claims = encode(r#"{"sub":"me"}"#);
        for header in [r#"{"alg":"none"}"#, r#"{"alg":"HS256"}"#, r#"{"alg":"es256"}"#, r#"{"alg":""}"#] {
            let token = format!("{}.{claims}.", encode(header));
            assert_eq!(Jws::parse(&token).unwrap_err(), BadToken::Algorithm, "{header}");
        }
        for token in ["", ".", "..", "a.b.c", "a.b", "💥.💥.💥", &"a".repeat(LONGEST + 1)] {
            assert_eq!(Jws::parse(token).unwrap_err(), BadToken::Malformed);
        }
        let critical = format!("{}.{claims}.", encode(r#"{"alg":"ES256","crit":["x"]}"#));
        assert_eq!(Jws::parse(&critical).unwrap_err(), BadToken::Malformed);
    }

    #[test]
    fn changed_claims_are_noticed() {
        let key = PrivateKey::generate().unwrap();
        let token = key.sign(Header::default(), &json!({ "sub": "me" })).unwrap();
        let parts: Vec<&str> = token.split('.').collect();
        let forged = format!("{}.{}.{}", parts[0], encode(r#"{"sub":"you"}"#), parts[2]);
        let forged = Jws::parse(&forged).unwrap();
        assert_eq!(forged.verify::<Value>(&keys(&key), &Algorithm::ALL), Err(BadToken::Signature));
    }
}
