//! One task for each connected server: shows what it tells of, keeps up with what it catalogs, and notices its end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use refmcp_client::model::{ServerNotification, SubscriptionFilter};
use refmcp_client::{CallError, Client, Error, Event, TransportError};
use refmcp_proto::revision::Lifecycle;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use super::catalog::Catalog;
use super::connect;
use super::notices::Notices;
use super::servers::ServerRegistry;
use super::servers::{Outage, ServerState};
use crate::command::client::watch::{LASTED, describe};
use crate::ui::text::one_line;

/// What the task needs.
pub(super) struct ServerMonitor {
    pub(super) name: String,
    pub(super) client: Client,
    pub(super) events: broadcast::Receiver<Event>,
    pub(super) catalog: Arc<watch::Sender<Option<Arc<Catalog>>>>,
    pub(super) subscriptions: watch::Receiver<BTreeSet<String>>,
    pub(super) notices: Notices,
    pub(super) registry: ServerRegistry,
    pub(super) outage: Outage,
}

impl ServerMonitor {
    /// Goes on until the server is gone.
    pub(super) async fn run(mut self) {
        let fetching = keep_up(self.client.clone(), self.catalog.clone(), self.events.resubscribe());
        let listening = listen(ChangeListener {
            name: self.name.clone(),
            client: self.client.clone(),
            subscriptions: self.subscriptions.clone(),
            notices: self.notices.clone(),
            outage: self.outage.clone(),
        });
        let hearing = self.hear();
        tokio::select! {
            () = fetching => {}
            () = listening => {}
            () = hearing => {}
        }
    }

    async fn hear(&mut self) {
        loop {
            match self.events.recv().await {
                Ok(Event::Notification(ServerNotification::SubscriptionsAcknowledged(_))) => {
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
                    self.subscribe_again().await;
                }
                Ok(Event::StreamLost(why)) => self.check(&why).await,
                Ok(Event::StreamRestored) => {
                    if self.outage.ends() {
                        self.say("answers again");
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

    /// Asks a server whether it is there once it no longer tells of changes. One that has forgotten the session opens
    /// another for this.
    async fn check(&self, why: &TransportError) {
        if connect::answers(&self.client).await.is_err() {
            does_not_answer(&self.notices, &self.name, &self.outage, why);
        }
    }

    async fn subscribe_again(&self) {
        if is_stateless(&self.client) {
            return;
        }
        let uris = self.subscriptions.borrow().clone();
        for uri in uris {
            if let Err(fault) = self.client.subscribe(&uri).await {
                self.say(&format!("no longer tells of {}: {}", one_line(&uri), one_line(&fault.to_string())));
            }
        }
    }

    fn say(&self, line: &str) {
        self.notices.say(format!("[{}] {line}\n", self.name));
    }
}

/// Whether changes have to be listened for with a request.
pub(super) fn is_stateless(client: &Client) -> bool {
    client.server().rules().lifecycle == Lifecycle::PerRequest
}

/// Asks for the lists at the beginning, and whenever one of them has changed.
async fn keep_up(
    client: Client,
    catalog: Arc<watch::Sender<Option<Arc<Catalog>>>>,
    mut events: broadcast::Receiver<Event>,
) {
    loop {
        catalog.send_replace(Some(Arc::new(Catalog::fetch(&client).await)));
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
                Err(RecvError::Closed) => return std::future::pending().await,
            }
        }
    }
}

/// How long to wait before listening anew: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What listening for changes needs.
struct ChangeListener {
    name: String,
    client: Client,
    subscriptions: watch::Receiver<BTreeSet<String>>,
    notices: Notices,
    outage: Outage,
}

/// Where there is no session: listens for changes of the lists and of the resources that are of interest. When the
/// server cannot be reached that is told at once, and it is tried again until it can.
async fn listen(mut listening: ChangeListener) {
    if !is_stateless(&listening.client) {
        return std::future::pending().await;
    }
    let mut pause = FIRST_PAUSE;
    loop {
        let uris: Vec<String> = listening.subscriptions.borrow_and_update().iter().cloned().collect();
        let filter = SubscriptionFilter {
            tools_list_changed: Some(true),
            prompts_list_changed: Some(true),
            resources_list_changed: Some(true),
            resource_subscriptions: Some(uris).filter(|uris| !uris.is_empty()),
            ..SubscriptionFilter::default()
        };
        let since = Instant::now();
        let ended = tokio::select! {
            ended = listening.client.listen(&filter) => ended.map(drop),
            changed = listening.subscriptions.changed() => {
                if changed.is_err() {
                    return std::future::pending().await;
                }
                continue;
            }
        };
        if since.elapsed() >= LASTED {
            pause = FIRST_PAUSE;
        }
        let again = match &ended {
            Err(Error::Call(CallError::Transport(
                why @ (TransportError::Unreachable(_) | TransportError::Broken(_)),
            ))) => {
                does_not_answer(&listening.notices, &listening.name, &listening.outage, why);
                true
            }
            // A stream that has lasted ends with a server that stops, or with a proxy that has had enough.
            Ok(()) => since.elapsed() >= LASTED,
            Err(_) => false,
        };
        note(&listening.client, ended);
        let changed = if again {
            let waited = tokio::time::timeout(pause, listening.subscriptions.changed()).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            waited.unwrap_or(Ok(()))
        } else {
            // It listens again when there is something else to listen for.
            listening.subscriptions.changed().await
        };
        if changed.is_err() {
            return std::future::pending().await;
        }
    }
}

/// Says once that a server cannot be reached.
fn does_not_answer(notices: &Notices, name: &str, outage: &Outage, why: &TransportError) {
    let why = one_line(&why.to_string()).into_owned();
    if outage.begins(why.clone()) {
        notices.say(format!("[{name}] does not answer: {why}; it is tried again\n"));
    }
}

fn note(client: &Client, ended: Result<(), Error>) {
    match ended {
        Ok(()) => tracing::debug!("{} tells of changes no more", client.name()),
        Err(fault) => tracing::debug!("{} does not tell of changes: {fault}", client.name()),
    }
}
