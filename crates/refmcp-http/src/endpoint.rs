//! The MCP endpoint: a router to mount, or a listener to serve.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::Router;
use axum::extract::{OriginalUri, Request, State};
use axum::http::Uri;
use axum::http::request::Parts;
use axum::routing::any;
use parking_lot::Mutex;
use refmcp_auth::uri::PROTECTED_RESOURCE;
use refmcp_proto::engine::server::PeerCache;
use refmcp_proto::engine::{Change, DuplicateIds, EarlyRequests, EngineConfig};
use refmcp_server::backplane::{Backplane, MemoryBackplane, PostKey, TopicChanges};
use refmcp_server::tasks::undeclare_list;
use refmcp_server::transport::changes::ChangeSender;
use refmcp_server::transport::clock::Clock;
use refmcp_server::{Connection, Limits, Revision, Server, SessionParts};
use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;

use crate::access::caller::Client;
use crate::access::client_memory::ClientMemory;
use crate::access::rate_limit::RateLimiter;
use crate::ops::health::OpsRoutes;
use crate::ops::metrics::{GaugeGuard, Metrics};
use crate::ops::refusal_log::RefusalLog;
use crate::options::Options;
use crate::refusal::{Reason, Refusal};
use crate::request::headers::SessionHeaders;
use crate::request::observed::ObservedRequest;
use crate::routes::{ROUTES, Route};
use crate::session::Sessions;
use crate::session::driver::{SessionDriver, WeakSessionDriver};

/// The longest interval between two sweeps of sessions and streams.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// How long a request may wait for `initialized`, which may arrive later on another connection.
const INITIALIZED_TIMEOUT: Duration = Duration::from_secs(1);

/// The delay before changes at other replicas are asked for again.
const CHANGES_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Changes that are kept while other replicas cannot be told.
const MAX_UNPUBLISHED: usize = 1024;

/// Sessions that are notified of a change before other tasks get a turn.
const CHANGE_BATCH: usize = 256;

/// Bytes of the facts of a session that several processes serve.
const FACTS_BYTES: usize = 60 << 10;

/// An MCP server over HTTP.
#[derive(Debug, Clone)]
pub struct Endpoint {
    pub(crate) inner: Arc<EndpointState>,
}

/// Builds an [`Endpoint`].
#[derive(Debug)]
pub struct EndpointBuilder {
    server: Server,
    options: Options,
    backplane: Option<Arc<dyn Backplane>>,
}

impl EndpointBuilder {
    /// Sets the options of the endpoint.
    #[must_use]
    pub fn options(self, options: Options) -> Self {
        Self { options, ..self }
    }

    /// Keeps sessions and their streams in this backplane instead of in memory. Endpoints that share one, in any number of
    /// processes, serve each other's sessions. Their servers offer the same, and have the same
    /// [key](refmcp_server::ServerBuilder::seal_key).
    #[must_use]
    pub fn backplane(self, backplane: Arc<dyn Backplane>) -> Self {
        Self { backplane: Some(backplane), ..self }
    }

    /// The endpoint. Its background task ends when the last clone is dropped.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn build(self) -> Endpoint {
        let Self { server, mut options, backplane } = self;
        let budget = server.memory().clone();
        // What can be given up must leave room for what cannot.
        options.total_bytes = options.total_bytes.min(budget.limit() / 2);
        let memory = || {
            Arc::new(MemoryBackplane::with_budget(options.backplane_settings(), &budget))
                as Arc<dyn Backplane>
        };
        let is_shared = backplane.is_some();
        let backplane = backplane.unwrap_or_else(memory);
        server.use_backplane(backplane.clone());
        options.resource_server =
            options.resource_server.take().map(|resource_server| resource_server.for_endpoint(&options));
        let mut config = server.config().clone();
        if config.policy.early_requests == EarlyRequests::Refuse {
            config.policy.early_requests = EarlyRequests::Hold(INITIALIZED_TIMEOUT);
        }
        if options.serve_duplicate_ids {
            config.policy.duplicate_ids = DuplicateIds::Serve;
        } else if config.policy.duplicate_ids == DuplicateIds::Refuse {
            config.policy.duplicate_ids = DuplicateIds::RefuseUnlessLenient;
        }
        config.max_facts_bytes = is_shared.then_some(FACTS_BYTES);
        if options.resource_server.is_none() {
            // Clients cannot be told apart, so none is shown the tasks of others.
            undeclare_list(&mut config.capabilities);
        }
        config.policy.announce_end = false;
        config.policy.null_error_id = true;
        let clock = server.clock();
        let inner = Arc::new(EndpointState {
            server,
            rates: options.rate.map(RateLimiter::new),
            extra_paths: extra_paths(&options),
            revisions: Revision::ALL.iter().map(|revision| (*revision, revision.as_str().into())).collect(),
            sessions: Sessions::new(clock, &options, backplane, is_shared),
            options,
            config: Arc::new(config),
            peers: Arc::default(),
            session_headers: SessionHeaders::default(),
            clock,
            memory: ClientMemory::new(budget),
            metrics: Metrics::default(),
            refusal_log: RefusalLog::default(),
            listeners: Mutex::default(),
            notified: ChangeSender::default(),
            draining: AtomicBool::new(false),
            stop: CancellationToken::new(),
        });
        tokio::spawn(maintain(Arc::downgrade(&inner)));
        Endpoint { inner }
    }
}

