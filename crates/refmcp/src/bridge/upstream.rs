//! A connection to the server behind the gateway: what the server requests of clients, and its notifications.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use refmcp_client::{Client, Event, OpenError, ServerFacts};
use refmcp_proto::engine::{Change, LogMessage};
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::model::{InputRequest, LogLevel, ServerNotification};
use refmcp_server::{Session, WeakServer};
use serde_json::Value;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::gateway::own_error;
use super::running::{CallEvent, Parked, Question};
use super::subscriptions::{Subscribed, Wants};

/// How long the client may take to answer, and how long a call is kept for it meanwhile.
pub(super) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(900);
/// How long a request of the server waits for a call that can carry it to the client, and how long a server that many
/// clients share may go on with a cancelled call.
pub(super) const HOLD_TIMEOUT: Duration = Duration::from_secs(60);
/// Requests of the server that wait for a call.
const MAX_HELD: usize = 16;
/// Notifications that wait to be passed on: for one call, and for the session.
pub(super) const INBOX: usize = 1024;

/// Numbers of calls and of requests, for the whole process: a `requestState` names its call, and must find no other one
/// once the server is connected again.
pub(super) static NEXT: AtomicU64 = AtomicU64::new(1);

/// The server in front, once it is built.
#[derive(Clone)]
pub(super) struct FrontServer {
    pub(super) server: Arc<OnceLock<WeakServer>>,
    /// Whether changes concern all clients that listen: the only one, or stateless ones.
    pub(super) all_listen: bool,
}

/// A connection to the server.
pub(super) struct Upstream {
    client: OnceLock<Client>,
    /// Whether clients share it that have nothing to do with each other.
    pub(super) is_shared: bool,
    /// The session that it belongs to; none for stateless requests over HTTP.
    session: OnceLock<Weak<Session>>,
    front: FrontServer,
    notifications: mpsc::Sender<ServerNotification>,
    /// Calls in flight, the oldest first, and whether they can carry a request to the client.
    pub(super) calls: Mutex<BTreeMap<u64, (mpsc::Sender<CallEvent>, bool)>>,
    pub(super) held: Mutex<VecDeque<Question>>,
    pub(super) parked: Mutex<BTreeMap<u64, Parked>>,
    /// What clients want to hear of, and what the server was asked for.
    pub(super) wants: Arc<Wants>,
    pub(super) subscribed: tokio::sync::Mutex<Subscribed>,
    pub(super) level: tokio::sync::Mutex<Option<LogLevel>>,
    pub(super) acknowledged: Notify,
    /// Why it has ended, and that it has.
    ended: OnceLock<OpenError>,
    pub(super) over: CancellationToken,
    closing: TaskTracker,
}

impl Upstream {
    pub(super) fn new(
        is_shared: bool,
        wants: Arc<Wants>,
        front: FrontServer,
        closing: TaskTracker,
    ) -> Arc<Self> {
        let (notifications, mut received) = mpsc::channel(INBOX);
        let upstream = Arc::new(Self {
            client: OnceLock::new(),
            is_shared,
            session: OnceLock::new(),
            front,
            notifications,
            calls: Mutex::default(),
            held: Mutex::default(),
            parked: Mutex::default(),
            wants,
            subscribed: tokio::sync::Mutex::default(),
            level: tokio::sync::Mutex::default(),
            acknowledged: Notify::new(),
            ended: OnceLock::new(),
            over: CancellationToken::new(),
            closing,
        });
        let deliverer = Arc::downgrade(&upstream);
        tokio::spawn(async move {
            while let Some(notification) = received.recv().await
                && let Some(upstream) = deliverer.upgrade()
            {
                upstream.deliver(notification).await;
            }
        });
        upstream
    }

    /// It is this session's alone, if any.
    pub(super) fn belongs_to(&self, session: Option<&Arc<Session>>) {
        if let Some(session) = session {
            // The first stays.
            let _ = self.session.set(Arc::downgrade(session));
        }
    }

    /// The client is connected.
    pub(super) fn connected(&self, client: Client) {
        // Called once.
        let _ = self.client.set(client);
    }

    pub(super) fn client(&self) -> Option<&Client> {
        self.client.get()
    }

    pub(super) fn facts(&self) -> Option<Arc<ServerFacts>> {
        self.client().map(Client::server)
    }

    /// Why the server has ended it, if it has.
    pub(super) fn ended(&self) -> Option<&OpenError> {
        self.ended.get()
    }

    pub(super) fn heard(self: &Arc<Self>, event: &Event) {
        match event {
            Event::Notification(ServerNotification::SubscriptionsAcknowledged(_)) => {
                self.acknowledged.notify_waiters();
            }
            Event::Notification(notification) => self.notified(notification),
            Event::Reopened(_) => {
                let upstream = self.clone();
                tokio::spawn(async move {
                    *upstream.subscribed.lock().await = Subscribed::default();
                    *upstream.level.lock().await = None;
                    upstream.restore().await;
                });
            }
            // An attempt to connect that failed is followed by another, or reported by the connector.
            Event::Closed(_) if self.client().is_none() => {}
            Event::Closed(why) => self.end(why),
            Event::Finding(finding) => tracing::debug!(finding = %finding, "the server broke a rule"),
            Event::Ignored(what) => tracing::warn!("the server sent what is ignored: {what}"),
            other => tracing::debug!(?other, "the server"),
        }
    }

