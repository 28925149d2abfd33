//! Metadata documents and token endpoint responses: protected resource metadata (RFC 9728), authorization server metadata
//! (RFC 8414, `OpenID` Connect Discovery), client metadata and registrations (RFC 7591), token responses (RFC 6749 §5).

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Seconds;
use crate::client::JWT_BEARER;
use crate::extension::{CLIENT_CREDENTIALS, ENTERPRISE, ID_JAG_PROFILE};
use crate::jose::Jwks;
use crate::scope::Scopes;
use crate::secret::Secret;

/// Protected resource metadata.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceMetadata {
    /// The resource identifier.
    pub resource: String,
    /// The issuers whose tokens are accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authorization_servers: Vec<String>,
    /// The scopes of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes_supported: Option<Vec<String>>,
    /// How bearer tokens are sent: `header`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bearer_methods_supported: Option<Vec<String>>,
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
    /// The documentation page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_documentation: Option<String>,
    /// Accepted algorithms of DPoP proofs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
    /// True if only DPoP-bound tokens are accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_bound_access_tokens_required: Option<bool>,
    /// All other members.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// Authorization server metadata.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerMetadata {
    /// The issuer identifier.
    pub issuer: String,
    /// The authorization endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization_endpoint: Option<String>,
    /// The token endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint: Option<String>,
    /// The registration endpoint (RFC 7591).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration_endpoint: Option<String>,
    /// The revocation endpoint (RFC 7009).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
    /// The introspection endpoint (RFC 7662).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introspection_endpoint: Option<String>,
    /// The URL of the JWK Set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_uri: Option<String>,
    /// The supported scopes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes_supported: Option<Vec<String>>,
    /// Response types of the authorization endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_types_supported: Option<Vec<String>>,
    /// Response modes of the authorization endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_modes_supported: Option<Vec<String>>,
    /// The supported grant types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_types_supported: Option<Vec<String>>,
    /// Subject types; required of `OpenID` providers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject_types_supported: Option<Vec<String>>,
    /// Algorithms of ID tokens; required of `OpenID` providers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_token_signing_alg_values_supported: Option<Vec<String>>,
    /// Client authentication methods of the token endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// Algorithms of client assertions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint_auth_signing_alg_values_supported: Option<Vec<String>>,
    /// PKCE methods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_challenge_methods_supported: Option<Vec<String>>,
    /// True if a client id may be the URL of a client ID metadata document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id_metadata_document_supported: Option<bool>,
    /// True if authorization responses carry `iss` (RFC 9207).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization_response_iss_parameter_supported: Option<bool>,
    /// Accepted algorithms of DPoP proofs (RFC 9449).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
    /// All other members.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl ServerMetadata {
    /// True if a list has a value. An absent list has none.
    pub fn lists(list: Option<&Vec<String>>, value: &str) -> bool {
        list.is_some_and(|values| values.iter().any(|known| known == value))
    }

    /// The identifiers of the MCP extensions whose grants this authorization server supports.
    pub fn extensions(&self) -> Vec<&'static str> {
        let grants = self.grant_types_supported.as_ref();
        let profiles = self.more.get("authorization_grant_profiles_supported").and_then(Value::as_array);
        let enterprise = profiles.is_some_and(|profiles| profiles.iter().any(|it| it == ID_JAG_PROFILE));
        let known = [
            (CLIENT_CREDENTIALS, Self::lists(grants, "client_credentials")),
            (ENTERPRISE, enterprise && Self::lists(grants, JWT_BEARER)),
        ];
        known.into_iter().filter_map(|(id, has)| has.then_some(id)).collect()
    }
}

