//! Subscriptions at the server behind the gateway: what sessions in front want to hear of.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::time::Duration;

use refmcp_client::{CallError, Client, Error};
use refmcp_proto::model::SubscriptionFilter;
use refmcp_proto::revision::Lifecycle;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::upstream::Upstream;

/// The pause before a `subscriptions/listen` that the server has ended is sent again.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);
/// How long calls wait for a subscription that was requested before them.
pub(super) const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(2);

impl Upstream {
    /// Subscribes to the changes that a session in front wants, and to no others for it. Returns once the server has
    /// acknowledged it, or after [`ACKNOWLEDGED_WITHIN`].
    pub(super) async fn want(&self, session: u64, filter: SubscriptionFilter) {
        let Some(client) = self.client() else { return };
        if client.server().rules().lifecycle == Lifecycle::PerRequest {
            return self.listen(session, client.clone(), filter).await;
        }
        // A server with sessions tells of changed lists by itself.
        match filter.resource_subscriptions {
            Some(uris) if !uris.is_empty() => drop(self.wanted.lock().insert(session, uris)),
            _ => drop(self.wanted.lock().remove(&session)),
        }
        let mut subscribed = self.subscribed.lock().await;
        let wanted: BTreeSet<String> = self.wanted.lock().values().flatten().cloned().collect();
        let (more, fewer): (Vec<_>, Vec<_>) =
            wanted.symmetric_difference(&subscribed).cloned().partition(|uri| wanted.contains(uri));
        for uri in more {
            match client.subscribe(&uri).await {
                Ok(_) => drop(subscribed.insert(uri)),
                Err(fault) => tracing::warn!("the server refuses a subscription: {fault}"),
            }
        }
        for uri in fewer {
            if let Err(fault) = client.unsubscribe(&uri).await {
                tracing::debug!("the server refuses to end a subscription: {fault}");
            }
            subscribed.remove(&uri);
        }
    }

    async fn listen(&self, session: u64, client: Client, filter: SubscriptionFilter) {
        let acknowledged = self.acknowledged.notified();
        let mut acknowledged = std::pin::pin!(acknowledged);
        acknowledged.as_mut().enable();
        {
            let mut streams = self.streams.lock();
            let before = streams.remove(&session);
            let listed =
                [filter.tools_list_changed, filter.prompts_list_changed, filter.resources_list_changed];
            if !listed.contains(&Some(true))
                && filter.resource_subscriptions.iter().flatten().next().is_none()
            {
                return;
            }
            let task = tokio::spawn(listen_on(client, filter, before));
            streams.insert(session, AbortOnDropHandle::new(task));
        }
        if timeout(ACKNOWLEDGED_WITHIN, acknowledged).await.is_err() {
            tracing::debug!("the server has not acknowledged a subscription in time");
        }
    }
}

/// Keeps a `subscriptions/listen` open; the stream before it ends once this one is requested, so that no change falls
/// between them.
async fn listen_on(client: Client, filter: SubscriptionFilter, before: Option<AbortOnDropHandle<()>>) {
    let mut listening: Pin<Box<_>> = client.listen(&filter).into_future();
    tokio::select! { biased; _ = &mut listening => {}, () = std::future::ready(()) => {} }
    drop(before);
    loop {
        match listening.await {
            Err(Error::Call(
                refused @ (CallError::Rpc(_) | CallError::Refused(_) | CallError::NotOpen(_)),
            )) => {
                return tracing::warn!("the server tells of no changes: {refused}");
            }
            Err(fault) => tracing::debug!("a subscription is requested again: {fault}"),
            Ok(_) => {}
        }
        sleep(LISTEN_AGAIN).await;
        listening = client.listen(&filter).into_future();
    }
}
