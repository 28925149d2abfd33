//! Listening: one long request on which a server tells what changed.

use crate::jsonrpc::RequestId;
use crate::model::{Extra, NotificationMeta, RequestMeta, ResultMeta};

json_object! {
    /// What a client wants to hear about, or what a server agreed to tell.
    pub struct SubscriptionFilter {
        /// Changes of the list of tools.
        tools_list_changed?: bool,
        /// Changes of the list of prompts.
        prompts_list_changed?: bool,
        /// Changes of the list of resources.
        resources_list_changed?: bool,
        /// Updates of the resources at these addresses.
        resource_subscriptions?: Vec<String>,
        /// Changes of these tasks.
        task_ids?: Vec<String>,
    }

    /// Parameters of `subscriptions/listen`.
    pub struct ListenParams {
        /// What the client wants to hear about.
        notifications: SubscriptionFilter,
        _meta: RequestMeta,
    }

    /// Parameters of `notifications/subscriptions/acknowledged`.
    pub struct AcknowledgedParams {
        /// The part of the wish that the server honours.
        notifications: SubscriptionFilter,
        _meta: NotificationMeta,
    }
}

impl AcknowledgedParams {
    /// Acknowledges the listen request with that id.
    pub fn new(subscription_id: RequestId, notifications: SubscriptionFilter) -> Self {
        let meta = NotificationMeta { subscription_id: Some(subscription_id), extra: Extra::new() };
        Self { notifications, meta: Some(meta), extra: Extra::new() }
    }
}

json_object! {
    /// The end of listening; its `_meta` names the listen request.
    pub struct SubscriptionsListenResult {
        ..result
    }
}

impl SubscriptionsListenResult {
    /// Ends the listen request with that id.
    pub fn new(subscription_id: RequestId) -> Self {
        let meta = ResultMeta { subscription_id: Some(subscription_id), ..ResultMeta::default() };
        Self { meta: Some(meta), ..Self::default() }
    }
}
