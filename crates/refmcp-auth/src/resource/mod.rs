//! The steps of a resource server: whom it lets in, and what it says to the others (RFC 6750, 7662, 9068, 9449, 9728).
//!
//! | module | what it is |
//! |---|---|
//! | `credentials` | what a request's head presents |
//! | `denied` | why somebody is not let in, and the challenge that says so |
//! | `names` | what the resource is called, and where it tells about itself |
//! | `discovery`, `keys` | finding an issuer's keys, and keeping them |
//! | `introspection` | asking the issuer about a token |
//! | `replays`, `nonces` | proofs of possession are good once, and soon |

mod credentials;
mod denied;
mod discovery;
mod introspection;
mod keys;
mod names;
mod nonces;
mod replays;

use std::sync::Arc;

pub use credentials::{IN_A_FORM, Presented, Scheme, WEBSOCKET_BEARER, form_names_token, is_form, presented};
pub use denied::{Denied, Says};
pub use discovery::{Undiscovered, discovered};
pub use introspection::Introspection;
pub use keys::{BadKeys, Keys};
pub use names::Names;
pub use nonces::Nonces;
pub use replays::Replays;

use ring::digest;
use serde_json::Value;

use crate::Seconds;
use crate::claims::Claims;
use crate::scope::Scopes;

/// What a good token grants.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Granted {
    /// Who it is: one text for each issuer, subject and client.
    pub principal: Arc<str>,
    /// What the token is good for.
    pub scopes: Scopes,
    /// When it ends.
    pub expires_at: Seconds,
    /// The fingerprint of the key without which it is good for nothing.
    pub jkt: Option<String>,
}

impl Granted {
    /// What claims that were checked grant.
    pub fn by(claims: &Claims) -> Self {
        // Where there is no client's name, the one that OpenID has for it may be there.
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

/// The digest of a token, by which it can be remembered without being kept.
pub fn digest(token: &str) -> [u8; 32] {
    let mut digest = [0; 32];
    let whole = digest::digest(&digest::SHA256, token.as_bytes());
    digest.iter_mut().zip(whole.as_ref()).for_each(|(to, from)| *to = *from);
    digest
}

/// One text for an issuer, a subject there and a client: different ones have different texts.
pub fn principal(issuer: &str, subject: &str, client: Option<&str>) -> Arc<str> {
    // A list in JSON says where each of them ends, and whether there is a client at all.
    serde_json::json!([issuer, subject, client]).to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principals_are_told_apart() {
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
