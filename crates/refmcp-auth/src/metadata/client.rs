//! What a client tells, when it registers or in a document at its own URL (RFC 7591).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Seconds;
use crate::jose::Jwks;
use crate::secret::Secret;

/// A client, by its own account.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
