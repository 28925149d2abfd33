//! One task for each connected server: shows what it tells of, keeps up with what it offers, and notices its end.

use std::collections::BTreeSet;
use std::sync::Arc;

use refmcp_client::model::{ServerNotification, SubscriptionFilter};
use refmcp_client::{Client, Error, Event};
use refmcp_proto::revision::Lifecycle;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use super::aside::Asides;
use super::offer::Offer;
use super::servers::{Roster, State};
use crate::command::client::watch::describe;
use crate::ui::text::one_line;

/// What the task needs.
pub(super) struct Watching {
    pub(super) name: String,
    pub(super) client: Client,
    pub(super) events: broadcast::Receiver<Event>,
    pub(super) offer: Arc<watch::Sender<Option<Arc<Offer>>>>,
    pub(super) subscriptions: watch::Receiver<BTreeSet<String>>,
    pub(super) asides: Asides,
    pub(super) roster: Roster,
}

impl Watching {
    /// Goes on until the server is gone.
    pub(super) async fn run(mut self) {
        let fetching = keep_up(self.client.clone(), self.offer.clone(), self.events.resubscribe());
        let listening = listen(self.client.clone(), self.subscriptions.clone());
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
                Ok(Event::Told(ServerNotification::SubscriptionsAcknowledged(_))) => {}
                Ok(Event::Told(told)) => {
                    if let Some(line) = describe(&told) {
                        self.say(&line);
                    }
                }
                Ok(Event::Reopened(_)) => {
                    self.say("the session was lost and opened anew");
                    self.subscribe_again().await;
                }
                Ok(Event::Closed(why)) => {
                    let why = one_line(&why.to_string()).into_owned();
                    self.say(&format!("is gone: {why}; to connect again: connect {}", self.name));
                    self.client.close().await;
                    self.roster.set(&self.name, State::Absent(why));
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
        self.asides.say(format!("[{}] {line}\n", self.name));
    }
}

/// Whether changes have to be listened for with a request.
pub(super) fn is_stateless(client: &Client) -> bool {
    client.server().rules().lifecycle == Lifecycle::PerRequest
}

/// Asks for the lists at the beginning, and whenever one of them has changed.
async fn keep_up(
    client: Client,
    offer: Arc<watch::Sender<Option<Arc<Offer>>>>,
    mut events: broadcast::Receiver<Event>,
) {
    loop {
        offer.send_replace(Some(Arc::new(Offer::of(&client).await)));
        loop {
            match events.recv().await {
                Ok(Event::Told(
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

/// Where there is no session: listens for changes of the lists and of the resources that are of interest.
async fn listen(client: Client, mut subscriptions: watch::Receiver<BTreeSet<String>>) {
    if !is_stateless(&client) {
        return std::future::pending().await;
    }
    loop {
        let uris: Vec<String> = subscriptions.borrow_and_update().iter().cloned().collect();
        let filter = SubscriptionFilter {
            tools_list_changed: Some(true),
            prompts_list_changed: Some(true),
            resources_list_changed: Some(true),
            resource_subscriptions: Some(uris).filter(|uris| !uris.is_empty()),
            ..SubscriptionFilter::default()
        };
        tokio::select! {
            ended = client.listen(&filter) => {
                note(&client, ended.map(drop));
                // It listens again when there is something else to listen for.
                if subscriptions.changed().await.is_err() {
                    return std::future::pending().await;
                }
            }
            changed = subscriptions.changed() => {
                if changed.is_err() {
                    return std::future::pending().await;
                }
            }
        }
    }
}

fn note(client: &Client, ended: Result<(), Error>) {
    match ended {
        Ok(()) => tracing::debug!("{} tells of changes no more", client.name()),
        Err(fault) => tracing::debug!("{} does not tell of changes: {fault}", client.name()),
    }
}