    /// The server has ended the connection.
    pub(super) fn end(&self, why: &OpenError) {
        // The first reason stays.
        let _ = self.ended.set(why.clone());
        self.over.cancel();
    }

    /// A notification that names no call. One that concerns calls goes to the oldest; where clients share the connection, to
    /// the only one, or else to none: it may tell of what another client does.
    fn notified(&self, notification: &ServerNotification) {
        let is_change = matches!(
            notification,
            ServerNotification::ToolsListChanged(_)
                | ServerNotification::PromptsListChanged(_)
                | ServerNotification::ResourcesListChanged(_)
                | ServerNotification::ResourceUpdated(_)
        );
        let calls = self.calls.lock();
        let passed = match calls.values().next().filter(|_| !is_change) {
            Some(_) if self.is_shared && calls.len() > 1 => {
                return tracing::debug!(
                    method = notification.method(),
                    "it cannot be told which client this is for"
                );
            }
            Some((inbox, _)) => inbox.try_send(CallEvent::Notification(notification.clone())).is_ok(),
            None => self.notifications.try_send(notification.clone()).is_ok(),
        };
        if !passed {
            tracing::warn!(method = notification.method(), "the client is slow: a notification is dropped");
        }
    }

    /// A notification that belongs to no call: to the session in front, or to all clients that listen.
    async fn deliver(&self, notification: ServerNotification) {
        let session = self.session.get().and_then(Weak::upgrade);
        let change = match (notification, &session) {
            (ServerNotification::ToolsListChanged(_), _) => Change::Tools,
            (ServerNotification::PromptsListChanged(_), _) => Change::Prompts,
            (ServerNotification::ResourcesListChanged(_), _) => Change::Resources,
            (ServerNotification::ResourceUpdated(updated), _) => Change::Resource(updated.uri),
            (ServerNotification::Log(log), Some(session)) => {
                let (level, logger, data) = (log.level, log.logger, log.data);
                return session.log(LogMessage { level, logger, data }).await;
            }
            (other, Some(session)) => return session.notify(other).await,
            (_, None) => return,
        };
        let FrontServer { server, all_listen } = &self.front;
        match (session, server.get().and_then(WeakServer::upgrade)) {
            (Some(session), _) if !all_listen => session.changed(change).await,
            (_, server) => server.iter().for_each(|server| server.changed(&change)),
        }
    }

    /// A request of the server, which a call takes to the client.
    pub(super) async fn ask(
        upstream: Weak<Self>,
        call: Option<u64>,
        request: InputRequest,
    ) -> Result<Value, RpcError> {
        let gone = || RpcError::internal("the client is gone");
        let late = |_| RpcError::internal("the client did not answer in time");
        let (reply, mut answered) = oneshot::channel();
        let (taken, is_taken) = oneshot::channel();
        let is_held = {
            let upstream = upstream.upgrade().ok_or_else(gone)?;
            let key = format!("input-{}", NEXT.fetch_add(1, Ordering::Relaxed));
            upstream.place_or_refuse(call, Question { key, request, reply, taken: Some(taken) })
        };
        // A call that waits for the client takes it once the client has answered.
        let within = if is_held { HOLD_TIMEOUT } else { RESPONSE_TIMEOUT };
        tokio::select! {
            // A refusal comes at once.
            biased;
            answered = &mut answered => return answered.map_err(|_| gone())?,
            taken = timeout(within, is_taken) => drop(taken.map_err(late)?),
        }
        timeout(RESPONSE_TIMEOUT, answered).await.map_err(late)?.map_err(|_| gone())?
    }

    /// Gives a request to its call, to the oldest that can carry it, or to the next one: `true` when it waits for that.
    /// Where clients share the connection, it goes to its own call or to the only one, and otherwise the server is told why
    /// not: an answer of the wrong client is worse than none.
    pub(super) fn place_or_refuse(&self, call: Option<u64>, question: Question) -> bool {
        let calls = self.calls.lock();
        let own = call.and_then(|call| calls.get(&call));
        let found = match own {
            own if !self.is_shared => {
                own.filter(|(_, may_ask)| *may_ask).or_else(|| calls.values().find(|(_, may_ask)| *may_ask))
            }
            None if call.is_none() && calls.len() == 1 => calls.values().next(),
            own => own,
        };
        let refused = match found.filter(|(_, may_ask)| *may_ask) {
            Some((inbox, _)) => match inbox.try_send(CallEvent::Question(question)) {
                Err(full) => full.into_inner(),
                Ok(()) => return false,
            },
            None => CallEvent::Question(question),
        };
        let CallEvent::Question(question) = refused else { return false };
        let mut held = self.held.lock();
        held.retain(|question| !question.reply.is_closed());
        let why = if self.is_shared {
            "several clients share this connection, and it cannot be told whose call this request is for"
        } else if held.len() >= MAX_HELD {
            "too many requests wait for the client"
        } else {
            held.push_back(question);
            return true;
        };
        // The server may have withdrawn it.
        let _ = question.reply.send(Err(own_error(&why)));
        false
    }

    /// Ends the connection in order.
    pub(super) async fn close(&self) {
        if let Some(client) = self.client() {
            client.close().await;
        }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            self.closing.spawn(async move { client.close().await });
        }
    }
}
