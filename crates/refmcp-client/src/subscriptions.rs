//! `Subscriptions`: what several listeners want to hear of one server, and the level of its log messages.
//!
//! The server is asked for all of it together, and again once it has lost the session or the client is connected anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use refmcp_proto::engine::client::{CallError, TransportError};
use refmcp_proto::model::{LogLevel, ServerCapabilities, ServerNotification, SubscriptionFilter};
use refmcp_proto::revision::Lifecycle;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::client::Client;
use crate::driver::OpenState;
use crate::error::Error;
use crate::host::Event;

/// The pause before a `subscriptions/listen` that has ended is sent again, at first and at most. A stream that lasts as
/// long as the first begins anew with it.
const MIN_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// How long a subscription may take to be acknowledged, before what follows it goes on.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(2);

/// What several listeners want to hear of a server; clones are the same. Changes go to
/// [`Host::on_event`](crate::Host::on_event).
///
/// ```
/// use refmcp_client::{Client, Subscriptions, model::SubscriptionFilter};
///
/// # async fn example(client: Client) {
/// let subscriptions = Subscriptions::default();
/// subscriptions.connect(&client).await;
/// let filter = SubscriptionFilter { tools_list_changed: Some(true), ..SubscriptionFilter::default() };
/// subscriptions.set(1, filter);
/// subscriptions.apply().await;
/// # }
/// ```
#[derive(Clone, Default)]
#[doc(alias = "subscribe")]
pub struct Subscriptions(Arc<Inner>);

#[derive(Default)]
struct Inner {
    wanted: Mutex<Wanted>,
    /// Held while the server is asked.
    asked: tokio::sync::Mutex<Asked>,
    /// The last change that the server was asked for.
    applied: watch::Sender<u64>,
}

#[derive(Default)]
struct Wanted {
    /// A listener that wants nothing has no entry.
    filters: BTreeMap<u64, SubscriptionFilter>,
    level: Option<LogLevel>,
    /// How often listeners have changed what they want.
    changes: u64,
}

/// What the server was asked for.
#[derive(Default)]
struct Asked {
    client: Option<Client>,
    filter: SubscriptionFilter,
    level: Option<LogLevel>,
    /// The stream of `subscriptions/listen`, where the server has no sessions.
    stream: Option<AbortOnDropHandle<()>>,
    /// Asks again once the session was lost.
    restoring: Option<AbortOnDropHandle<()>>,
}

impl fmt::Debug for Subscriptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriptions").field("wanted", &self.wanted().1).finish_non_exhaustive()
    }
}

impl Subscriptions {
    /// Asks this client's server from now on: for all that is wanted, and again whenever it has lost the session. Keeps the
    /// client until another one takes its place.
    pub async fn connect(&self, client: &Client) {
        let (mut states, inner) = (client.driver.open_states(), Arc::downgrade(&self.0));
        let restoring = tokio::spawn(async move {
            while states.changed().await.is_ok()
                && let Some(inner) = inner.upgrade()
            {
                if matches!(*states.borrow_and_update(), OpenState::Open(_)) {
                    Self(inner).restore(|_| {}).await;
                }
            }
        });
        self.restore(|asked| {
            asked.client = Some(client.clone());
            asked.restoring = Some(AbortOnDropHandle::new(restoring));
        })
        .await;
    }

    /// Replaces what a listener wants.
    pub fn set(&self, listener: u64, filter: SubscriptionFilter) {
        self.change(listener, |wanted| *wanted = filter);
    }

    /// Adds a resource to what a listener wants, or removes it. Tells whether the listener wanted it before.
    pub fn set_resource(&self, listener: u64, uri: &str, is_wanted: bool) -> bool {
        self.change(listener, |filter| {
            let uris = filter.resource_subscriptions.get_or_insert_default();
            let before = uris.len();
            uris.retain(|known| known != uri);
            let was_wanted = uris.len() < before;
            if is_wanted {
                uris.push(uri.to_owned());
            }
            was_wanted
        })
    }

