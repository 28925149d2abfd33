//! Notifications of changes: to sessions by their subscriptions, and on `subscriptions/listen` streams by their filters.

use super::{ReplyTo, ServerEngine, read_params};
use crate::engine::{CallFailure, Change, ExchangeId, MessageKind, MessageTarget, Output, TaskListener};
use crate::jsonrpc::{Request, RequestId, RpcError, encode};
use crate::model::{
    AcknowledgedParams, CancelledParams, ListenParams, NotificationMeta, NotificationParams,
    ResourceUpdatedParams, SubscriptionFilter, SubscriptionsListenResult, TaskNotificationParams,
};
use crate::peer::Peer;
use crate::revision::{Method, NotificationMethod, Rules, downgrade};
use crate::rule;

/// A `subscriptions/listen` request; it stays open until one side ends it.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) exchange: ExchangeId,
    pub(super) id: RequestId,
    rules: &'static Rules,
    filter: SubscriptionFilter,
}

impl Listener {
    fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.filter.tools_list_changed == Some(true),
            Change::Prompts => self.filter.prompts_list_changed == Some(true),
            Change::Resources => self.filter.resources_list_changed == Some(true),
            Change::Resource(uri) => {
                self.filter.resource_subscriptions.iter().flatten().any(|wanted| covers(wanted, uri))
            }
        }
    }
}

impl ServerEngine {
    /// Notifies the session of a change that concerns it alone, if it has subscribed. Listeners belong to no session.
    pub fn session_changed(&mut self, change: &Change) {
        if self.is_ready() && self.session_wants(change) {
            self.send_change(MessageTarget::Session, change, None);
        }
    }

    /// Notifies the session and all listeners that have subscribed to a change.
    pub fn changed(&mut self, change: &Change) {
        self.session_changed(change);
        let wanting: Vec<_> = self
            .listeners
            .iter()
            .filter(|listener| listener.wants(change))
            .map(|listener| (listener.exchange, listener.id.clone()))
            .collect();
        for (exchange, id) in wanting {
            self.send_change(MessageTarget::Exchange(exchange), change, Some(id));
        }
    }

    /// The resources whose changes the client has subscribed to, in the session or on a `subscriptions/listen` stream.
    pub fn watched_resources(&self) -> impl Iterator<Item = &str> {
        let filters = self.listeners.iter().flat_map(|listener| &listener.filter.resource_subscriptions);
        self.subscriptions.iter().chain(filters.flatten()).map(String::as_str)
    }

    fn session_wants(&self, change: &Change) -> bool {
        let capabilities = &self.config.capabilities;
        let announced = match change {
            Change::Tools => capabilities.tools.as_ref().and_then(|tools| tools.list_changed),
            Change::Prompts => capabilities.prompts.as_ref().and_then(|prompts| prompts.list_changed),
            Change::Resources => capabilities.resources.as_ref().and_then(|resources| resources.list_changed),
            Change::Resource(uri) => Some(self.subscriptions.iter().any(|wanted| covers(wanted, uri))),
        };
        announced == Some(true)
    }

    fn send_change(&mut self, to: MessageTarget, change: &Change, subscription: Option<RequestId>) {
        let meta =
            subscription.map(|id| NotificationMeta { subscription_id: Some(id), ..Default::default() });
        let method = match change {
            Change::Tools => NotificationMethod::ToolsListChanged,
            Change::Prompts => NotificationMethod::PromptsListChanged,
            Change::Resources => NotificationMethod::ResourcesListChanged,
            Change::Resource(_) => NotificationMethod::ResourceUpdated,
        };
        self.send(to, MessageKind::Notification, |json| match change {
            Change::Resource(uri) => {
                let params = ResourceUpdatedParams { meta, ..ResourceUpdatedParams::new(uri) };
                encode::notification(json, method.name(), Some(&params))
            }
            _ => {
                let params = meta.map(|meta| NotificationParams { meta: Some(meta), ..Default::default() });
                encode::notification(json, method.name(), params.as_ref())
            }
        });
    }

    pub(super) fn listen(
        &mut self,
        to: &ReplyTo<'_>,
        request: &Request<'_>,
        peer: &Peer,
    ) -> Result<(), RpcError> {
        self.check_in_flight(0)?;
        if self.listeners.len() >= self.config.max_subscriptions {
            let most = self.config.max_subscriptions;
            return Err(RpcError::invalid_request(format!("at most {most} subscriptions are kept")));
        }
        let params: ListenParams = read_params(request.params.text)
            .map_err(|error| self.refuse(&rule::SUB_01, error, "send params.notifications with a filter"))?;
        let filter = self.accepted_filter(params.notifications, peer)?;
        let acknowledged = AcknowledgedParams::new(to.id.clone(), filter.clone());
        let ids = filter.task_ids.clone().unwrap_or_default();
        self.listeners.push(Listener {
            exchange: to.exchange,
            id: to.id.clone(),
            rules: peer.rules(),
            filter,
        });
        self.report_listening();
        self.send(MessageTarget::Exchange(to.exchange), MessageKind::Notification, |json| {
            let method = NotificationMethod::SubscriptionsAcknowledged.name();
            encode::notification(json, method, Some(&acknowledged))
        });
        if !ids.is_empty() {
            let listener = Box::new(TaskListener { exchange: to.exchange, id: to.id.clone(), ids });
            self.outputs.push_back(Output::ListensForTasks { listener, context: self.context.clone() });
        }
        Ok(())
    }

    /// Whether a stream that names tasks is still open.
    pub fn is_listening(&self, listener: &TaskListener) -> bool {
        let is_it = |open: &Listener| open.exchange == listener.exchange && open.id == listener.id;
        self.listeners.iter().any(is_it)
    }

