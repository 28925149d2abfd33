//! A resource server's validation of requests (RFC 6750, 7662, 9068, 9449, 9728). Sans-IO.
//!
//! | module | purpose |
//! |---|---|
//! | `credentials` | the credentials of a request |
//! | `access_error` | why a request has no access, and the challenges |
//! | `resource_names` | resource identifiers and metadata URLs |
//! | `jwks_cache` | an issuer's metadata and keys |
//! | `introspection` | token introspection |
//! | `replay` | DPoP proofs are used once, and soon |

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use ring::digest;
use serde_json::Value;
use url::Url;

use crate::Seconds;
use crate::claims::Claims;
use crate::metadata::ServerMetadata;
use crate::scope::Scopes;
use crate::uri::is_secure;

mod access_error;
mod credentials;
mod introspection;
mod jwks_cache;
mod replay;
mod resource_names;

pub use access_error::{AccessError, ChallengeContext};
pub use credentials::{
    IN_A_FORM, PresentedToken, WEBSOCKET_BEARER, form_names_token, is_form, read_credentials,
};
pub use introspection::Introspection;
pub use jwks_cache::{InvalidJwks, JwksCache};
pub use replay::{DpopNonces, ReplayCache};
pub use resource_names::{RequestOrigin, ResourceNames};

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

/// Reads the metadata of an issuer. It must name this issuer and only confidential URLs.
///
/// # Errors
/// It does not; the text tells what is wrong.
pub fn read_issuer_metadata(issuer: &str, response: &Response<Bytes>) -> Result<ServerMetadata, String> {
    if !response.status().is_success() {
        return Err(format!("no metadata there: status {}", response.status().as_u16()));
    }
    let metadata: ServerMetadata =
        serde_json::from_slice(response.body()).map_err(|_| "the metadata makes no sense")?;
    if metadata.issuer != issuer {
        return Err("the metadata is of another issuer".to_owned());
    }
    for (name, place) in
        [("jwks_uri", &metadata.jwks_uri), ("introspection_endpoint", &metadata.introspection_endpoint)]
    {
        let fine = |place: &String| Url::parse(place).is_ok_and(|url| is_secure(&url));
        if !place.as_ref().is_none_or(fine) {
            return Err(format!("{name} is not a URL with https"));
        }
    }
    Ok(metadata)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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

    #[test]
    fn issuer_metadata_names_its_issuer_and_secure_urls() {
        let read = |status: u16, body: String| {
            let response = Response::builder().status(status).body(Bytes::from(body)).unwrap();
            read_issuer_metadata("https://as", &response)
        };
        let good = json!({ "issuer": "https://as", "jwks_uri": "https://keys/jwks" });
        assert_eq!(read(200, good.to_string()).unwrap().jwks_uri.as_deref(), Some("https://keys/jwks"));
        assert_eq!(read(404, good.to_string()), Err("no metadata there: status 404".to_owned()));
        assert_eq!(read(302, good.to_string()), Err("no metadata there: status 302".to_owned()));
        for bad in ["", "[]", "{}", "<html>", r#"{"issuer":1}"#] {
            assert_eq!(read(200, bad.to_owned()), Err("the metadata makes no sense".to_owned()), "{bad}");
        }
        for other in ["https://as/", "https://AS", "https://evil", ""] {
            assert_eq!(
                read(200, json!({ "issuer": other }).to_string()),
                Err("the metadata is of another issuer".to_owned()),
                "{other}"
            );
        }
        for place in ["http://keys/jwks", "file:///etc/passwd", "jwks", "javascript:1", ""] {
            let body = json!({ "issuer": "https://as", "jwks_uri": place }).to_string();
            assert_eq!(read(200, body), Err("jwks_uri is not a URL with https".to_owned()), "{place}");
        }
        let near = json!({ "issuer": "https://as", "introspection_endpoint": "http://127.0.0.1:1/i" });
        assert!(read(200, near.to_string()).is_ok());
    }
}
