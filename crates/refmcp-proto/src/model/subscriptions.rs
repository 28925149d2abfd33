//! Listening: one long request on which a server tells what changed.

use serde::{Deserialize, Serialize};

use super::{Extra, NotificationMeta, RequestMeta, ResultMeta, ResultType};
use crate::jsonrpc::RequestId;

/// What a client wants to hear about, or what a server agreed to tell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionFilter {
    /// Changes of the list of tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_list_changed: Option<bool>,
    /// Changes of the list of prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts_list_changed: Option<bool>,
    /// Changes of the list of resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources_list_changed: Option<bool>,
    /// Updates of the resources at these addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_subscriptions: Option<Vec<String>>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Parameters of `subscriptions/listen`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListenParams {
    /// What the client wants to hear about.
    pub notifications: SubscriptionFilter,
    /// Metadata, `_meta` on the wire.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<RequestMeta>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Parameters of `notifications/subscriptions/acknowledged`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AcknowledgedParams {
    /// The part of the wish that the server honours.
    pub notifications: SubscriptionFilter,
    /// Metadata, `_meta` on the wire.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<NotificationMeta>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

impl AcknowledgedParams {
    /// Acknowledges the listen request with that id.
    pub fn new(subscription_id: RequestId, notifications: SubscriptionFilter) -> Self {
        let meta = NotificationMeta { subscription_id: Some(subscription_id), extra: Extra::new() };
        Self { notifications, meta: Some(meta), extra: Extra::new() }
    }
}

/// The end of listening; its `_meta` names the listen request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionsListenResult {
    /// What kind of result this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Metadata, `_meta` on the wire.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<ResultMeta>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

impl SubscriptionsListenResult {
    /// Ends the listen request with that id.
    pub fn new(subscription_id: RequestId) -> Self {
        let meta = ResultMeta { subscription_id: Some(subscription_id), ..ResultMeta::default() };
        Self { meta: Some(meta), ..Self::default() }
    }
}
