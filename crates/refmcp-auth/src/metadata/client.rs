//! What a client tells, when it registers or in a document at its own URL (RFC 7591).

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Seconds;
use crate::jose::Jwks;
use crate::secret::Secret;

/// A client, by its own account.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientMetadata {
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_name: Option<String>,
    /// Its home, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_uri: Option<String>,
    /// Where people may be sent back to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redirect_uris: Vec<String>,
    /// `native` or `web`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application_type: Option<String>,
    /// What it wants tokens for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_types: Option<Vec<String>>,
    /// The kinds of responses it wants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_types: Option<Vec<String>>,
    /// How it proves who it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint_auth_method: Option<String>,
    /// The scopes it may ask for, with spaces between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Its public keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks: Option<Jwks>,
    /// Where its public keys are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_uri: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl fmt::Debug for ClientMetadata {
    /// Of everything else, only the names: what it is is unknown, and some of it may be secret.
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

/// A client that an authorization server knows now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Registered {
    /// Its id there.
    pub client_id: String,
    /// Its secret, if it got one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Secret>,
    /// When the secret ends; 0 for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret_expires_at: Option<Seconds>,
    /// When it was registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id_issued_at: Option<Seconds>,
    /// What was registered.
    #[serde(flatten)]
    pub metadata: ClientMetadata,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_unknown_is_kept_and_not_shown() {
        let text = json!({ "client_id": "c", "client_secret": "hush", "client_name": "we", "registration_access_token": "hush" });
        let registered: Registered = serde_json::from_value(text.clone()).unwrap();
        assert_eq!(serde_json::to_value(&registered).unwrap(), text);
        for shown in [format!("{registered:?}"), format!("{:#?}", registered.metadata)] {
            assert!(shown.contains("we") && shown.contains("registration_access_token"), "{shown}");
            assert!(!shown.contains("hush"), "{shown}");
        }
    }
}
