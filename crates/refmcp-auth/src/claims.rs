//! What an access token claims, and whether it is good here and now (RFC 9068).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Seconds;
use crate::jose::{Algorithm, BadToken, Jwks, Jws};
use crate::scope::Scopes;

/// The claims of an access token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claims {
    /// Who issued it.
    pub iss: String,
    /// On whose behalf it is used.
    pub sub: String,
    /// Whom it is for.
    pub aud: Audience,
    /// When it ends.
    pub exp: Seconds,
    /// When it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbf: Option<Seconds>,
    /// When it was issued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iat: Option<Seconds>,
    /// Its own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jti: Option<String>,
    /// The client that got it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// What it is good for.
    #[serde(default, skip_serializing_if = "Scopes::is_empty")]
    pub scope: Scopes,
    /// The key whose owner alone may use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cnf: Option<Confirmation>,
    /// Everything else.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// Whom a token is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Audience {
    /// One.
    One(String),
    /// Any number.
    Several(Vec<String>),
}

impl Audience {
    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let all = match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Several(several) => several,
        };
        all.iter().map(String::as_str)
    }

    /// Whether it is this one and no other.
    pub fn is_only(&self, name: &str) -> bool {
        self.iter().any(|audience| audience == name) && self.iter().all(|audience| audience == name)
    }
}

/// The key that a token is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmation {
    /// Its fingerprint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jkt: Option<String>,
}

/// What a token has to be.
#[derive(Debug, Clone)]
pub struct Expected {
    /// Who must have issued it.
    pub issuer: String,
    /// Whom it must be for, by one of these names: the canonical name and what clients also call it.
    pub audiences: Vec<String>,
    /// Whether it may be for others as well; they could use it here.
    pub others_too: bool,
    /// The algorithms that are taken.
    pub algorithms: Vec<Algorithm>,
    /// How far clocks may differ.
    pub skew: Duration,
}

impl Expected {
    /// Tokens of this issuer, for this resource alone; clocks may differ by a minute.
    pub fn new(issuer: impl Into<String>, audience: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            audiences: vec![audience.into()],
            others_too: false,
            algorithms: Algorithm::ALL.to_vec(),
            skew: Duration::from_secs(60),
        }
    }

    /// Checks a token that carries its claims itself.
    ///
    /// # Errors
    /// Says what is wrong with it, without a word of it.
    pub fn check(&self, token: &str, keys: &Jwks, now: Seconds) -> Result<Claims, TokenFault> {
        let jws = Jws::parse(token)?;
        // A token of another kind, such as one that tells who somebody is, opens nothing.
        if jws.header().typ.is_some() && !jws.header().is_one_of(&["at+jwt", "jwt"]) {
            return Err(TokenFault::Kind);
        }
        let claims: Claims = jws.verify(keys, &self.algorithms)?;
        self.check_claims(&claims, now)?;
        Ok(claims)
    }

    /// Checks claims that are vouched for: by a signature, or by their issuer when it was asked.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn check_claims(&self, claims: &Claims, now: Seconds) -> Result<(), TokenFault> {
        if claims.iss != self.issuer {
            return Err(TokenFault::Issuer);
        }
        let ours = |audience: &str| self.audiences.iter().any(|name| name == audience);
        let fits = claims.aud.iter().any(ours) && (self.others_too || claims.aud.iter().all(ours));
        if !fits {
            return Err(TokenFault::Audience);
        }
        let skew = self.skew.as_secs();
        if now >= claims.exp.saturating_add(skew) {
            return Err(TokenFault::Expired);
        }
        let begins = claims.nbf.max(claims.iat).unwrap_or(0);
        if begins > now.saturating_add(skew) {
            return Err(TokenFault::NotYet);
        }
        Ok(())
    }
}

/// Why a token opens nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFault {
    /// It is not what it should be, or nobody known signed it.
    #[error("the token is not valid: {0}")]
    Bad(#[from] BadToken),
    /// It is for something else than access.
    #[error("the token is not an access token")]
    Kind,
    /// It comes from somebody else.
    #[error("the token was issued by another authorization server")]
    Issuer,
    /// It is for somebody else.
    #[error("the token is not for this server")]
    Audience,
    /// It is over.
    #[error("the token has expired")]
    Expired,
    /// It has not begun.
    #[error("the token is not valid yet")]
    NotYet,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::jose::{Header, PrivateKey};

    const NOW: Seconds = 1_000_000;

    fn check(changes: &Value) -> Result<Claims, TokenFault> {
        let mut claims = json!({
            "iss": "https://as", "sub": "me", "aud": "https://rs/mcp", "exp": NOW + 300, "iat": NOW, "scope": "a b",
        });
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let key = PrivateKey::generate().unwrap();
        let token = key.sign(Header::of_type("at+jwt"), &claims).unwrap();
        let expected = Expected::new("https://as", "https://rs/mcp");
        expected.check(&token, &Jwks { keys: vec![key.public()] }, NOW)
    }

    #[test]
    fn a_good_token_tells_what_it_is_good_for() {
        let claims = check(&json!({})).unwrap();
        assert_eq!((claims.sub.as_str(), claims.scope.to_string().as_str()), ("me", "a b"));
    }

    #[test]
    fn every_claim_counts() {
        for (changes, fault) in [
            (json!({ "iss": "https://as/" }), TokenFault::Issuer),
            (json!({ "iss": "https://other" }), TokenFault::Issuer),
            (json!({ "aud": "https://rs" }), TokenFault::Audience),
            (json!({ "aud": "https://rs/mcp/" }), TokenFault::Audience),
            (json!({ "aud": [] }), TokenFault::Audience),
            (json!({ "aud": ["https://rs/mcp", "https://other"] }), TokenFault::Audience),
            (json!({ "exp": NOW - 60 }), TokenFault::Expired),
            (json!({ "nbf": NOW + 61 }), TokenFault::NotYet),
            (json!({ "iat": NOW + 61 }), TokenFault::NotYet),
            (json!({ "exp": "soon" }), BadToken::Malformed.into()),
            (json!({ "exp": null }), BadToken::Malformed.into()),
            (json!({ "nbf": "0" }), BadToken::Malformed.into()),
            (json!({ "sub": null }), BadToken::Malformed.into()),
        ] {
            assert_eq!(check(&changes).unwrap_err(), fault, "{changes}");
        }
        for good in
            [json!({ "exp": NOW - 59 }), json!({ "nbf": NOW + 60 }), json!({ "aud": ["https://rs/mcp"] })]
        {
            check(&good).unwrap();
        }
    }
}
