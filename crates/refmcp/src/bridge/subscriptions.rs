//! What clients want to hear of the server behind the gateway: subscriptions and the level of log messages. Both are asked
//! for again once the server was connected again or has lost its session.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::time::Duration;

use parking_lot::Mutex;
use refmcp_client::{CallError, Client, Error};
use refmcp_proto::model::{LogLevel, ServerCapabilities, SubscriptionFilter};
use refmcp_proto::revision::Lifecycle;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::upstream::Upstream;

/// The pause before a `subscriptions/listen` that the server has ended is sent again.
const LISTEN_RETRY_DELAY: Duration = Duration::from_secs(1);
/// How long calls wait for a subscription that was requested before them.
pub(super) const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(2);

/// What the clients of one connection want to hear of.
#[derive(Default)]
pub(super) struct Wants {
    /// By the session in front; a session that wants nothing has no entry.
    filters: Mutex<BTreeMap<u64, SubscriptionFilter>>,
    /// The level that the server was last asked for, or should be.
    pub(super) level: Mutex<Option<LogLevel>>,
}

impl Wants {
    /// Replaces what a session wants.
    pub(super) fn set(&self, session: u64, filter: &SubscriptionFilter) {
        self.change(session, |wanted| *wanted = filter.clone());
    }

    /// One resource, or no longer.
    pub(super) fn set_resource(&self, session: u64, uri: String, is_wanted: bool) {
        self.change(session, |filter| {
            let uris = filter.resource_subscriptions.get_or_insert_default();
            uris.retain(|known| *known != uri);
            if is_wanted {
                uris.push(uri);
            }
        });
    }

    /// All changes of lists that a server offers to tell of.
    pub(super) fn set_lists(&self, session: u64, offered: &ServerCapabilities) {
        self.change(session, |filter| {
            filter.tools_list_changed = offered.tools.as_ref().and_then(|tools| tools.list_changed);
            filter.prompts_list_changed = offered.prompts.as_ref().and_then(|prompts| prompts.list_changed);
            filter.resources_list_changed =
                offered.resources.as_ref().and_then(|resources| resources.list_changed);
        });
    }

    fn change(&self, session: u64, change: impl FnOnce(&mut SubscriptionFilter)) {
        let mut filters = self.filters.lock();
        let filter = filters.entry(session).or_default();
        change(filter);
        if is_empty(filter) {
            filters.remove(&session);
        }
    }

    /// Lowers the level to this one, and gives what it is now.
    pub(super) fn lower_level(&self, level: LogLevel) -> LogLevel {
        let mut known = self.level.lock();
        let lower = known.map_or(level, |known| known.min(level));
        *known.insert(lower)
    }

    /// What all sessions want together.
    fn all(&self) -> SubscriptionFilter {
        let (mut all, mut uris) = (SubscriptionFilter::default(), BTreeSet::new());
        for filter in self.filters.lock().values() {
            all.tools_list_changed = all.tools_list_changed.max(filter.tools_list_changed);
            all.prompts_list_changed = all.prompts_list_changed.max(filter.prompts_list_changed);
            all.resources_list_changed = all.resources_list_changed.max(filter.resources_list_changed);
            uris.extend(filter.resource_subscriptions.iter().flatten().cloned());
        }
        all.resource_subscriptions = Some(uris.into_iter().collect());
        all
    }
}

fn is_empty(filter: &SubscriptionFilter) -> bool {
    let lists = [filter.tools_list_changed, filter.prompts_list_changed, filter.resources_list_changed];
    !lists.contains(&Some(true)) && filter.resource_subscriptions.iter().flatten().next().is_none()
}

/// What the server was asked for.
#[derive(Default)]
pub(super) struct Subscribed {
    filter: SubscriptionFilter,
    /// The stream of `subscriptions/listen`, where the server has no sessions.
    stream: Option<AbortOnDropHandle<()>>,
}

impl Upstream {
    /// Asks for all that clients want of a server that knows nothing of it.
    pub(super) async fn restore(&self) {
        self.subscribe().await;
        let level = *self.wants.level.lock();
        if let Some(level) = level
            && let Err(fault) = self.set_level(level).await
        {
            tracing::debug!("no log messages: {fault}");
        }
    }

    /// Subscribes to what clients want now, and to nothing else. Returns once the server has acknowledged it, or after
    /// [`ACKNOWLEDGE_TIMEOUT`].
    pub(super) async fn subscribe(&self) {
        let Some(client) = self.client() else { return };
        let mut subscribed = self.subscribed.lock().await;
        let wanted = self.wants.all();
        let before = std::mem::replace(&mut subscribed.filter, wanted.clone());
        if wanted == before {
            return;
        }
        if client.server().rules().lifecycle == Lifecycle::PerRequest {
            return self.listen(client.clone(), wanted, &mut subscribed.stream).await;
        }
        // A server with sessions tells of changed lists by itself.
        let uris = |filter: SubscriptionFilter| filter.resource_subscriptions.unwrap_or_default();
        let (before, wanted) = (uris(before), uris(wanted));
        for uri in wanted.iter().filter(|uri| !before.contains(uri)) {
            if let Err(fault) = client.subscribe(uri).await {
                tracing::warn!("the server refuses a subscription: {fault}");
            }
        }
        for uri in before.iter().filter(|uri| !wanted.contains(uri)) {
            if let Err(fault) = client.unsubscribe(uri).await {
                tracing::debug!("the server refuses to end a subscription: {fault}");
            }
        }
    }

    /// The server has been asked for what clients want now, by a call of a client.
    pub(super) async fn recorded(&self) {
        self.subscribed.lock().await.filter = self.wants.all();
        let mut level = self.level.lock().await;
        *level = *self.wants.level.lock();
    }

    async fn listen(
        &self,
        client: Client,
        filter: SubscriptionFilter,
        stream: &mut Option<AbortOnDropHandle<()>>,
    ) {
        let mut acknowledged = std::pin::pin!(self.acknowledged.notified());
        acknowledged.as_mut().enable();
        let before = stream.take();
        if is_empty(&filter) {
            return;
        }
        *stream = Some(AbortOnDropHandle::new(tokio::spawn(listen_on(client, filter, before))));
        if timeout(ACKNOWLEDGE_TIMEOUT, acknowledged).await.is_err() {
            tracing::debug!("the server has not acknowledged a subscription in time");
        }
    }

    /// Asks the server for log messages of this level, where it was not.
    pub(super) async fn set_level(&self, level: LogLevel) -> Result<(), Error> {
        let Some(client) = self.client() else { return Ok(()) };
        let mut known = self.level.lock().await;
        if client.server().capabilities.logging.is_some() && *known != Some(level) {
            client.set_level(level).await?;
            *known = Some(level);
        }
        Ok(())
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
        sleep(LISTEN_RETRY_DELAY).await;
        listening = client.listen(&filter).into_future();
    }
}
