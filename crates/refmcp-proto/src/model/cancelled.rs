//! Calling off a request.

use serde::{Deserialize, Serialize};

use super::{Extra, NotificationMeta};
use crate::jsonrpc::RequestId;

/// Parameters of `notifications/cancelled`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelledParams {
    /// The request; one older revision lets it be absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Metadata, `_meta` on the wire.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<NotificationMeta>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

impl CancelledParams {
    /// Calls off a request.
    pub fn new(request_id: impl Into<RequestId>) -> Self {
        Self { request_id: Some(request_id.into()), ..Self::default() }
    }

    setters! {
        /// Sets why.
        reason: String,
    }
}
