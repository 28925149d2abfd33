//! The server behind the gateway as one client has it: the connection, what the server requests of the client, and its
//! notifications.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use refmcp_client::{Client, Event, Subscriptions};
use refmcp_proto::engine::{Change, LogMessage};
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::model::{InputRequest, ServerNotification};
use refmcp_server::{Session, WeakServer};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::DropGuard;

use super::gateway::own_error;
use super::running::{CallEvent, Parked, WaitingRequest};

/// How long the client may take to answer, and how long a call is kept for it meanwhile.
pub(super) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(900);
/// How long a request of the server waits for a call that can carry it to the client, and how long a server that many
/// clients share may go on with a cancelled call.
pub(super) const HOLD_TIMEOUT: Duration = Duration::from_secs(60);
/// Requests of the server that wait for a call.
const MAX_HELD: usize = 16;
/// Notifications that wait to be passed on: for one call, and for the session.
pub(super) const INBOX: usize = 1024;
/// Bytes of all notifications that wait. One that is longer waits alone.
const MAX_WAITING: u32 = 32 << 20;

/// Numbers of calls and of requests, for the whole process: a `requestState` names its call, and must find no other one
/// once the server is connected again.
pub(super) static NEXT: AtomicU64 = AtomicU64::new(1);

/// The server in front, once it is built.
pub(super) type FrontServer = Arc<OnceLock<WeakServer>>;

/// The server as one client has it, or as all stateless requests over HTTP have it together.
pub(super) struct Upstream {
    /// Whether clients share it that have nothing to do with each other.
    pub(super) is_shared: bool,
    /// The session that it belongs to; none for stateless requests over HTTP.
    session: OnceLock<Weak<Session>>,
    front: FrontServer,
    connection: Mutex<Option<Connection>>,
    /// Held while a connection is opened.
    pub(super) opening: tokio::sync::Mutex<()>,
    /// Whether a call was made over it.
    pub(super) is_used: AtomicBool,
    pub(super) subscriptions: Subscriptions,
    notifications: mpsc::Sender<WaitingNotification>,
    /// Room for the bytes of notifications that wait.
    pub(super) room: Arc<Semaphore>,
    /// Calls in flight, the oldest first, and whether they can carry a request to the client.
    pub(super) calls: Mutex<BTreeMap<u64, (mpsc::Sender<CallEvent>, bool)>>,
    pub(super) held: Mutex<VecDeque<WaitingRequest>>,
    pub(super) parked: Mutex<BTreeMap<u64, Parked>>,
}

/// A notification that waits to be passed on. Its bytes take room until this is dropped: a client that does not read must not
/// cost all memory.
pub(super) struct WaitingNotification {
    pub(super) notification: ServerNotification,
    pub(super) room: OwnedSemaphorePermit,
}

impl WaitingNotification {
    /// `None` where too much waits already.
    pub(super) fn new(notification: &ServerNotification, room: &Arc<Semaphore>) -> Option<Self> {
        let size = serde_json::to_vec(notification).map_or(0, |text| text.len());
        let size = u32::try_from(size).unwrap_or(u32::MAX).min(MAX_WAITING);
        let room = room.clone().try_acquire_many_owned(size).ok()?;
        Some(Self { notification: notification.clone(), room })
    }
}

/// A connection, which is closed as it is dropped.
struct Connection {
    client: Client,
    _close: DropGuard,
}

impl Upstream {
    pub(super) fn new(is_shared: bool, front: FrontServer) -> Arc<Self> {
        let (notifications, mut received) = mpsc::channel(INBOX);
        let upstream = Arc::new(Self {
            is_shared,
            session: OnceLock::new(),
            front,
            connection: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            is_used: AtomicBool::new(false),
            subscriptions: Subscriptions::default(),
            notifications,
            room: Arc::new(Semaphore::new(MAX_WAITING as usize)),
            calls: Mutex::default(),
            held: Mutex::default(),
            parked: Mutex::default(),
        });
        let deliverer = Arc::downgrade(&upstream);
        tokio::spawn(async move {
            while let Some(WaitingNotification { notification, room }) = received.recv().await
                && let Some(upstream) = deliverer.upgrade()
            {
                upstream.deliver(notification).await;
                drop(room);
            }
        });
        upstream
    }