#[derive(Debug)]
pub(crate) struct EndpointState {
    pub(crate) server: Server,
    pub(crate) options: Options,
    pub(crate) config: Arc<EngineConfig>,
    /// Clients that were described lately.
    pub(crate) peers: Arc<PeerCache>,
    /// Headers that sessions were opened with.
    pub(crate) session_headers: SessionHeaders,
    pub(crate) clock: Clock,
    pub(crate) sessions: Sessions,
    pub(crate) memory: ClientMemory,
    pub(crate) metrics: Metrics,
    pub(crate) refusal_log: RefusalLog,
    pub(crate) rates: Option<RateLimiter>,
    pub(crate) extra_paths: Vec<String>,
    /// The names of the revisions, shared by all sessions.
    revisions: Vec<(Revision, Arc<str>)>,
    /// Drivers without a session that listen for changes.
    listeners: Mutex<Vec<WeakSessionDriver>>,
    /// Changes, wherever they were made, for clients over WebSocket.
    pub(crate) notified: ChangeSender,
    /// Whether `/readyz` sends new work elsewhere, since the server is about to stop.
    draining: AtomicBool,
    pub(crate) stop: CancellationToken,
}

impl Endpoint {
    /// An endpoint for this server, with default options and state in memory.
    pub fn builder(server: Server) -> EndpointBuilder {
        EndpointBuilder { server, options: Options::default(), backplane: None }
    }

    /// Every route with its methods; the MCP endpoint and its WebSocket are where [`Options::path`] has them.
    pub fn routes() -> &'static [Route] {
        &ROUTES
    }

    /// The routes, to be merged into an application. The addresses of clients are known if the application is served with
    /// `ConnectInfo`; otherwise no client is taken to be local, and none has a rate limit.
    pub fn router(&self) -> Router {
        let inner = &self.inner;
        let served = ROUTES.iter().filter(|route| inner.serves(route)).map(|route| route.target);
        let paths = served.map(|target| inner.options.path.of(target)).filter(|path| !path.is_empty());
        let extra = inner.extra_paths.iter().map(String::as_str);
        self.router_of(paths.chain([BELOW_METADATA]).chain(extra))
    }

    /// The protected resource metadata, for the root of an application that nests the router.
    pub fn well_known(&self) -> Router {
        self.router_of([PROTECTED_RESOURCE, BELOW_METADATA])
    }

    fn router_of<'a>(&self, paths: impl IntoIterator<Item = &'a str>) -> Router {
        let serve = |State(endpoint): State<Self>, request: Request| async move {
            let client = Client::of_request(&request);
            let memory = endpoint.inner.memory.connection(client, &endpoint.inner.options.trusted_proxies);
            endpoint.answer(client, &memory, request).await
        };
        let routes = paths.into_iter().fold(Router::new(), |router, path| router.route(path, any(serve)));
        routes.with_state(self.clone())
    }

    /// Reports at `/readyz` that new work should go elsewhere, and goes on serving. [`Endpoint::serve_with_shutdown`]
    /// does it when its shutdown begins; an application that serves the router itself does it some time before
    /// [`Endpoint::shut_down`].
    pub fn drain(&self) {
        self.inner.draining.store(true, Ordering::Relaxed);
    }

    /// Ends streams that would never end by themselves and accepts no new sessions; calls go on. [`Endpoint::serve`] does
    /// it when it is told to stop; an application that serves the router itself does it before it stops.
    pub fn shut_down(&self) {
        self.inner.stop.cancel();
        for listener in self.inner.listeners() {
            listener.wind_down();
        }
        for session in self.inner.sessions.all() {
            session.driver.wind_down();
        }
    }
}

