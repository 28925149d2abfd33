//! What a token endpoint answers.

use serde::{Deserialize, Serialize};

use crate::scope::Scopes;
use crate::secret::Secret;

/// Tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenResponse {
    /// What opens the resource.
    pub access_token: Secret,
    /// How it is presented: `Bearer`, `DPoP`.
    pub token_type: String,
    /// Seconds for which it is good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
    /// What brings the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<Secret>,
    /// What it is good for, if that is not what was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scopes>,
    /// Which kind of token it is, when tokens were exchanged (RFC 8693).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued_token_type: Option<String>,
}

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{error}{}", .error_description.as_ref().map(|text| format!(": {text}")).unwrap_or_default())]
pub struct OAuthError {
    /// A word for it, such as `invalid_grant`.
    pub error: String,
    /// Words for a developer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_description: Option<String>,
}

impl OAuthError {
    /// A refusal with an explanation.
    pub fn new(error: impl Into<String>, description: impl Into<String>) -> Self {
        Self { error: error.into(), error_description: Some(description.into()) }
    }
}
