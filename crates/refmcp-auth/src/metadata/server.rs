//! Authorization server metadata (RFC 8414, `OpenID` Connect Discovery).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::client::JWT_BEARER;
use crate::extension::{CLIENT_CREDENTIALS, ENTERPRISE, ID_JAG_PROFILE};

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
}
