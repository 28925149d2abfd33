//! A server, and running it over a pipe.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::{RwLock, RwLockReadGuard};
use refmcp_proto::engine::{Change, EngineConfig, ResumeError, Sealer, ServerEngine, SessionFacts};
use refmcp_proto::finding::Finding;
use refmcp_proto::time::Timestamp;
use refmcp_transport::changes::{ChangeReceiver, ChangeSender};
use refmcp_transport::clock::Clock;
use refmcp_transport::memory::{self, MemoryPipe};
use refmcp_transport::observer::{Observed, Observer, Side};
use refmcp_transport::pipe::{FrameReader, FrameWriter};
use refmcp_transport::{ConnectionEnd, Driver, DriverOptions, MemoryBudget, stdio};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

use crate::backplane::{Backplane, MemoryBackplane};
use crate::call::Call;
use crate::catalog::{Catalog, ParamHeader};
use crate::error::CallError;
use crate::forward::Forward;
use crate::method::{CallRecord, CustomMethod};
use crate::session::{Connection, Session, SessionService, TypeMap};
use crate::statistics::{MethodStatistics, OTHER_TOOLS, Statistics};
use crate::tasks::{self, TaskOptions};

/// A server: what it offers, and its rules. Cheap to clone; every clone is the same server.
#[derive(Clone)]
pub struct Server {
    inner: Arc<Inner>,
}

/// A server, as seen by those who must not keep it alive.
#[derive(Debug, Clone)]
pub struct WeakServer {
    inner: Weak<Inner>,
}

struct Inner {
    config: Arc<EngineConfig>,
    settings: Settings,
    catalog: RwLock<Catalog>,
    methods: HashMap<Arc<str>, CustomMethod>,
    forward: Option<Box<dyn Forward>>,
    hub: ChangeSender,
    running: Semaphore,
    backplane: OnceLock<Arc<dyn Backplane>>,
    statistics: Statistics,
    values: TypeMap,
    clock: Clock,
}

/// The parts of a session that has no driver yet.
#[derive(Debug)]
pub struct SessionParts {
    /// Its rules.
    pub engine: ServerEngine,
    /// Runs its calls.
    pub service: SessionService,
}

/// Settings that are no business of an engine.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) page_size: usize,
    pub(crate) max_running: usize,
    pub(crate) grace: Duration,
    pub(crate) on_call: Option<OnCall>,
    pub(crate) on_session: Option<OnSession>,
    pub(crate) before_tools: Option<BeforeTools>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) memory: MemoryBudget,
    pub(crate) tasks: TaskOptions,
}

impl Default for Settings {
    fn default() -> Self {
        let grace = Duration::from_secs(5);
        Self {
            page_size: 200,
            max_running: 4096,
            grace,
            on_call: None,
            on_session: None,
            before_tools: None,
            observer: None,
            memory: MemoryBudget::default(),
            tasks: TaskOptions::default(),
        }
    }
}