/// The route of metadata of one of several resources.
const BELOW_METADATA: &str = "/.well-known/oauth-protected-resource/{*resource}";

impl EndpointState {
    /// Whether a route is served here, and not on the operators' listener.
    pub(crate) fn serves(&self, route: &Route) -> bool {
        self.options.ops == OpsRoutes::Public || !route.target.is_ops()
    }

    /// Refuses new work while the server stops.
    pub(crate) fn check_running(&self) -> Result<(), Refusal> {
        if self.stop.is_cancelled() { Err(Refusal::stopping()) } else { Ok(()) }
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    pub(crate) fn acquire_in_flight(&self) -> Result<GaugeGuard, Refusal> {
        let full = || Refusal::unavailable(Reason::InFlight, "too many requests are being answered", 1);
        self.metrics.in_flight.enter(self.options.max_in_flight).ok_or_else(full)
    }

    pub(crate) fn acquire_stream(&self) -> Result<GaugeGuard, Refusal> {
        let full = || Refusal::unavailable(Reason::Streams, "too many streams are being read", 1);
        self.metrics.streams.enter(self.options.max_open_streams).ok_or_else(full)
    }

    pub(crate) fn open_driver(
        &self,
        observed: &ObservedRequest,
        mut connection: Connection,
    ) -> SessionDriver {
        connection.observed = observed.open(connection.transport);
        let SessionParts { engine, service } = self.server.open(self.config.clone(), connection);
        let engine = engine.with_peers(self.peers.clone());
        SessionDriver::new(SessionParts { engine, service }, self.options.stream_bytes)
    }

    /// The limits of a message: those of the engine, with the limit of the body.
    pub(crate) fn limits(&self) -> Limits {
        Limits { max_message_size: self.options.max_message_size, ..self.config.limits }
    }

    pub(crate) fn revision_name(&self, revision: Revision) -> Arc<str> {
        let known = self.revisions.iter().find(|(known, _)| *known == revision);
        known.map_or_else(|| revision.as_str().into(), |(_, name)| name.clone())
    }

    /// Notifies a driver of changes for as long as it lives.
    pub(crate) fn add_listener(&self, driver: &SessionDriver) {
        let mut listeners = self.listeners.lock();
        listeners.retain(|listener| listener.upgrade().is_some());
        listeners.push(driver.downgrade());
    }

    fn listeners(&self) -> Vec<SessionDriver> {
        let listeners = self.listeners.lock();
        listeners.iter().filter_map(WeakSessionDriver::upgrade).collect()
    }

    /// The resources whose changes any client here has subscribed to.
    pub(crate) fn watched_resources(&self) -> BTreeSet<String> {
        let (sessions, listeners) = (self.sessions.all(), self.listeners());
        let drivers = sessions.iter().map(|session| &session.driver).chain(&listeners);
        drivers.flat_map(SessionDriver::watched_resources).collect()
    }

    /// Notifies all sessions, listeners and WebSockets of a change, a batch at a time.
    pub(crate) async fn notify_all(&self, change: &Change, key: Option<PostKey>) {
        self.notified.publish(change);
        let sessions = self.sessions.all();
        let listeners = self.listeners();
        let drivers = sessions.iter().map(|session| &session.driver).chain(&listeners);
        for (count, driver) in (1..).zip(drivers) {
            driver.changed(change, key);
            if count % CHANGE_BATCH == 0 {
                yield_now().await;
            }
        }
    }
}

/// The extra routes that do not hide a route of the endpoint.
fn extra_paths(options: &Options) -> Vec<String> {
    let mut paths = options.extra_routes.as_ref().map(|extra| extra.paths()).unwrap_or_default();
    paths.retain(|path| path.starts_with('/') && options.path.route(path).is_none());
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// The URI as the client wrote it, wherever the endpoint is mounted.
pub(crate) fn original_uri(head: &Parts) -> &Uri {
    head.extensions.get::<OriginalUri>().map_or(&head.uri, |OriginalUri(whole)| whole)
}

/// The background task: notifies of changes, and sweeps idle sessions and old streams.
async fn maintain(endpoint: Weak<EndpointState>) {
    let Some(inner) = endpoint.upgrade() else { return };
    let (feed, mut sweep) = (inner.server.changes(), tokio::time::interval(sweep_every(&inner.options)));
    let (backplane, is_shared) = (inner.sessions.backplane.clone(), inner.sessions.is_shared);
    drop(inner);
    let (mut latest, mut unpublished) = (None, BTreeSet::new());
    loop {
        tokio::select! {
            () = feed.changed() => {
                let Some(endpoint) = endpoint.upgrade() else { return };
                for change in feed.take() {
                    if !is_shared {
                        endpoint.notify_all(&change, None).await;
                    } else if !endpoint.publish(&change).await {
                        endpoint.notify_all(&change, None).await;
                        keep_unpublished(&mut unpublished, change);
                    }
                }
            }
            () = tokio::time::sleep(CHANGES_RETRY_DELAY), if !unpublished.is_empty() => {
                let Some(endpoint) = endpoint.upgrade() else { return };
                while let Some(change) = unpublished.pop_first() {
                    if !endpoint.publish(&change).await {
                        unpublished.insert(change);
                        break;
                    }
                }
            }
            changes = next_changes(&*backplane, &mut latest), if is_shared => {
                let Some(endpoint) = endpoint.upgrade() else { return };
                endpoint.take_changes(&changes).await;
            }
            _ = sweep.tick() => {
                let Some(endpoint) = endpoint.upgrade() else { return };
                endpoint.log_left_out();
                endpoint.sessions.sweep(&endpoint.options).await;
            }
        }
    }
}

/// Keeps a change until other replicas can be told. Where there are too many, they are told of the lists instead.
fn keep_unpublished(unpublished: &mut BTreeSet<Change>, change: Change) {
    if unpublished.len() >= MAX_UNPUBLISHED {
        tracing::warn!("other replicas hear of changed lists, and not of each changed resource");
        unpublished.clear();
        unpublished.extend([Change::Tools, Change::Prompts, Change::Resources]);
    }
    unpublished.insert(change);
}

/// What has changed at any replica since the last time. Dropping the future loses nothing.
async fn next_changes(backplane: &dyn Backplane, latest: &mut Option<u64>) -> TopicChanges {
    loop {
        let changes = match *latest {
            Some(latest) => backplane.changes(latest).await,
            None => {
                backplane.latest().await.map(|latest| TopicChanges { topics: vec![], missed: false, latest })
            }
        };
        match changes {
            Ok(changes) => {
                *latest = Some(changes.latest);
                return changes;
            }
            Err(error) => {
                tracing::warn!(%error, "changes at other replicas are not heard of");
                tokio::time::sleep(CHANGES_RETRY_DELAY).await;
            }
        }
    }
}

/// Often enough that nothing is kept much longer than its time.
fn sweep_every(options: &Options) -> Duration {
    let shortest = options.session_timeout.min(options.retention).min(options.initialize_within);
    SWEEP_INTERVAL.min(shortest / 4).max(Duration::from_millis(50))
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[tokio::test]
    async fn other_tasks_get_a_turn_while_many_sessions_are_notified() {
        let endpoint = Endpoint::builder(Server::builder("crowded", "1").build().unwrap()).build();
        let drivers: Vec<_> = (0..=CHANGE_BATCH * 2)
            .map(|_| endpoint.inner.open_driver(&ObservedRequest::default(), Connection::default()))
            .collect();
        drivers.iter().for_each(|driver| endpoint.inner.add_listener(driver));
        let mut notifying = std::pin::pin!(endpoint.inner.notify_all(&Change::Tools, None));
        let mut context = Context::from_waker(Waker::noop());
        let mut turns = std::iter::repeat_with(|| notifying.as_mut().poll(&mut context));
        assert_eq!(turns.position(|turn| turn == Poll::Ready(())), Some(2));
    }
}