    /// Adds all lists whose changes a server offers to tell of, as servers with sessions do without being asked.
    pub fn set_lists(&self, listener: u64, offered: &ServerCapabilities) {
        self.change(listener, |filter| {
            filter.tools_list_changed = offered.tools.as_ref().and_then(|tools| tools.list_changed);
            filter.prompts_list_changed = offered.prompts.as_ref().and_then(|prompts| prompts.list_changed);
            filter.resources_list_changed =
                offered.resources.as_ref().and_then(|resources| resources.list_changed);
        });
    }

    fn change<T>(&self, listener: u64, change: impl FnOnce(&mut SubscriptionFilter) -> T) -> T {
        let mut wanted = self.0.wanted.lock();
        wanted.changes += 1;
        let filter = wanted.filters.entry(listener).or_default();
        let returned = change(filter);
        if is_empty(filter) {
            wanted.filters.remove(&listener);
        }
        returned
    }

    /// The level of log messages that is wanted.
    pub fn level(&self) -> Option<LogLevel> {
        self.0.wanted.lock().level
    }

    /// Sets the level of log messages.
    pub fn set_level(&self, level: LogLevel) {
        self.0.wanted.lock().level = Some(level);
    }

    /// Asks the server for what is wanted now, and for nothing else. Returns once it has acknowledged that, or after two
    /// seconds.
    pub async fn apply(&self) {
        let mut asked = self.0.asked.lock().await;
        self.ask(&mut asked).await;
    }

    /// Waits until the server was asked for what was wanted when this was called, for two seconds at most: a request that
    /// follows may change what a listener waits for.
    pub async fn applied(&self) {
        let changes = self.0.wanted.lock().changes;
        if *self.0.applied.borrow() < changes {
            let mut applied = self.0.applied.subscribe();
            // A server that does not answer holds back nothing for longer.
            let _ = timeout(ACKNOWLEDGED_WITHIN, applied.wait_for(|applied| *applied >= changes)).await;
        }
    }

    /// Notes that the server was asked for what is wanted now, by other requests.
    pub async fn mark_applied(&self) {
        let mut asked = self.0.asked.lock().await;
        let (changes, filter, level) = self.wanted();
        (asked.filter, asked.level) = (filter, level);
        self.0.applied.send_replace(changes);
    }

    /// Asks a server that knows nothing of what is wanted.
    async fn restore(&self, change: impl FnOnce(&mut Asked)) {
        let mut asked = self.0.asked.lock().await;
        (asked.filter, asked.level, asked.stream) = (SubscriptionFilter::default(), None, None);
        change(&mut asked);
        self.ask(&mut asked).await;
    }

    async fn ask(&self, asked: &mut Asked) {
        let (changes, wanted, level) = self.wanted();
        if let Some(client) = asked.client.clone() {
            if wanted != asked.filter {
                let before = std::mem::replace(&mut asked.filter, wanted.clone());
                if client.server().rules().lifecycle == Lifecycle::PerRequest {
                    listen(client.clone(), wanted, &mut asked.stream).await;
                } else {
                    // A server with sessions tells of changed lists by itself.
                    subscribe(&client, &resources(before), &resources(wanted)).await;
                }
            }
            if let Some(level) = level.filter(|level| asked.level != Some(*level))
                && client.server().capabilities.logging.is_some()
            {
                match client.set_level(level).await {
                    Ok(()) => asked.level = Some(level),
                    Err(error) => tracing::warn!("the server refuses a log level: {error}"),
                }
            }
        }
        self.0.applied.send_replace(changes);
    }

    /// What all listeners want together, after this many changes.
    fn wanted(&self) -> (u64, SubscriptionFilter, Option<LogLevel>) {
        let wanted = self.0.wanted.lock();
        (wanted.changes, union(wanted.filters.values()), wanted.level)
    }
}