/// Client metadata: sent at registration, or published as a client ID metadata document.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientMetadata {
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_name: Option<String>,
    /// The home page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_uri: Option<String>,
    /// Allowed redirect URIs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redirect_uris: Vec<String>,
    /// `native` or `web`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application_type: Option<String>,
    /// The grant types that the client uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_types: Option<Vec<String>>,
    /// The response types that the client uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_types: Option<Vec<String>>,
    /// The client authentication method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint_auth_method: Option<String>,
    /// The scopes that the client may request, separated by spaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The public keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks: Option<Jwks>,
    /// The URL of the public keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_uri: Option<String>,
    /// All other members.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl fmt::Debug for ClientMetadata {
    /// Prints only the names of other members: a value may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientMetadata")
            .field("client_name", &self.client_name)
            .field("client_uri", &self.client_uri)
            .field("redirect_uris", &self.redirect_uris)
            .field("application_type", &self.application_type)
            .field("grant_types", &self.grant_types)
            .field("response_types", &self.response_types)
            .field("token_endpoint_auth_method", &self.token_endpoint_auth_method)
            .field("scope", &self.scope)
            .field("jwks", &self.jwks)
            .field("jwks_uri", &self.jwks_uri)
            .field("more", &self.more.keys().collect::<Vec<_>>())
            .finish()
    }
}

/// A registered client: the response of a registration endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientRegistration {
    /// The client id.
    pub client_id: String,
    /// The client secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Secret>,
    /// When the secret expires; 0 for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret_expires_at: Option<Seconds>,
    /// When the client id was issued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id_issued_at: Option<Seconds>,
    /// The registered metadata.
    #[serde(flatten)]
    pub metadata: ClientMetadata,
}

/// A successful token response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenResponse {
    /// The access token.
    pub access_token: Secret,
    /// The token type: `Bearer`, `DPoP`.
    pub token_type: String,
    /// Lifetime in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
    /// The refresh token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<Secret>,
    /// The granted scopes, if they differ from the requested ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scopes>,
    /// The type of the issued token in a token exchange (RFC 8693).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued_token_type: Option<String>,
}

/// An OAuth error response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{error}{}", .error_description.as_ref().map(|text| format!(": {text}")).unwrap_or_default())]
pub struct OAuthError {
    /// The error code, such as `invalid_grant`.
    pub error: String,
    /// A description for developers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_description: Option<String>,
}

impl OAuthError {
    /// An error with a description.
    pub fn new(error: impl Into<String>, description: impl Into<String>) -> Self {
        Self { error: error.into(), error_description: Some(description.into()) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn extensions_follow_the_supported_grants() {
        let extensions = |mut document: Value| {
            document["issuer"] = json!("https://as");
            serde_json::from_value::<ServerMetadata>(document).unwrap().extensions()
        };
        let both = json!(["client_credentials", JWT_BEARER]);
        let profiles = json!([ID_JAG_PROFILE]);
        assert_eq!(extensions(json!({})), [""; 0], "without a list, only codes");
        assert_eq!(extensions(json!({ "grant_types_supported": both })), [CLIENT_CREDENTIALS]);
        let all =
            json!({ "grant_types_supported": both, "authorization_grant_profiles_supported": profiles });
        assert_eq!(extensions(all), [CLIENT_CREDENTIALS, ENTERPRISE]);
        let neither = json!({
            "grant_types_supported": ["authorization_code"], "authorization_grant_profiles_supported": profiles,
        });
        assert_eq!(extensions(neither), [""; 0]);
        let strange = json!({ "grant_types_supported": both, "authorization_grant_profiles_supported": 7 });
        assert_eq!(extensions(strange), [CLIENT_CREDENTIALS]);
    }

    #[test]
    fn unknown_client_metadata_is_kept_and_not_printed() {
        let text = json!({ "client_id": "c", "client_secret": "hush", "client_name": "we", "registration_access_token": "hush" });
        let registered: ClientRegistration = serde_json::from_value(text.clone()).unwrap();
        assert_eq!(serde_json::to_value(&registered).unwrap(), text);
        for shown in [format!("{registered:?}"), format!("{:#?}", registered.metadata)] {
            assert!(shown.contains("we") && shown.contains("registration_access_token"), "{shown}");
            assert!(!shown.contains("hush"), "{shown}");
        }
    }
}
