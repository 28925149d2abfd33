//! Claims of an access token and their validation (RFC 9068).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::jose::{Algorithm, Jwks, Jws, JwsError};
use crate::scope::Scopes;
use crate::{Seconds, numeric_date};

json_struct! {
    /// The claims of an access token.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct Claims {
        /// The issuer.
        iss: String,
        /// The subject.
        sub: String,
        /// The audience.
        aud: Audience,
        /// The expiration time.
        #[serde(deserialize_with = "numeric_date::required")]
        exp: Seconds,
        /// The time before which the token is not valid.
        #[serde(deserialize_with = "numeric_date::optional")]
        nbf?: Seconds,
        /// The time of issue.
        #[serde(deserialize_with = "numeric_date::optional")]
        iat?: Seconds,
        /// The token's unique id.
        jti?: String,
        /// The client that the token was issued to.
        client_id?: String,
        /// The scopes of the token.
        #[serde(default, skip_serializing_if = "Scopes::is_empty")]
        scope: Scopes,
        /// The key that the token is bound to.
        cnf?: Confirmation,
        /// All other claims.
        #[serde(flatten)]
        more: Map<String, Value>,
    }
}

/// The audience of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Audience {
    /// One audience.
    One(String),
    /// A list of audiences.
    Several(Vec<String>),
}

impl Audience {
    /// Iterates over the audiences.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let all = match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Several(several) => several,
        };
        all.iter().map(String::as_str)
    }
}

/// The `cnf` claim: the key that a token is bound to (RFC 7800, RFC 9449).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmation {
    /// The JWK thumbprint of the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jkt: Option<String>,
}

/// What a resource server demands of a token.
#[derive(Debug, Clone)]
pub struct TokenValidation {
    /// The only accepted issuer.
    pub issuer: String,
    /// Accepted audiences: the canonical resource name and its aliases.
    pub audiences: Vec<String>,
    /// Accepts tokens that name other audiences too; those audiences could replay the token here.
    pub allow_other_audiences: bool,
    /// The accepted signature algorithms.
    pub algorithms: Vec<Algorithm>,
    /// The tolerated clock difference.
    pub skew: Duration,
}

impl TokenValidation {
    /// Tokens of this issuer for this resource alone, with a tolerance of one minute.
    pub fn new(issuer: impl Into<String>, audience: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            audiences: vec![audience.into()],
            allow_other_audiences: false,
            algorithms: Algorithm::ALL.to_vec(),
            skew: Duration::from_secs(60),
        }
    }

    /// Verifies a JWT access token: type, signature and claims.
    ///
    /// # Errors
    /// Names what is wrong, and quotes nothing of the token.
    pub fn check(&self, token: &str, keys: &Jwks, now: Seconds) -> Result<Claims, TokenError> {
        let jws = Jws::parse(token)?;
        // A token of another type, such as an ID token, grants no access.
        if jws.header().typ.is_some() && !jws.header().is_one_of(&["at+jwt", "jwt"]) {
            return Err(TokenError::Kind);
        }
        let claims: Claims = jws.verify(keys, &self.algorithms)?;
        self.check_claims(&claims, now)?;
        Ok(claims)
    }

    /// Checks claims whose origin is proven, by a signature or by introspection.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn check_claims(&self, claims: &Claims, now: Seconds) -> Result<(), TokenError> {
        if claims.iss != self.issuer {
            return Err(TokenError::Issuer);
        }
        let ours = |audience: &str| self.audiences.iter().any(|name| name == audience);
        let fits = claims.aud.iter().any(ours) && (self.allow_other_audiences || claims.aud.iter().all(ours));
        if !fits {
            return Err(TokenError::Audience);
        }
        let skew = self.skew.as_secs();
        if now >= claims.exp.saturating_add(skew) {
            return Err(TokenError::Expired);
        }
        let begins = claims.nbf.max(claims.iat).unwrap_or(0);
        if begins > now.saturating_add(skew) {
            return Err(TokenError::NotYet);
        }
        Ok(())
    }
}

/// Why a token is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// It is not a JWS, or its signature cannot be verified.
    #[error("the token is not valid: {0}")]
    Bad(#[from] JwsError),
    /// Its `typ` is not that of an access token.
    #[error("the token is not an access token")]
    Kind,
    /// It names another issuer.
    #[error("the token was issued by another authorization server")]
    Issuer,
    /// It names another audience.
    #[error("the token is not for this server")]
    Audience,
    /// It has expired.
    #[error("the token has expired")]
    Expired,
    /// Its `nbf` or `iat` is in the future.
    #[error("the token is not valid yet")]
    NotYet,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::jose::{Header, PrivateKey};

    const NOW: Seconds = 1_000_000;

    fn check(changes: &Value) -> Result<Claims, TokenError> {
        let mut claims = json!({
            "iss": "https://as", "sub": "me", "aud": "https://rs/mcp", "exp": NOW + 300, "iat": NOW, "scope": "a b",
        });
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let key = PrivateKey::generate().unwrap();
        let token = key.sign(Header::of_type("at+jwt"), &claims).unwrap();
        let expected = TokenValidation::new("https://as", "https://rs/mcp");
        expected.check(&token, &Jwks { keys: vec![key.public()] }, NOW)
    }

    #[test]
    fn a_valid_access_token_verifies() {
        let claims = check(&json!({})).unwrap();
        assert_eq!((claims.sub.as_str(), claims.scope.to_string().as_str()), ("me", "a b"));
    }

    #[test]
    fn every_claim_counts() {
        for (changes, error) in [
            (json!({ "iss": "https://as/" }), TokenError::Issuer),
            (json!({ "iss": "https://other" }), TokenError::Issuer),
            (json!({ "aud": "https://rs" }), TokenError::Audience),
            (json!({ "aud": "https://rs/mcp/" }), TokenError::Audience),
            (json!({ "aud": [] }), TokenError::Audience),
            (json!({ "aud": ["https://rs/mcp", "https://other"] }), TokenError::Audience),
            (json!({ "exp": NOW - 60 }), TokenError::Expired),
            (json!({ "nbf": NOW + 61 }), TokenError::NotYet),
            (json!({ "iat": NOW + 61 }), TokenError::NotYet),
            (json!({ "exp": "soon" }), JwsError::Malformed.into()),
            (json!({ "exp": null }), JwsError::Malformed.into()),
            (json!({ "exp": -1 }), JwsError::Malformed.into()),
            (json!({ "exp": -0.5 }), JwsError::Malformed.into()),
            (json!({ "exp": 1e300 }), JwsError::Malformed.into()),
            (json!({ "exp": (NOW - 60) as f64 + 0.9 }), TokenError::Expired),
            (json!({ "nbf": (NOW + 61) as f64 + 0.1 }), TokenError::NotYet),
            (json!({ "nbf": "0" }), JwsError::Malformed.into()),
            (json!({ "sub": null }), JwsError::Malformed.into()),
        ] {
            assert_eq!(check(&changes).unwrap_err(), error, "{changes}");
        }
        for good in [
            json!({ "exp": NOW - 59 }),
            json!({ "nbf": NOW + 60 }),
            json!({ "aud": ["https://rs/mcp"] }),
            json!({ "exp": NOW as f64 + 300.25, "iat": NOW as f64 + 0.5, "nbf": NOW as f64 - 0.5 }),
            json!({ "nbf": null }),
        ] {
            check(&good).unwrap();
        }
    }
}
