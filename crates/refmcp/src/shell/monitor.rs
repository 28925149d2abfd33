//! One task for each connected server: shows what it tells of, keeps up with what it catalogs, and notices its end.

use std::sync::Arc;

use refmcp_client::model::ServerNotification;
use refmcp_client::{Client, Event, Subscriptions, TransportError};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use super::catalog::Catalog;
use super::notices::Notices;
use super::servers::{Outage, ServerRegistry, ServerState};
use crate::command::client::watch::{answers, describe, filter};
use crate::ui::text::one_line;

/// The shell, among those that listen to a server.
pub(super) const LISTENER: u64 = 0;

/// What the task needs.
pub(super) struct ServerMonitor {
    pub(super) name: String,
    pub(super) client: Client,
    pub(super) catalog: Arc<watch::Sender<Option<Arc<Catalog>>>>,
    pub(super) notices: Notices,
    pub(super) registry: ServerRegistry,
    pub(super) outage: Outage,
    pub(super) subscriptions: Subscriptions,
}

impl ServerMonitor {
    /// Goes on until the server is gone.
    pub(super) async fn run(self, events: broadcast::Receiver<Event>) {
        let catalog = self.keep_up(events.resubscribe());
        self.subscriptions.set(LISTENER, filter(Vec::new()));
        let changes = self.subscriptions.connect(&self.client);
        tokio::select! {
            () = self.hear(events) => {}
            ((), ()) = async { tokio::join!(catalog, changes) } => std::future::pending().await,
        }
    }

    async fn hear(&self, mut events: broadcast::Receiver<Event>) {
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