    /// It is this session's alone.
    pub(super) fn belongs_to(&self, session: &Arc<Session>) {
        // The first stays.
        let _ = self.session.set(Arc::downgrade(session));
    }

    /// A client is connected, which `close` closes. What the server asked before is void.
    pub(super) fn connected(&self, client: Client, close: DropGuard) {
        *self.connection.lock() = Some(Connection { client, _close: close });
        self.calls.lock().clear();
        self.held.lock().clear();
        self.parked.lock().clear();
    }

    pub(super) fn disconnect(&self) {
        self.connection.lock().take();
    }

    /// The client, unless the server has ended the session.
    pub(super) fn client(&self) -> Option<Client> {
        let client = self.connection.lock().as_ref().map(|connection| connection.client.clone());
        client.filter(|client| client.close_reason().is_none())
    }

    pub(super) fn heard(&self, event: &Event) {
        match event {
            Event::Notification(ServerNotification::SubscriptionsAcknowledged(_)) => {}
            Event::Notification(notification) => self.notified(notification),
            Event::Finding(finding) => tracing::debug!(finding = %finding, "the server broke a rule"),
            Event::Ignored(what) => tracing::warn!("the server sent what is ignored: {what}"),
            other => tracing::debug!(?other, "the server"),
        }
    }

    /// A notification that names no call. One that concerns calls goes to the oldest; where clients share the connection, to
    /// the only one, or else to none: it may tell of what another client does.
    fn notified(&self, notification: &ServerNotification) {
        let calls = self.calls.lock();
        let waiting = || WaitingNotification::new(notification, &self.room);
        let passed = match calls.values().next().filter(|_| change(notification).is_none()) {
            Some(_) if self.is_shared && calls.len() > 1 => {
                return tracing::debug!(
                    method = notification.method(),
                    "it cannot be told which client this is for"
                );
            }
            Some((inbox, _)) => {
                waiting().is_some_and(|waiting| inbox.try_send(CallEvent::Notification(waiting)).is_ok())
            }
            None => waiting().is_some_and(|waiting| self.notifications.try_send(waiting).is_ok()),
        };
        if !passed {
            tracing::warn!(method = notification.method(), "the client is slow: a notification is dropped");
        }
    }

    /// A notification that belongs to no call: to the session in front, or to all clients that listen.
    async fn deliver(&self, notification: ServerNotification) {
        let session = self.session.get().and_then(Weak::upgrade);
        match (change(&notification), notification, session) {
            (Some(change), _, Some(session)) => session.published(change).await,
            (Some(change), _, None) => {
                if let Some(server) = self.front.get().and_then(WeakServer::upgrade) {
                    server.changed(&change);
                }
            }
            (None, ServerNotification::Log(log), Some(session)) => {
                let (level, logger, data) = (log.level, log.logger, log.data);
                session.log(LogMessage { level, logger, data }).await;
            }
            (None, other, Some(session)) => session.notify(other).await,
            (None, _, None) => {}
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
            upstream.place_or_refuse(call, WaitingRequest { key, request, reply, taken: Some(taken) })
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
    pub(super) fn place_or_refuse(&self, call: Option<u64>, request: WaitingRequest) -> bool {
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
            Some((inbox, _)) => match inbox.try_send(CallEvent::Request(request)) {
                Err(full) => full.into_inner(),
                Ok(()) => return false,
            },
            None => CallEvent::Request(request),
        };
        let CallEvent::Request(request) = refused else { return false };
        let mut held = self.held.lock();
        held.retain(|request| !request.reply.is_closed());
        let why = if self.is_shared {
            "several clients share this connection, and it cannot be told whose call this request is for"
        } else if held.len() >= MAX_HELD {
            "too many requests wait for the client"
        } else {
            held.push_back(request);
            return true;
        };
        // The server may have withdrawn it.
        let _ = request.reply.send(Err(own_error(&why)));
        false
    }
}

/// What a notification says has changed at the server, for whichever clients listen.
fn change(notification: &ServerNotification) -> Option<Change> {
    match notification {
        ServerNotification::ToolsListChanged(_) => Some(Change::Tools),
        ServerNotification::PromptsListChanged(_) => Some(Change::Prompts),
        ServerNotification::ResourcesListChanged(_) => Some(Change::Resources),
        ServerNotification::ResourceUpdated(updated) => Some(Change::Resource(updated.uri.clone())),
        _ => None,
    }
}
