//! A resource server's validation of requests (RFC 6750, 7662, 9068, 9449, 9728). Sans-IO.
//!
//! | module | purpose |
//! |---|---|
//! | `credentials` | the credentials of a request |
//! | `access_error` | why a request has no access, and the challenges |
//! | `resource_names` | resource identifiers and metadata URLs |
//! | `discovery`, `jwks_cache` | an issuer's metadata and keys |
//! | `introspection` | token introspection |
//! | `replay` | DPoP proofs are used once, and soon |

mod access_error;
mod credentials;
mod discovery;
mod introspection;
mod jwks_cache;
mod replay;
mod resource_names;

use std::sync::Arc;

pub use access_error::{AccessError, ChallengeContext};
pub use credentials::{
    IN_A_FORM, PresentedToken, WEBSOCKET_BEARER, form_names_token, is_form, read_credentials,
};
pub use discovery::read_issuer_metadata;
pub use introspection::Introspection;
pub use jwks_cache::{InvalidJwks, JwksCache};
pub use replay::{DpopNonces, ReplayCache};
pub use resource_names::{RequestOrigin, ResourceNames};

use ring::digest;
use serde_json::Value;

use crate::Seconds;
use crate::claims::Claims;
use crate::scope::Scopes;

/// What a validated token grants.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifiedAccess {
    /// The principal: one text for each issuer, subject and client.
    pub principal: Arc<str>,
    /// The scopes of the token.
    pub scopes: Scopes,
    /// The expiration time.
    pub expires_at: Seconds,
    /// The thumbprint of the key that the token is bound to.
    pub jkt: Option<String>,
}

impl VerifiedAccess {
    /// Converts validated claims.
    pub fn by(claims: &Claims) -> Self {
        // `OpenID` providers name the client in `azp`.
        let authorized = || claims.more.get("azp").and_then(Value::as_str);
        let client = claims.client_id.as_deref().or_else(authorized);
        Self {
            principal: principal(&claims.iss, &claims.sub, client),
            scopes: claims.scope.clone(),
            expires_at: claims.exp,
            jkt: claims.cnf.as_ref().and_then(|cnf| cnf.jkt.clone()),
        }
    }
}

/// The digest of a token, as a cache key that does not contain the token.
pub fn digest(token: &str) -> [u8; 32] {
    let mut digest = [0; 32];
    let whole = digest::digest(&digest::SHA256, token.as_bytes());
    digest.iter_mut().zip(whole.as_ref()).for_each(|(to, from)| *to = *from);
    digest
}

/// The principal of an issuer, subject and client.
pub fn principal(issuer: &str, subject: &str, client: Option<&str>) -> Arc<str> {
    // A JSON list is unambiguous, whatever the parts contain.
    serde_json::json!([issuer, subject, client]).to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principals_are_unambiguous() {
        let all = [
            principal("https://a", "b", Some("c")),
            principal("https://a", "b", Some("d")),
            principal("https://a", "b", None),
            principal("https://a", "b", Some("null")),
            principal("https://a", "c", Some("c")),
            principal("https://b", "b", Some("c")),
            principal("https://a\",\"b", "c", None),
            principal("https://a", "b\",\"c", None),
        ];
        let distinct: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }
}
