//! Sessions: the state of one connection to a client, with its own values and catalog.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use refmcp_proto::engine::{
    CallId, Change, Dispatch, InputOutcome, LogMessage, RequestContext, Responded, ServerEngine, TaskListener,
};
use refmcp_proto::finding::Finding;
use refmcp_proto::jsonrpc::RequestId;
use refmcp_proto::model::{ServerNotification, SubscriptionFilter};
use refmcp_transport::{CallService, Cancellation, EngineHandle, MemoryAccount, Observed, RunningCall};
use tokio::time::Instant;

use crate::catalog::Catalog;
use crate::method::{self, CallWork};
use crate::server::Server;
use crate::session_request::OpenRequests;
use crate::tasks;

/// How a client is connected.
#[derive(Debug, Clone, Default)]
pub struct Connection {
    /// The kind of transport, for people.
    pub transport: &'static str,
    /// Whether the client is on this machine.
    pub local: bool,
    /// The authenticated principal.
    pub principal: Option<Arc<str>>,
    /// The scopes of the token, where a connection has one. Over HTTP each request has its own, and they are checked
    /// before.
    pub scopes: Option<Arc<[Box<str>]>>,
    /// The scheme and the host by which the client called, as in `https://mcp.example`, where a proxy that is trusted says
    /// so.
    pub origin: Option<Arc<str>>,
    /// Headers that came with the connection, where there are any; over HTTP, a [`Call`](crate::Call) has those of its
    /// request.
    pub headers: Headers,
    /// Where messages are reported, if the transport has opened that; else the server does, if it has an observer.
    pub observed: Observed,
    /// What may be held in memory for it; the server's budget decides where a transport does not.
    pub memory: Option<MemoryAccount>,
}

/// Headers, read when a handler wants them.
#[derive(Clone, Default)]
pub struct Headers(HeaderSource);

#[derive(Clone, Default)]
enum HeaderSource {
    #[default]
    None,
    Lines(Arc<str>),
    Request(Arc<dyn RequestHeaders>),
}

/// The headers of a request, as a transport has them.
pub trait RequestHeaders: Send + Sync {
    /// Their names and values.
    fn read(&self) -> Vec<(String, String)>;

    /// The address of the client, where it is known.
    fn client_address(&self) -> Option<IpAddr> {
        None
    }

    /// Copies what is kept of them and frees the rest, such as the buffer of the request: the call goes on for some time.
    fn detach(&self);
}

impl Headers {
    /// The headers of a request. Most requests are served without.
    pub fn of_request(headers: impl RequestHeaders + 'static) -> Self {
        Self(HeaderSource::Request(Arc::new(headers)))
    }

    /// Headers that stand on a line each, name and value with a colon between them: what is kept for long.
    pub fn from_lines(lines: impl Into<Arc<str>>) -> Self {
        Self(HeaderSource::Lines(lines.into()))
    }

    /// Their names and values.
    pub fn read(&self) -> Vec<(String, String)> {
        match &self.0 {
            HeaderSource::None => Vec::new(),
            HeaderSource::Lines(lines) => {
                let pairs = lines.lines().filter_map(|line| line.split_once(':'));
                pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
            }
            HeaderSource::Request(request) => request.read(),
        }
    }

    /// The address of the client that sent the request, where it is known.
    pub fn client_address(&self) -> Option<IpAddr> {
        match &self.0 {
            HeaderSource::Request(request) => request.client_address(),
            HeaderSource::None | HeaderSource::Lines(_) => None,
        }
    }

    /// Keeps no more of a request than its headers.
    pub(crate) fn detach(&self) {
        if let HeaderSource::Request(request) = &self.0 {
            request.detach();
        }
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values may be secret.
        f.debug_list().entries(self.read().iter().map(|(name, _)| name)).finish()
    }
}

/// One connection: its own values, its own additions to the lists.
pub struct Session {
    number: u64,
    server: Server,
    connection: Connection,
    started: Instant,
    /// What handlers have given it; few sessions have any of that.
    own: OnceLock<Box<OwnItems>>,
    handle: OnceLock<EngineHandle>,
}

/// What a session has beside what its server has.
#[derive(Default)]
struct OwnItems {
    /// The values that handlers keep with it.
    values: TypeMap,
    /// Its own items in the lists.
    catalog: OnceLock<RwLock<Catalog>>,
    /// The server has ended it.
    has_ended: AtomicBool,
    /// How often the client has said that its roots have changed.
    roots_changes: AtomicU64,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

impl Session {
    pub(crate) fn new(server: Server, connection: Connection) -> Arc<Self> {
        Arc::new(Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            server,
            connection,
            started: Instant::now(),
            own: OnceLock::new(),
            handle: OnceLock::new(),
        })
    }

    /// The server that the client is connected to.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// A number for logs; it means nothing outside of this process.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// How the client is connected.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// What may be held in memory for it.
    pub fn memory(&self) -> MemoryAccount {
        self.connection.memory.clone().unwrap_or_else(|| self.server.memory().account())
    }

    /// How long the connection has lasted.
    pub fn age(&self) -> std::time::Duration {
        self.started.elapsed()
    }

    /// How often the client has said that its roots have changed.
    pub fn roots_changes(&self) -> u64 {
        self.own.get().map_or(0, |own| own.roots_changes.load(Ordering::Relaxed))
    }