fn union<'a>(filters: impl Iterator<Item = &'a SubscriptionFilter>) -> SubscriptionFilter {
    let (mut all, mut uris) = (SubscriptionFilter::default(), BTreeSet::new());
    for filter in filters {
        all.tools_list_changed = all.tools_list_changed.max(filter.tools_list_changed);
        all.prompts_list_changed = all.prompts_list_changed.max(filter.prompts_list_changed);
        all.resources_list_changed = all.resources_list_changed.max(filter.resources_list_changed);
        uris.extend(filter.resource_subscriptions.iter().flatten().cloned());
    }
    all.resource_subscriptions = (!uris.is_empty()).then(|| uris.into_iter().collect());
    all
}

fn resources(filter: SubscriptionFilter) -> Vec<String> {
    filter.resource_subscriptions.unwrap_or_default()
}

fn is_empty(filter: &SubscriptionFilter) -> bool {
    let lists = [filter.tools_list_changed, filter.prompts_list_changed, filter.resources_list_changed];
    !lists.contains(&Some(true)) && filter.resource_subscriptions.iter().flatten().next().is_none()
}

/// Subscribes in a session.
async fn subscribe(client: &Client, before: &[String], wanted: &[String]) {
    for uri in wanted.iter().filter(|uri| !before.contains(uri)) {
        if let Err(error) = client.subscribe(uri).await {
            tracing::warn!("{} refuses a subscription to {uri}: {error}", client.name());
        }
    }
    for uri in before.iter().filter(|uri| !wanted.contains(uri)) {
        if let Err(error) = client.unsubscribe(uri).await {
            tracing::debug!("the server refuses to end a subscription: {error}");
        }
    }
}

/// Subscribes without a session, by a stream in place of the one before.
async fn listen(client: Client, filter: SubscriptionFilter, stream: &mut Option<AbortOnDropHandle<()>>) {
    let before = stream.take();
    if is_empty(&filter) {
        return;
    }
    let acknowledged = Arc::new(Notify::new());
    let listening = listen_on(client, filter, before, acknowledged.clone());
    *stream = Some(AbortOnDropHandle::new(tokio::spawn(listening)));
    if timeout(ACKNOWLEDGED_WITHIN, acknowledged.notified()).await.is_err() {
        tracing::debug!("the server has not acknowledged a subscription in time");
    }
}

/// Keeps a `subscriptions/listen` open; the stream before it ends once this one is requested, so that no change falls
/// between them.
async fn listen_on(
    client: Client,
    filter: SubscriptionFilter,
    before: Option<AbortOnDropHandle<()>>,
    acknowledged: Arc<Notify>,
) {
    let request = || {
        let (driver, acknowledged) = (Arc::downgrade(&client.driver), acknowledged.clone());
        let request = client.listen(&filter).on_notification(move |notification| {
            if let ServerNotification::SubscriptionsAcknowledged(_) = notification {
                acknowledged.notify_one();
            }
            if let Some(driver) = driver.upgrade() {
                driver.emit(&Event::Notification(notification.clone()));
            }
        });
        request.into_future()
    };
    let (mut since, mut pause) = (Instant::now(), MIN_BACKOFF);
    let mut listening = request();
    let mut ended = tokio::select! {
        biased;
        ended = &mut listening => Some(ended),
        () = std::future::ready(()) => None,
    };
    drop(before);
    loop {
        let ended = match ended.take() {
            Some(ended) => ended,
            None => listening.await,
        };
        match ended {
            Err(Error::Call(
                refused @ (CallError::Rpc(_) | CallError::Refused(_) | CallError::NotOpen(_)),
            )) => {
                tracing::warn!("{} tells of no changes: {refused}", client.name());
                return acknowledged.notify_one();
            }
            Err(Error::Call(CallError::Transport(
                why @ (TransportError::Unreachable(_) | TransportError::Broken(_)),
            ))) => client.driver.emit(&Event::StreamLost(why)),
            Err(error) => tracing::debug!("a subscription is requested again: {error}"),
            Ok(_) => {}
        }
        if since.elapsed() >= MIN_BACKOFF {
            pause = MIN_BACKOFF;
        }
        sleep(pause).await;
        pause = (pause * 2).min(MAX_BACKOFF);
        since = Instant::now();
        listening = request();
    }
}