/// What hears of each call that has ended.
type OnCall = Arc<dyn Fn(&CallRecord<'_>) + Send + Sync>;

/// What hears of each session that has opened.
type OnSession = Arc<dyn Fn(&Arc<Session>) + Send + Sync>;

/// What each call of a tool does first.
type BeforeTools =
    Arc<dyn Fn(Call) -> Pin<Box<dyn Future<Output = Result<(), CallError>> + Send>> + Send + Sync>;

impl Server {
    pub(crate) fn assemble(
        config: EngineConfig,
        mut catalog: Catalog,
        methods: HashMap<Arc<str>, CustomMethod>,
        forward: Option<Box<dyn Forward>>,
        settings: Settings,
    ) -> Self {
        // What was there from the beginning is not announced.
        catalog.take_changes();
        let running = Semaphore::new(settings.max_running.min(Semaphore::MAX_PERMITS));
        let inner = Inner {
            config: Arc::new(config),
            catalog: RwLock::new(catalog),
            forward,
            hub: ChangeSender::default(),
            running,
            backplane: OnceLock::new(),
            statistics: Statistics::new(methods.keys().cloned()),
            methods,
            values: TypeMap::default(),
            clock: Clock::new(),
            settings,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Serves the process that started this one, over standard input and output, until it closes them or this
    /// process is told to stop.
    pub async fn stdio(&self) -> io::Result<ConnectionEnd> {
        self.serve_stdio(None).await
    }

    /// The same, with handlers on another runtime: even handlers that block all of its threads delay no message.
    pub async fn stdio_with_handlers_on(&self, handlers: Handle) -> io::Result<ConnectionEnd> {
        self.serve_stdio(Some(handlers)).await
    }

    async fn serve_stdio(&self, handlers: Option<Handle>) -> io::Result<ConnectionEnd> {
        let pipe = stdio::stdio(self.inner.config.limits.max_message_size)?;
        let stop = CancellationToken::new();
        let signals = tokio::spawn(stdio::cancel_on_signal_or_parent_exit(stop.clone()));
        let connection = Connection { transport: "stdio", local: true, ..Connection::default() };
        tracing::info!(target: "refmcp::stdio", "serving on standard input and output");
        let end = self.drive(pipe, connection, self.changes(), handlers, stop).await;
        signals.abort();
        match &end {
            Ok(end) => tracing::info!(target: "refmcp::stdio", ?end, "stopped"),
            Err(error) => tracing::info!(target: "refmcp::stdio", %error, "stopped"),
        }
        end
    }

    /// Serves one client over any pipe, until it is gone or `stop` is cancelled.
    pub async fn serve<R: FrameReader, W: FrameWriter>(
        &self,
        pipe: (R, W),
        connection: Connection,
        stop: CancellationToken,
    ) -> io::Result<ConnectionEnd> {
        self.drive(pipe, connection, self.changes(), None, stop).await
    }

    /// The same, with the changes that the client is told of: those of other processes too, where these share a backplane.
    pub async fn serve_with_changes<R: FrameReader, W: FrameWriter>(
        &self,
        pipe: (R, W),
        connection: Connection,
        changes: ChangeReceiver,
        stop: CancellationToken,
    ) -> io::Result<ConnectionEnd> {
        self.drive(pipe, connection, changes, None, stop).await
    }

    /// Serves a client in this process, in the background, and gives the client's end: for tests.
    pub fn in_memory(&self) -> MemoryPipe {
        let (near, far) = memory::pair(self.inner.config.limits.max_message_size);
        let server = self.clone();
        tokio::spawn(async move {
            let connection = Connection { transport: "memory", local: true, ..Connection::default() };
            if let Err(error) = server.serve(near, connection, CancellationToken::new()).await {
                tracing::error!(%error, "an in-memory connection failed");
            }
        });
        far
    }

    /// The parts of a session, for a driver of its own: the engine, and the service that runs its calls. The driver
    /// gives the session a handle to the engine with [`Session::connect`].
    pub fn open(&self, config: Arc<EngineConfig>, connection: Connection) -> SessionParts {
        let engine = ServerEngine::new(config, connection.principal.clone());
        let session = Session::new(self.clone(), connection);
        SessionParts { engine, service: SessionService(session) }
    }

    /// The same for a session that another process has opened, with an engine of this epoch.
    pub fn resume(
        &self,
        config: Arc<EngineConfig>,
        connection: Connection,
        epoch: u32,
        facts: Option<&SessionFacts>,
    ) -> Result<SessionParts, ResumeError> {
        let engine = ServerEngine::resume(config, connection.principal.clone(), self.now(), epoch, facts)?;
        let session = Session::new(self.clone(), connection);
        Ok(SessionParts { engine, service: SessionService(session) })
    }

    /// Keeps in this backplane what processes of one server share, instead of in memory. The first one counts; an HTTP
    /// endpoint gives the server its own.
    pub fn use_backplane(&self, backplane: Arc<dyn Backplane>) {
        let _ = self.inner.backplane.set(backplane);
    }

    /// What processes of this server share.
    pub fn backplane(&self) -> &Arc<dyn Backplane> {
        self.inner.backplane.get_or_init(|| Arc::new(MemoryBackplane::default()))
    }

    /// The bytes that are held for clients, and their limit.
    pub fn memory(&self) -> &MemoryBudget {
        &self.inner.settings.memory
    }

    /// News of everything that changes from now on.
    pub fn changes(&self) -> ChangeReceiver {
        self.inner.hub.subscribe()
    }

    async fn drive<R: FrameReader, W: FrameWriter>(
        &self,
        pipe: (R, W),
        mut connection: Connection,
        changes: ChangeReceiver,
        handlers: Option<Handle>,
        stop: CancellationToken,
    ) -> io::Result<ConnectionEnd> {
        if let Some(observer) = self.observer()
            && connection.observed.id().is_none()
        {
            let (transport, peer) =
                (connection.transport, connection.principal.as_deref().unwrap_or_default());
            connection.observed =
                Observed::open(observer.clone(), Side::Server, transport, peer, self.clock());
        }
        let SessionParts { engine, service } = self.open(self.pipe_config(&connection), connection);
        let session = service.session().clone();
        let (clock, grace) = (self.inner.clock, self.inner.settings.grace);
        let observed = session.connection().observed.clone();
        let feed = Some(changes);
        let memory = session.memory();
        let options = DriverOptions { clock, feed, handlers, grace, observed: observed.clone(), memory };
        let driver = Driver::new(pipe, engine, service, options);
        session.connect(driver.handle());
        tracing::debug!(session = session.number(), "connected");
        let end = driver.run(stop).await;
        tracing::debug!(session = session.number(), ?end, "disconnected");
        match &end {
            Ok(end) => observed.closed(end),
            Err(error) => observed.closed(error),
        }
        end
    }

    /// The rules of a connection over a pipe. Where clients cannot be told apart, none is shown the tasks of others.
    fn pipe_config(&self, connection: &Connection) -> Arc<EngineConfig> {
        let config = &self.inner.config;
        let has_one_client = matches!(connection.transport, "stdio" | "memory");
        if has_one_client || connection.principal.is_some() || config.capabilities.tasks.is_none() {
            return config.clone();
        }
        let mut config = EngineConfig::clone(config);
        tasks::undeclare_list(&mut config.capabilities);
        Arc::new(config)
    }

    /// Changes the lists of the whole server and announces to every client which of them have changed. Returns what the
    /// function returns.
    ///
    /// ```
    /// # use refmcp_server::{Call, InvalidTool, NoArguments, Resource, Server, Tool, model::ResourceContents};
    /// # fn add(server: &Server, tool: Tool, resource: Resource) -> Result<(), InvalidTool> {
    /// server.change_lists(|lists| {
    ///     lists.add_resource(resource);
    ///     lists.remove_prompt("greet");
    ///     lists.add_tool(tool)
    /// })
    /// # }
    /// ```
    pub fn change_lists<T>(&self, change: impl FnOnce(&mut Catalog) -> T) -> T {
        let mut catalog = self.inner.catalog.write();
        let returned = change(&mut catalog);
        let changes = catalog.take_changes();
        drop(catalog);
        changes.iter().for_each(|change| self.changed(change));
        returned
    }

    /// Tells every client that wants to know that something has changed.
    pub fn changed(&self, change: &Change) {
        self.inner.hub.publish(change);
    }

    /// Tells every subscriber that a resource has changed.
    pub fn resource_updated(&self, uri: impl Into<String>) {
        self.changed(&Change::Resource(uri.into()));
    }

    /// What the server says about itself and its protocol.
    pub fn config(&self) -> &EngineConfig {
        &self.inner.config
    }

    /// The items of the server, without those of single sessions.
    pub fn catalog(&self) -> RwLockReadGuard<'_, Catalog> {
        self.inner.catalog.read()
    }

    /// The server's value of this type, made when it is first asked for.
    pub fn value<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        self.inner.values.get()
    }

    /// The same server, for timers and threads that should not outlive it.
    pub fn downgrade(&self) -> WeakServer {
        WeakServer { inner: Arc::downgrade(&self.inner) }
    }

    /// The arguments of a tool that headers repeat, where a transport has headers.
    pub fn mirrored_arguments(&self, tool: &str) -> Vec<ParamHeader> {
        self.catalog().tools.get(tool).map(|tool| tool.mirrored.clone()).unwrap_or_default()
    }

    /// What the server has done so far, in numbers.
    pub fn statistics(&self) -> &Statistics {
        &self.inner.statistics
    }

    /// Counts and logs what a client did wrong, in the session of this number or in a message that is of none. It is only
    /// counted where an observer has told of it already.
    pub fn record(&self, session: Option<u64>, finding: &Finding, is_told: bool) {
        self.inner.statistics.findings.record(self.now(), session, finding, is_told);
    }

    /// The calls of each tool that the server offers, by name. The last are all others: tools of single sessions, tools
    /// beyond the first 256, names that are no tool's.
    pub fn tool_statistics(&self) -> Vec<(String, Arc<MethodStatistics>)> {
        let catalog = self.catalog();
        let own = catalog
            .tools
            .iter()
            .filter_map(|tool| Some((tool.definition.name.clone(), tool.statistics.clone()?)));
        own.chain([(OTHER_TOOLS.to_owned(), self.inner.statistics.other_tools().clone())]).collect()
    }

    /// What sees each message, if there is an observer.
    pub fn observer(&self) -> Option<&Arc<dyn Observer>> {
        self.inner.settings.observer.as_ref()
    }

    /// The clock that everything here goes by.
    pub fn clock(&self) -> Clock {
        self.inner.clock
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    pub(crate) fn sealer(&self) -> &dyn Sealer {
        &*self.inner.config.sealer
    }

    pub(crate) fn custom_method(&self, name: &str) -> Option<&CustomMethod> {
        self.inner.methods.get(name)
    }

    /// What serves the calls in place of the catalog, where there is such.
    pub(crate) fn forward(&self) -> Option<&dyn Forward> {
        self.inner.forward.as_deref()
    }

    /// Takes leave to run a handler, if there is room for one more.
    pub(crate) fn try_take_turn(&self) -> bool {
        self.inner.running.try_acquire().map(SemaphorePermit::forget).is_ok()
    }

    /// Takes leave to run a handler, once there is room for one more.
    pub(crate) async fn take_turn(self) {
        // Waiting fails only once the semaphore is closed, which it never is.
        let _ = self.inner.running.acquire().await.map(SemaphorePermit::forget);
    }

    pub(crate) fn end_turn(&self) {
        self.inner.running.add_permits(1);
    }
}

impl WeakServer {
    /// The server, if it is still there.
    pub fn upgrade(&self) -> Option<Server> {
        self.inner.upgrade().map(|inner| Server { inner })
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("info", &self.inner.config.server_info).finish_non_exhaustive()
    }
}
