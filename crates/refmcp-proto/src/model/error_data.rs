//! The `data` of the protocol's own errors.

use serde::{Deserialize, Serialize};

use super::{ClientCapabilities, ElicitUrlParams, Extra};

/// Which revisions a server speaks, when it was asked in another.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnsupportedVersionData {
    /// The revisions the server speaks.
    pub supported: Vec<String>,
    /// The revision that was asked for; some older servers leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<String>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Which capabilities a client would have to declare.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MissingCapabilityData {
    /// The capabilities that are missing, as the client would declare them.
    pub required_capabilities: ClientCapabilities,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Which URLs a user has to visit before a request can be done (one older revision only).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UrlElicitationRequiredData {
    /// The visits.
    pub elicitations: Vec<ElicitUrlParams>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}
