//! Token endpoint responses (RFC 6749 §5).

use serde::{Deserialize, Serialize};

use crate::scope::Scopes;
use crate::secret::Secret;

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