    /// Tells a stream what has become of a task, if it is still open.
    pub fn task_changed(&mut self, listener: &TaskListener, mut params: TaskNotificationParams) {
        if self.is_listening(listener) {
            let subscription_id = Some(listener.id.clone());
            params.meta = Some(NotificationMeta { subscription_id, ..Default::default() });
            self.send(MessageTarget::Exchange(listener.exchange), MessageKind::Notification, |json| {
                encode::notification(json, NotificationMethod::Task.name(), Some(&params))
            });
        }
    }

    pub(super) fn remove_listeners(&mut self, which: impl Fn(&Listener) -> bool) -> Vec<Listener> {
        let removed: Vec<Listener> = self.listeners.extract_if(.., |listener| which(listener)).collect();
        if !removed.is_empty() {
            self.report_listening();
        }
        removed
    }

    /// Reports what is listened for, to an engine's user that has to ask another server for it.
    fn report_listening(&mut self) {
        if !self.config.forwards {
            return;
        }
        let mut all = SubscriptionFilter::default();
        for Listener { filter, .. } in &self.listeners {
            all.tools_list_changed = all.tools_list_changed.max(filter.tools_list_changed);
            all.prompts_list_changed = all.prompts_list_changed.max(filter.prompts_list_changed);
            all.resources_list_changed = all.resources_list_changed.max(filter.resources_list_changed);
            let uris = filter.resource_subscriptions.iter().flatten().cloned();
            all.resource_subscriptions.get_or_insert_default().extend(uris);
        }
        all.resource_subscriptions.iter_mut().for_each(|uris| {
            uris.sort_unstable();
            uris.dedup();
        });
        self.outputs.push_back(Output::Listening(Box::new(all)));
    }

    /// The part of a filter that this server supports.
    fn accepted_filter(
        &self,
        requested: SubscriptionFilter,
        peer: &Peer,
    ) -> Result<SubscriptionFilter, RpcError> {
        let capabilities = &self.config.capabilities;
        let most = self.config.max_subscriptions;
        let count = |filter: &SubscriptionFilter| {
            let named = [&filter.resource_subscriptions, &filter.task_ids];
            named.into_iter().flatten().map(Vec::len).sum::<usize>()
        };
        let held: usize = self.listeners.iter().map(|listener| count(&listener.filter)).sum();
        if held + count(&requested) > most {
            return Err(RpcError::invalid_params(format!(
                "at most {most} resources and tasks can be listened to"
            )));
        }
        let filters = self.listeners.iter().map(|listener| &listener.filter).chain([&requested]);
        let named = filters.flat_map(|filter| [&filter.resource_subscriptions, &filter.task_ids]);
        let bytes = named.flatten().flatten().map(String::len).sum();
        self.check_uri_bytes("params.notifications.resourceSubscriptions and taskIds", bytes)?;
        let tasks = Method::GetTask.is_offered(capabilities);
        if tasks && requested.task_ids.is_some() && !peer.capabilities.takes_tasks() {
            let refused = downgrade::failure(peer.rules(), &Method::Listen, CallFailure::undeclared_tasks());
            return Err(refused.err().unwrap_or_else(|| RpcError::invalid_params("taskIds")));
        }
        let tools = capabilities.tools.as_ref().and_then(|tools| tools.list_changed);
        let prompts = capabilities.prompts.as_ref().and_then(|prompts| prompts.list_changed);
        let resources = capabilities.resources.as_ref().and_then(|resources| resources.list_changed);
        let updates = Method::Subscribe.is_offered(capabilities);
        let both =
            |requested: Option<bool>, offered: Option<bool>| requested.filter(|_| offered == Some(true));
        Ok(SubscriptionFilter {
            tools_list_changed: both(requested.tools_list_changed, tools),
            prompts_list_changed: both(requested.prompts_list_changed, prompts),
            resources_list_changed: both(requested.resources_list_changed, resources),
            resource_subscriptions: requested.resource_subscriptions.filter(|_| updates),
            task_ids: requested.task_ids.filter(|_| tasks),
            ..SubscriptionFilter::default()
        })
    }

    /// Ends every `subscriptions/listen` stream with its result; calls in flight go on.
    pub fn wind_down(&mut self) {
        for listener in self.remove_listeners(|_| true) {
            if self.config.policy.announce_end {
                let params = CancelledParams::new(listener.id.clone());
                self.send(MessageTarget::Exchange(listener.exchange), MessageKind::Notification, |json| {
                    encode::notification(json, NotificationMethod::Cancelled.name(), Some(&params))
                });
            }
            let result = SubscriptionsListenResult::new(listener.id.clone());
            let to = ReplyTo { exchange: listener.exchange, id: &listener.id, batch: None };
            self.respond(&to, listener.rules, &mut result.into());
        }
    }

    /// How many `subscriptions/listen` streams are open.
    pub fn listening(&self) -> usize {
        self.listeners.len()
    }
}

/// Whether a subscription to one resource covers another: itself, and those below it.
fn covers(wanted: &str, uri: &str) -> bool {
    uri.strip_prefix(wanted)
        .is_some_and(|below| below.is_empty() || wanted.ends_with('/') || below.starts_with(['/', '#', '?']))
}

#[cfg(test)]
mod tests {
    use super::covers;

    #[test]
    fn a_subscription_covers_resources_below_it() {
        assert!(covers("file:///a", "file:///a"));
        assert!(covers("file:///a", "file:///a/b.txt"));
        assert!(covers("file:///a/", "file:///a/b.txt"));
        assert!(!covers("file:///a", "file:///ab"));
        assert!(!covers("file:///a/b", "file:///a"));
    }
}
