//! What an authorization server tells (RFC 8414, `OpenID` Connect Discovery).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::client::JWT_BEARER;
use crate::extension::{CLIENT_CREDENTIALS, ENTERPRISE, ID_JAG_PROFILE};

/// Where an authorization server does what, and what it can.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerMetadata {
    /// The server's own name.
    pub issuer: String,
    /// Where people are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization_endpoint: Option<String>,
    /// Where tokens are had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint: Option<String>,
    /// Where clients make themselves known (RFC 7591).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration_endpoint: Option<String>,
    /// Where tokens are given back (RFC 7009).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
    /// Where resources ask about tokens (RFC 7662).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introspection_endpoint: Option<String>,
    /// Where its public keys are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_uri: Option<String>,
    /// The scopes it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes_supported: Option<Vec<String>>,
    /// The kinds of responses of its authorization endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_types_supported: Option<Vec<String>>,
    /// The ways in which its responses come back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_modes_supported: Option<Vec<String>>,
    /// What tokens are given for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_types_supported: Option<Vec<String>>,
    /// How subjects are named; `OpenID` providers have to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject_types_supported: Option<Vec<String>>,
    /// How identity tokens are signed; `OpenID` providers have to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_token_signing_alg_values_supported: Option<Vec<String>>,
    /// How clients prove who they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// How they may sign what proves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint_auth_signing_alg_values_supported: Option<Vec<String>>,
    /// The kinds of PKCE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_challenge_methods_supported: Option<Vec<String>>,
    /// Whether a client may be named by the URL of a document about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id_metadata_document_supported: Option<bool>,
    /// Whether responses say who gives them (RFC 9207).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization_response_iss_parameter_supported: Option<bool>,
    /// How proofs of possession may be signed (RFC 9449).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
    /// Everything else.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl ServerMetadata {
    /// Whether a list names a value; a list that is not there names nothing.
    pub fn lists(list: Option<&Vec<String>>, value: &str) -> bool {
        list.is_some_and(|values| values.iter().any(|known| known == value))
    }

    /// The extensions of MCP by which clients can get a token here, by their identifiers.
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
    fn extensions_are_those_whose_grants_are_given() {
        let extensions = |mut document: Value| {
            document["issuer"] = json!("https://as");
            serde_json::from_value::<ServerMetadata>(document).unwrap().extensions()
        };
        let both = json!(["client_credentials", JWT_BEARER]);
        let profiles = json!([ID_JAG_PROFILE]);
        assert_eq!(extensions(json!({})), [""; 0], "whoever says nothing gives codes");
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