    /// The session's value of this type, made when it is first asked for.
    pub fn value<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        self.own.get_or_init(Box::default).values.get()
    }

    /// The session's own items.
    pub(crate) fn catalog(&self) -> Option<RwLockReadGuard<'_, Catalog>> {
        Some(self.own.get()?.catalog.get()?.read())
    }

    /// Changes the lists of this session alone and announces to its client which of them have changed. Returns what the
    /// function returns.
    pub async fn change_lists<T>(&self, change: impl FnOnce(&mut Catalog) -> T) -> T {
        let (returned, changes) = {
            let own = self.own.get_or_init(Box::default);
            let mut catalog = own.catalog.get_or_init(RwLock::default).write();
            (change(&mut catalog), catalog.take_changes())
        };
        for change in changes {
            self.changed(change).await;
        }
        returned
    }

    /// Tells the client of a change.
    pub async fn changed(&self, change: Change) {
        if let Some(handle) = self.handle.get() {
            handle.changed(change).await;
        }
    }

    /// Tells the client of a change as [`Server::changed`] does, whether it has a session or listens without one.
    pub async fn published(&self, change: Change) {
        if let Some(handle) = self.handle.get() {
            handle.published(change).await;
        }
    }

    /// Sends the client a log message that belongs to no call.
    pub async fn log(&self, note: LogMessage) {
        if let Some(handle) = self.handle.get() {
            handle.log(None, note).await;
        }
    }

    /// Sends the client a notification that the protocol does not have, or that this library has no function for.
    pub async fn notify(&self, notification: ServerNotification) {
        if let Some(handle) = self.handle.get() {
            handle.notify(None, notification).await;
        }
    }

    /// Ends the session: over HTTP its id is unknown from now on, and the client has to open another session. A pipe is its
    /// session, and goes on.
    pub fn end(&self) {
        self.own.get_or_init(Box::default).has_ended.store(true, Ordering::Relaxed);
    }

    /// Whether [`end`](Self::end) was called.
    pub fn has_ended(&self) -> bool {
        self.own.get().is_some_and(|own| own.has_ended.load(Ordering::Relaxed))
    }

    /// Looks at the engine; `None` when the connection is over.
    pub fn inspect<T>(&self, look: impl FnOnce(&ServerEngine) -> T) -> Option<T> {
        self.handle.get()?.inspect(look)
    }

    pub(crate) fn handle(&self) -> Option<&EngineHandle> {
        self.handle.get()
    }

    /// Tells the session the way to its engine.
    pub fn connect(&self, handle: EngineHandle) {
        // A session has one connection; were there a second, the first would go on being the one that is told.
        let _ = self.handle.set(handle);
    }
}

/// The part of a session that runs its calls.
#[derive(Debug)]
pub struct SessionService(pub(crate) Arc<Session>);

impl SessionService {
    /// The session whose calls it runs.
    pub fn session(&self) -> &Arc<Session> {
        &self.0
    }
}

impl CallService for SessionService {
    type Work = CallWork;

    fn start(&self, call: Dispatch, handle: &EngineHandle) -> RunningCall<CallWork> {
        method::start(&self.0, call, handle)
    }

    fn cancellation(&self, work: &CallWork) -> Cancellation {
        work.cancellation().clone()
    }

    fn ready(&self) {
        if let Some(on_session) = &self.0.server.settings().on_session {
            on_session(&self.0);
        }
    }

    fn client_responded(&self, request: &RequestId, outcome: InputOutcome) {
        self.0.value::<OpenRequests>().responded(request, outcome);
    }

    fn roots_changed(&self) {
        self.0.own.get_or_init(Box::default).roots_changes.fetch_add(1, Ordering::Relaxed);
        if let Some(forward) = self.0.server.forward() {
            forward.roots_changed(&self.0);
        }
    }

    fn waiting_call_ended(&self, call: CallId) {
        if let Some(forward) = self.0.server.forward() {
            forward.waiting_call_ended(&self.0, call);
        }
    }

    fn listening(&self, filter: &SubscriptionFilter) {
        if let Some(forward) = self.0.server.forward() {
            forward.listening(&self.0, filter);
        }
    }

    fn listens_for_tasks(
        &self,
        listener: TaskListener,
        context: Option<&RequestContext>,
        handle: &EngineHandle,
    ) {
        let own = context.and_then(|context| context.downcast_ref::<Connection>());
        let connection = own.unwrap_or(&self.0.connection);
        tasks::listen(&self.0.server, connection.principal.clone(), listener, handle.clone());
    }

    fn found(&self, finding: &Finding, message: Option<&[u8]>) {
        let is_told = self.0.connection.observed.finding(finding, message);
        self.0.server.record(Some(self.0.number), finding, is_told);
    }

    fn answered(&self, responded: &Responded, took: Duration) {
        method::record_responded(&self.0, responded, took);
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("number", &self.number).finish_non_exhaustive()
    }
}

/// One value of each type: what handlers keep with a server or a session.
#[derive(Default)]
pub(crate) struct TypeMap(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl TypeMap {
    /// The value of this type, made when it is first asked for.
    pub(crate) fn get<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut values = self.0.lock();
        let value = values.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default()));
        // The key is the type, so the other arm is never taken.
        value.clone().downcast().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There are many idle sessions, and with its two counts each fits into a block of 224 bytes.
    #[test]
    fn a_session_is_small() {
        assert!(size_of::<Session>() + 2 * size_of::<usize>() <= 224, "{}", size_of::<Session>());
    }
}
