//! Progress of a running request.

use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::number::number_or_zero;
use super::{Extra, NotificationMeta};
use crate::jsonrpc::ProgressToken;

/// Parameters of `notifications/progress`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressParams {
    /// The token the requestor chose.
    pub progress_token: ProgressToken,
    /// How far it got; grows with every notification.
    pub progress: Number,
    /// How far it has to get, when that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<Number>,
    /// What it is doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Metadata, `_meta` on the wire.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<NotificationMeta>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ProgressParams {
    /// Progress so far; whole numbers are written without a fraction, and NaN as 0.
    pub fn new(progress_token: impl Into<ProgressToken>, progress: f64) -> Self {
        Self {
            progress_token: progress_token.into(),
            progress: number_or_zero(progress),
            total: None,
            message: None,
            meta: None,
            extra: Extra::new(),
        }
    }

    setters! {
        /// Sets what it is doing.
        message: String,
    }

    /// Sets how far it has to get; NaN and infinities leave it open.
    #[must_use]
    pub fn total(mut self, total: f64) -> Self {
        self.total = super::plain_number(total);
        self
    }
}
