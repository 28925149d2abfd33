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

json_struct! {
    /// Protected resource metadata.
    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    pub struct ResourceMetadata {
        /// The resource identifier.
        resource: String,
        /// The issuers whose tokens are accepted.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        authorization_servers: Vec<String>,
        /// The scopes of the resource.
        scopes_supported?: Vec<String>,
        /// How bearer tokens are sent: `header`.
        bearer_methods_supported?: Vec<String>,
        /// The display name.
        resource_name?: String,
        /// The documentation page.
        resource_documentation?: String,
        /// Accepted algorithms of DPoP proofs.
        dpop_signing_alg_values_supported?: Vec<String>,
        /// True if only DPoP-bound tokens are accepted.
        dpop_bound_access_tokens_required?: bool,
        /// All other members.
        #[serde(flatten)]
        more: Map<String, Value>,
    }
}

json_struct! {
    /// Authorization server metadata.
    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    pub struct ServerMetadata {
        /// The issuer identifier.
        issuer: String,
        /// The authorization endpoint.
        authorization_endpoint?: String,
        /// The token endpoint.
        token_endpoint?: String,
        /// The registration endpoint (RFC 7591).
        registration_endpoint?: String,
        /// The revocation endpoint (RFC 7009).
        revocation_endpoint?: String,
        /// The introspection endpoint (RFC 7662).
        introspection_endpoint?: String,
        /// The URL of the JWK Set.
        jwks_uri?: String,
        /// The supported scopes.
        scopes_supported?: Vec<String>,
        /// Response types of the authorization endpoint.
        response_types_supported?: Vec<String>,
        /// Response modes of the authorization endpoint.
        response_modes_supported?: Vec<String>,
        /// The supported grant types.
        grant_types_supported?: Vec<String>,
        /// Subject types; required of `OpenID` providers.
        subject_types_supported?: Vec<String>,
        /// Algorithms of ID tokens; required of `OpenID` providers.
        id_token_signing_alg_values_supported?: Vec<String>,
        /// Client authentication methods of the token endpoint.
        token_endpoint_auth_methods_supported?: Vec<String>,
        /// Algorithms of client assertions.
        token_endpoint_auth_signing_alg_values_supported?: Vec<String>,
        /// PKCE methods.
        code_challenge_methods_supported?: Vec<String>,
        /// True if a client id may be the URL of a client ID metadata document.
        client_id_metadata_document_supported?: bool,
        /// True if authorization responses carry `iss` (RFC 9207).
        authorization_response_iss_parameter_supported?: bool,
        /// Accepted algorithms of DPoP proofs (RFC 9449).
        dpop_signing_alg_values_supported?: Vec<String>,
        /// All other members.
        #[serde(flatten)]
        more: Map<String, Value>,
    }
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

json_struct! {
    /// Client metadata: sent at registration, or published as a client ID metadata document.
    #[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
    pub struct ClientMetadata {
        /// The display name.
        client_name?: String,
        /// The home page.
        client_uri?: String,
        /// Allowed redirect URIs.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        redirect_uris: Vec<String>,
        /// `native` or `web`.
        application_type?: String,
        /// The grant types that the client uses.
        grant_types?: Vec<String>,
        /// The response types that the client uses.
        response_types?: Vec<String>,
        /// The client authentication method.
        token_endpoint_auth_method?: String,
        /// The scopes that the client may request, separated by spaces.
        scope?: String,
        /// The public keys.
        jwks?: Jwks,
        /// The URL of the public keys.
        jwks_uri?: String,
        /// All other members.
        #[serde(flatten)]
        more: Map<String, Value>,
    }
}

impl fmt::Debug for ClientMetadata {
    /// Prints only the names of other members: a value may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientMetadata")
            .field("client_name", &self.client_name)
            .field("redirect_uris", &self.redirect_uris)
            .field("more", &self.more.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

json_struct! {
    /// A registered client: the response of a registration endpoint.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct ClientRegistration {
        /// The client id.
        client_id: String,
        /// The client secret.
        client_secret?: Secret,
        /// When the secret expires; 0 for never.
        client_secret_expires_at?: Seconds,
        /// When the client id was issued.
        client_id_issued_at?: Seconds,
        /// The registered metadata.
        #[serde(flatten)]
        metadata: ClientMetadata,
    }
}

json_struct! {
    /// A successful token response.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct TokenResponse {
        /// The access token.
        access_token: Secret,
        /// The token type: `Bearer`, `DPoP`.
        token_type: String,
        /// Lifetime in seconds.
        expires_in?: u64,
        /// The refresh token.
        refresh_token?: Secret,
        /// The granted scopes, if they differ from the requested ones.
        scope?: Scopes,
        /// The type of the issued token in a token exchange (RFC 8693).
        issued_token_type?: String,
    }
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
