//! Client metadata and registrations (RFC 7591).

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Seconds;
use crate::jose::Jwks;
use crate::secret::Secret;

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
