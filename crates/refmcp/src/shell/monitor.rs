//! One task for each connected server: shows what it tells of, keeps up with what it catalogs, and notices its end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use refmcp_client::model::ServerNotification;
use refmcp_client::{CallError, Client, Error, Event, TransportError};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use super::catalog::Catalog;
use super::notices::Notices;
use super::servers::{Outage, ServerRegistry, ServerState};
use crate::command::client::watch::{MIN_STREAM_DURATION, answers, describe, filter, is_stateless};
use crate::ui::text::one_line;

/// How long to wait before listening anew: at first, and at most.
const MIN_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// The resources whose changes are of interest.
type Subscriptions = watch::Receiver<BTreeSet<String>>;

/// What the task needs.
pub(super) struct ServerMonitor {
    pub(super) name: String,
    pub(super) client: Client,
    pub(super) catalog: Arc<watch::Sender<Option<Arc<Catalog>>>>,
    pub(super) notices: Notices,
    pub(super) registry: ServerRegistry,
    pub(super) outage: Outage,
}

impl ServerMonitor {
    /// Goes on until the server is gone.
    pub(super) async fn run(self, events: broadcast::Receiver<Event>, subscriptions: Subscriptions) {
        let catalog = self.keep_up(events.resubscribe());
        let changes = self.listen(subscriptions.clone());
        tokio::select! {
            () = self.hear(events, subscriptions) => {}
            ((), ()) = async { tokio::join!(catalog, changes) } => std::future::pending().await,
        }
    }

    async fn hear(&self, mut events: broadcast::Receiver<Event>, subscriptions: Subscriptions) {
        loop {
            match events.recv().await {
                Ok(
                    Event::Notification(ServerNotification::SubscriptionsAcknowledged(_))
                    | Event::StreamRestored,
                ) => {
                    if self.outage.ends() {
                        self.say("answers again");
                    }
                }
                Ok(Event::Notification(told)) => {
                    if let Some(line) = describe(&told) {
                        self.say(&line);
                    }
                }
                Ok(Event::Reopened(_)) => {
                    self.outage.ends();
                    self.say("the session was lost and opened anew");
                    let uris = subscriptions.borrow().clone();
                    self.subscribe_again(uris).await;
                }
                // A server that has forgotten the session opens another for the ping.
                Ok(Event::StreamLost(why)) => {
                    if answers(&self.client).await.is_err() {
                        self.does_not_answer(&why);
                    }
                }
                Ok(Event::Closed(why)) => {
                    let why = one_line(&why.to_string()).into_owned();
                    self.say(&format!("is gone: {why}; to connect again: connect {}", self.name));
                    // First what is known of it: ending what is left of it may take a while.
                    let client = self.client.clone();
                    self.registry.set(&self.name, ServerState::Failed(why));
                    client.close().await;
                    return;
                }
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => {
                    self.say(&format!("({missed} things came too fast to be shown)"));
                }
                Err(RecvError::Closed) => return,
            }
        }
    }

    async fn subscribe_again(&self, uris: BTreeSet<String>) {
        if is_stateless(&self.client) {
            return;
        }
        for uri in uris {
            if let Err(fault) = self.client.subscribe(&uri).await {
                self.say(&format!("no longer tells of {}: {}", one_line(&uri), one_line(&fault.to_string())));
            }
        }
    }

    /// Asks for the lists at the beginning, and whenever one of them has changed.
    async fn keep_up(&self, mut events: broadcast::Receiver<Event>) {
        loop {
            self.catalog.send_replace(Some(Arc::new(Catalog::fetch(&self.client).await)));
            loop {
                match events.recv().await {
                    Ok(Event::Notification(
                        ServerNotification::ToolsListChanged(_)
                        | ServerNotification::PromptsListChanged(_)
                        | ServerNotification::ResourcesListChanged(_),
                    ) | Event::Reopened(_))
                    // Any of these may be among what was missed.
                    | Err(RecvError::Lagged(_)) => break,
                    Ok(_) => {}
                    Err(RecvError::Closed) => return,
                }
            }
        }
    }

    /// Where there is no session: listens for changes of the lists and of the resources that are of interest. When the
    /// server cannot be reached that is told at once, and it is tried again until it can.
    async fn listen(&self, mut subscriptions: Subscriptions) {
        let mut pause = MIN_BACKOFF;
        while is_stateless(&self.client) {
            let uris = subscriptions.borrow_and_update().iter().cloned().collect();
            let since = Instant::now();
            let ended = tokio::select! {
                ended = self.client.listen(&filter(uris)) => ended.map(drop),
                Ok(()) = subscriptions.changed() => continue,
            };
            let lasted = since.elapsed() >= MIN_STREAM_DURATION;
            if lasted {
                pause = MIN_BACKOFF;
            }
            let again = match &ended {
                Err(Error::Call(CallError::Transport(
                    why @ (TransportError::Unreachable(_) | TransportError::Broken(_)),
                ))) => {
                    self.does_not_answer(why);
                    true
                }
                // A stream that has lasted ends with a server that stops, or with a proxy that has had enough.
                Ok(()) => lasted,
                Err(_) => false,
            };
            match ended {
                Ok(()) => tracing::debug!("{} tells of changes no more", self.client.name()),
                Err(fault) => tracing::debug!("{} does not tell of changes: {fault}", self.client.name()),
            }
            let changed = if again {
                let waited = tokio::time::timeout(pause, subscriptions.changed()).await;
                pause = (pause * 2).min(MAX_BACKOFF);
                waited.unwrap_or(Ok(()))
            } else {
                // It listens again when there is something else to listen for.
                subscriptions.changed().await
            };
            if changed.is_err() {
                return;
            }
        }
    }

    /// Says once that the server cannot be reached.
    fn does_not_answer(&self, why: &TransportError) {
        let why = one_line(&why.to_string()).into_owned();
        if self.outage.begins(why.clone()) {
            self.say(&format!("does not answer: {why}; it is tried again"));
        }
    }

    fn say(&self, line: &str) {
        self.notices.say(format!("[{}] {line}\n", self.name));
    }
}
