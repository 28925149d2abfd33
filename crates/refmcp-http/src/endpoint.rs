//! The whole thing: a router to mount into an application, or a listener to serve.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::Router;
use axum::extract::{OriginalUri, Request, State};
use axum::http::{Extensions, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use parking_lot::Mutex;
use refmcp_auth::resource::{form_names_token, is_form};
use refmcp_auth::uri::PROTECTED_RESOURCE;
use refmcp_proto::engine::{Change, DuplicateIds, EarlyRequests, EngineConfig};
use refmcp_server::backplane::{Backplane, MemoryBackplane};
use refmcp_server::transport::clock::Clock;
use refmcp_server::{Connection, Limits, Revision, Server};
use tokio::task::yield_now;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::access::caller::{Caller, Client};
use crate::access::forwarded::{self, ForwardedOrigin};
use crate::access::rate::RateLimiter;
use crate::access::resource_server::{Head, ResourceServer, TokenStatus};
use crate::access::{cors, guard};
use crate::extra_routes::ExtraRoutes;
use crate::ops::health;
use crate::ops::health::OpsRoutes;
use crate::ops::metrics::{GaugeGuard, Metrics};
use crate::ops::refusal_log::{RefusalLog, logged_path};
use crate::options::Options;
use crate::refusal::{Reason, Refusal};
use crate::request::post::read_at_most;
use crate::request::{delete, get, http_sse, post, websocket};
use crate::routes::{ROUTES, Route, Target};
use crate::session::Sessions;
use crate::session::driver::SessionDriver;

/// How often sessions and streams are looked through for old ones, at most.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// Bytes of a form that are looked at.
const FORM: usize = 64 << 10;

/// How long a request may wait for `initialized`, which another connection may carry and be slower.
const INITIALIZED_WITHIN: Duration = Duration::from_secs(1);

/// How many are told of a change before others get a turn: a crowd that is told all at once holds up everybody else.
const TOLD_AT_ONCE: usize = 256;

/// A request that is being served.
type Serving<'a> = Pin<Box<dyn Future<Output = Result<Response, Refusal>> + Send + 'a>>;

/// A server's HTTP side.
#[derive(Debug, Clone)]
pub struct Endpoint {
    pub(crate) inner: Arc<Inner>,
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

    /// Keeps sessions and their streams in this backplane instead of in memory.
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
        let memory = || Arc::new(MemoryBackplane::new(self.options.memory())) as Arc<dyn Backplane>;
        let backplane = self.backplane.unwrap_or_else(memory);
        Endpoint::new(self.server, self.options, backplane)
    }
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) server: Server,
    pub(crate) options: Options,
    pub(crate) config: Arc<EngineConfig>,
    pub(crate) clock: Clock,
    pub(crate) sessions: Sessions,
    pub(crate) metrics: Metrics,
    pub(crate) refusal_log: RefusalLog,
    rates: Option<RateLimiter>,
    /// The paths of whatever else is served.
    extra_paths: Vec<String>,
    /// The names of the revisions, once for all sessions.
    revisions: Vec<(Revision, Arc<str>)>,
    /// Conversations without a session that want to hear of changes.
    listeners: Mutex<Vec<Weak<SessionDriver>>>,
    /// Whether the server is about to stop, and new work should go elsewhere.
    pub(crate) draining: AtomicBool,
    pub(crate) stop: CancellationToken,
}

impl Endpoint {
    /// An endpoint for this server, with default options and state in memory.
    pub fn builder(server: Server) -> EndpointBuilder {
        EndpointBuilder { server, options: Options::default(), backplane: None }
    }

    fn new(server: Server, mut options: Options, backplane: Arc<dyn Backplane>) -> Self {
        options.resource_server =
            options.resource_server.take().map(|resource_server| resource_server.at(&options));
        let mut config = server.config().clone();
        if config.policy.early_requests == EarlyRequests::Refuse {
            config.policy.early_requests = EarlyRequests::Hold(INITIALIZED_WITHIN);
        }
        if options.serve_duplicate_ids {
            config.policy.duplicate_ids = DuplicateIds::Serve;
        } else if config.policy.duplicate_ids == DuplicateIds::Refuse {
            config.policy.duplicate_ids = DuplicateIds::RefuseUnlessLenient;
        }
        config.policy.announce_end = false;
        let clock = server.clock();
        let inner = Arc::new(Inner {
            server,
            rates: options.rate.map(RateLimiter::new),
            extra_paths: extra_paths(&options),
            revisions: Revision::ALL.iter().map(|revision| (*revision, revision.as_str().into())).collect(),
            sessions: Sessions::new(clock, options.session_idle, backplane),
            options,
            config: Arc::new(config),
            clock,
            metrics: Metrics::default(),
            refusal_log: RefusalLog::default(),
            listeners: Mutex::default(),
            draining: AtomicBool::new(false),
            stop: CancellationToken::new(),
        });
        tokio::spawn(keep_house(Arc::downgrade(&inner)));
        Self { inner }
    }

    /// Everything that is served, and with which methods; the main endpoint and its WebSocket are where
    /// [`Options::path`] has them.
    pub fn routes() -> &'static [Route] {
        &ROUTES
    }

    /// The routes, to be merged into any application. An application that is served with `ConnectInfo` lets the
    /// endpoint know who its clients are; without, none is taken to be on this machine, and none has a rate.
    pub fn router(&self) -> Router {
        let serve = |State(endpoint): State<Self>, request: Request| async move {
            let client = Client::of(&request);
            endpoint.answer(client, request).await
        };
        let below = format!("{PROTECTED_RESOURCE}/{{*resource}}");
        let (inner, path) = (&self.inner, &self.inner.options.path);
        let served =
            (0..ROUTES.len()).filter(|place| inner.serves(&ROUTES[*place])).map(|place| path.at(place));
        let ours = served.chain([below.as_str()]);
        let all = ours.chain(self.inner.extra_paths.iter().map(String::as_str));
        all.fold(Router::new(), |router, path| router.route(path, any(serve))).with_state(self.clone())
    }

    /// What an application has at its root that nests the router: the documents about the server as a protected
    /// resource, which are nowhere else.
    pub fn well_known(&self) -> Router {
        let serve = |State(endpoint): State<Self>, request: Request| async move {
            let client = Client::of(&request);
            endpoint.answer(client, request).await
        };
        let below = format!("{PROTECTED_RESOURCE}/{{*resource}}");
        Router::new().route(PROTECTED_RESOURCE, any(serve)).route(&below, any(serve)).with_state(self.clone())
    }

    /// Says at `/readyz` that new work should go elsewhere, and goes on serving whatever comes.
    /// [`Endpoint::serve_with_shutdown`] does it when its shutdown begins; an application that serves the router itself does it
    /// some time before [`Endpoint::shut_down`].
    pub fn drain(&self) {
        self.inner.draining.store(true, Ordering::Relaxed);
    }

    /// Ends properly what would never end by itself, and takes nothing new; calls go on. [`Endpoint::serve`] does it
    /// when it is told to stop; an application that serves the router itself does it before it stops.
    pub fn shut_down(&self) {
        self.inner.stop.cancel();
        for listener in self.inner.listeners() {
            listener.wind_down();
        }
        for session in self.inner.sessions.all() {
            session.conversation.wind_down();
        }
    }

    /// Answers one request.
    pub(crate) async fn answer(&self, client: Client, mut request: Request) -> Response {
        let began = Instant::now();
        let inner = &self.inner;
        let resolved = forwarded::resolve(&inner.options.trusted_proxies, client, &mut request);
        let (client, misled) =
            resolved.map_or_else(|refusal| (client, Some(refusal)), |client| (client, None));
        let route = inner.options.path.place(request.uri().path());
        let route = route.filter(|place| inner.serves(&ROUTES[*place]));
        let extra = inner.extra_at(route, request.uri().path());
        // What the log says of a refusal; the query stays out of it, since it may name a session.
        let method = request.method().clone();
        let unknown_path = route.is_none().then(|| logged_path(request.uri().path()));
        let span = tracing::info_span!(
            target: "refmcp::http", "request", client = client.address.map(tracing::field::display),
            method = %request.method(), path = route.map(|place| inner.options.path.at(place))
        );
        let origin = request.headers().get(header::ORIGIN).cloned();
        let admitted = misled
            .map_or_else(|| inner.admit(client, &request, route.map(|place| &ROUTES[place]), extra), Err);
        // A page that may not speak to us may not read what we say, either.
        let origin = origin.filter(|_| !matches!(&admitted, Err(refusal) if refusal.is_about_the_caller()));
        let served = match admitted {
            Ok(Some(route)) => inner.dispatch(route, client, request).instrument(span.clone()).await,
            Ok(None) => match extra {
                Some(extra) => Box::pin(inner.answer_extra(extra, request)).instrument(span.clone()).await,
                None => Err(nothing_here()),
            },
            Err(refusal) => Err(refusal),
        };
        let mut response = served.unwrap_or_else(|refusal| {
            let known_path = route.map(|place| ROUTES[place].path);
            inner.refused(client, Some(&method), known_path.or(unknown_path.as_deref()), &refusal);
            refusal.into_response()
        });
        if let Some(origin) = origin {
            cors::expose(&mut response, origin);
        }
        let (status, took) = (response.status(), began.elapsed());
        inner.metrics.answered(route, status, took);
        tracing::debug!(target: "refmcp::http", parent: &span, status = status.as_u16(), seconds = took.as_secs_f64(), "answered");
        response
    }
}

impl Inner {
    /// Whether a route is served here, and not on a listener of its own.
    fn serves(&self, route: &Route) -> bool {
        self.options.ops == OpsRoutes::Public || !route.target.is_ops()
    }

    /// Whoever else is served at a path that is none of ours.
    fn extra_at(&self, route: Option<usize>, path: &str) -> Option<&dyn ExtraRoutes> {
        let extra = self.options.extra_routes.as_deref()?;
        (route.is_none() && self.extra_paths.iter().any(|known| known == path)).then_some(extra)
    }

    /// Whether a request is served at all, and by which route if by one of ours; decided before anything of its body is
    /// read.
    fn admit<'a>(
        &self,
        client: Client,
        request: &Request,
        route: Option<&'a Route>,
        extra: Option<&dyn ExtraRoutes>,
    ) -> Result<Option<&'a Route>, Refusal> {
        let Options { hosts, origins, .. } = &self.options;
        let (uri, headers) = (request.uri(), request.headers());
        guard::check_host(hosts, client.called, uri, headers)
            .map_err(|foreign| Refusal::foreign(foreign, headers))?;
        if let Some(host) =
            request.extensions().get::<ForwardedOrigin>().and_then(|called| called.host.as_deref())
        {
            // Beside the other: pages can send this header, and not every proxy replaces it.
            guard::check_forwarded_host(hosts, client.called, host)
                .map_err(|why| Refusal::foreign_forwarded_host(why, host))?;
        }
        let public = match (route, extra) {
            // Anybody may know whose tokens are taken here, on whatever page.
            (Some(route), _) => route.target == Target::Document && self.options.resource_server.is_some(),
            (None, Some(extra)) => extra.allows_any_origin(request.uri().path()),
            (None, None) => false,
        };
        if !public {
            guard::check_origin(hosts, origins, client.called, headers)
                .map_err(|foreign| Refusal::foreign(foreign, headers))?;
        }
        if let (Some(rates), Some(address)) = (&self.rates, client.counted_as())
            && (self.options.rate_on_loopback || !client.is_local())
            && let Err(seconds) = rates.take(address, self.clock.now())
        {
            return Err(Refusal::too_many(Reason::Rate, "too many requests from this client", seconds));
        }
        if extra.is_some() {
            return Ok(None);
        }
        let route = route.ok_or_else(nothing_here)?;
        let method = request.method();
        if method != Method::OPTIONS && !route.methods.contains(&method.as_str()) {
            return Err(Refusal::method(
                route.methods,
                http_sse::wrong_method(&self.options.path, route.target, request),
            ));
        }
        Ok(Some(route))
    }

    /// Leads a request to whoever answers it.
    async fn dispatch(
        self: &Arc<Self>,
        route: &Route,
        client: Client,
        request: Request,
    ) -> Result<Response, Refusal> {
        if request.method() == Method::OPTIONS {
            return Ok(cors::preflight(route.methods, request.headers()));
        }
        match route.target {
            Target::Health => return Ok(health::health()),
            Target::Ready => return health::ready(self),
            Target::Metrics if self.options.resource_server.is_none() => return Ok(health::metrics(self)),
            Target::Document => {
                let resource_server = self.options.resource_server.as_ref().ok_or_else(nothing_here)?;
                return resource_server.document(&self.head(&request));
            }
            Target::Metrics | Target::Mcp | Target::WebSocket | Target::Events | Target::Messages => {}
        }
        match &self.options.resource_server {
            // Boxed: where nobody has to show anything, connections need no room for it.
            Some(resource_server) => {
                Box::pin(self.serve_granted(resource_server, route, client, request)).await
            }
            None => {
                let _counted = self.counted()?;
                let origin = forwarded::origin(&request);
                self.serve(route, Caller { client, grant: None, origin }, request).await
            }
        }
    }

    /// Serves a request if the resource_server lets it in.
    async fn serve_granted(
        self: &Arc<Self>,
        resource_server: &ResourceServer,
        route: &Route,
        client: Client,
        request: Request,
    ) -> Result<Response, Refusal> {
        let admission = match resource_server.admit(&self.head(&request)) {
            Ok(admission) => admission,
            Err(refusal) if is_form(request.headers()) => {
                return Err(self.refuse_form(resource_server, refusal, request).await);
            }
            Err(refusal) => return Err(post::unread(request, refusal).await),
        };
        let _counted = self.counted()?;
        let grant = match admission {
            TokenStatus::Granted(grant) => grant,
            TokenStatus::UnverifiedToken(check) => match resource_server.check(check).await {
                Ok(grant) => grant,
                Err(refusal) => return Err(post::unread(request, refusal).await),
            },
        };
        let caller = Caller { client, grant: Some(grant.clone()), origin: forwarded::origin(&request) };
        let response = self.serve(route, caller, request).await?;
        Ok(resource_server.ending(response, &grant))
    }

    fn head<'a>(&self, request: &'a Request) -> Head<'a> {
        let path = &self.options.path;
        Head::of(path, request.method(), request.uri(), request.extensions(), request.headers())
    }

    /// One more request is being answered.
    fn counted(&self) -> Result<GaugeGuard, Refusal> {
        let full = || Refusal::full(Reason::InFlight, "too many requests are being answered", 1);
        self.metrics.in_flight.enter(self.options.max_in_flight).ok_or_else(full)
    }

    /// What somebody is told who is not let in and sends a form: another word if the token is in there, where it is of
    /// no use.
    async fn refuse_form(
        &self,
        resource_server: &ResourceServer,
        refusal: Refusal,
        request: Request,
    ) -> Refusal {
        let (parts, body) = request.into_parts();
        match read_at_most(self, body, FORM).await {
            Ok(body) if refusal.reason == Reason::Unauthorized && form_names_token(&body) => {
                let (uri, extensions) = (&parts.uri, &parts.extensions);
                let path = &self.options.path;
                resource_server.refuse_form(&Head::of(path, &parts.method, uri, extensions, &parts.headers))
            }
            _ => refusal,
        }
    }

    /// Has a request answered that may be. Boxed, so that a connection that only reads a stream does not hold the room of
    /// the largest answer.
    fn serve<'a>(self: &'a Arc<Self>, route: &Route, caller: Caller, request: Request) -> Serving<'a> {
        match (route.target, request.method()) {
            (Target::Metrics, _) => Box::pin(ready(Ok(health::metrics(self)))),
            (Target::Messages, _) => Box::pin(http_sse::message(self, caller, request)),
            (Target::Events, _) => Box::pin(http_sse::open(self, caller, request)),
            (Target::WebSocket, _) => Box::pin(ready(websocket::upgrade(self, &caller, request))),
            (_, &Method::POST) => Box::pin(post::post(self, caller, request)),
            (_, &Method::DELETE) => Box::pin(ready(delete::delete(self, &caller, request.headers()))),
            _ => Box::pin(get::get(self, caller, request)),
        }
    }

    /// A conversation of its own.
    pub(crate) fn converse(&self, connection: Connection) -> Arc<SessionDriver> {
        let opened = self.server.open(self.config.clone(), connection);
        SessionDriver::new(opened, self.options.stream_bytes)
    }

    /// How long and deep a message may be: as the engine has it, so that what is read here is what is read there.
    pub(crate) fn limits(&self) -> Limits {
        Limits { message_bytes: self.options.body_bytes, ..self.config.limits }
    }

    /// The name of a revision.
    pub(crate) fn revision_name(&self, revision: Revision) -> Arc<str> {
        let known = self.revisions.iter().find(|(known, _)| *known == revision);
        known.map_or_else(|| revision.as_str().into(), |(_, name)| name.clone())
    }

    /// One more stream of events is going to be read.
    pub(crate) fn reads(&self) -> Result<GaugeGuard, Refusal> {
        let full = || Refusal::full(Reason::Streams, "too many streams are being read", 1);
        self.metrics.streams.enter(self.options.max_open_streams).ok_or_else(full)
    }

    /// Remembers a conversation that wants to hear of changes for as long as it lasts.
    pub(crate) fn listens(&self, conversation: &Arc<SessionDriver>) {
        let mut listeners = self.listeners.lock();
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(Arc::downgrade(conversation));
    }

    fn listeners(&self) -> Vec<Arc<SessionDriver>> {
        let listeners = self.listeners.lock();
        listeners.iter().filter_map(Weak::upgrade).collect()
    }

    /// Tells everybody of a change, a few at a time.
    async fn changed(&self, change: &Change) {
        let sessions = self.sessions.all();
        let listeners = self.listeners();
        let everybody = sessions.iter().map(|session| &session.conversation).chain(&listeners);
        for (count, conversation) in (1..).zip(everybody) {
            conversation.changed(change);
            if count % TOLD_AT_ONCE == 0 {
                yield_now().await;
            }
        }
    }
}

/// The paths of whatever else is served; ours stay ours.
fn extra_paths(options: &Options) -> Vec<String> {
    let mut paths = options.extra_routes.as_ref().map(|extra| extra.paths()).unwrap_or_default();
    paths.retain(|path| path.starts_with('/') && options.path.place(path).is_none());
    paths.sort_unstable();
    paths.dedup();
    paths
}

pub(crate) fn nothing_here() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, Reason::Path, "there is nothing here")
}

/// The URI as the client wrote it, wherever the endpoint is mounted.
pub(crate) fn original<'a>(extensions: &'a Extensions, uri: &'a Uri) -> &'a Uri {
    extensions.get::<OriginalUri>().map_or(uri, |OriginalUri(whole)| whole)
}

/// Passes changes on and clears away what nobody uses any more.
async fn keep_house(endpoint: Weak<Inner>) {
    let Some(feed) = endpoint.upgrade().map(|endpoint| endpoint.server.changes()) else { return };
    let Some(every) = endpoint.upgrade().map(|endpoint| sweep_every(&endpoint.options)) else { return };
    let mut sweep = tokio::time::interval(every);
    loop {
        tokio::select! {
            () = feed.changed() => {
                let Some(endpoint) = endpoint.upgrade() else { return };
                for change in feed.take() {
                    endpoint.changed(&change).await;
                }
            }
            _ = sweep.tick() => {
                let Some(endpoint) = endpoint.upgrade() else { return };
                endpoint.log_left_out();
                endpoint.sessions.sweep(&endpoint.options).await;
            }
        }
    }
}

/// Often enough that nothing is kept much longer than it should be.
fn sweep_every(options: &Options) -> Duration {
    let shortest = options.session_idle.min(options.retention).min(options.initialize_within);
    SWEEP_EVERY.min(shortest / 4).max(Duration::from_millis(50))
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[tokio::test]
    async fn while_a_crowd_is_told_others_get_their_turns() {
        let endpoint = Endpoint::builder(Server::builder("crowded", "1").build().unwrap()).build();
        let crowd: Vec<_> =
            (0..=TOLD_AT_ONCE * 2).map(|_| endpoint.inner.converse(Connection::default())).collect();
        crowd.iter().for_each(|conversation| endpoint.inner.listens(conversation));
        let mut telling = std::pin::pin!(endpoint.inner.changed(&Change::Tools));
        let mut context = Context::from_waker(Waker::noop());
        let mut turns = std::iter::repeat_with(|| telling.as_mut().poll(&mut context));
        assert_eq!(turns.position(|turn| turn == Poll::Ready(())), Some(2));
    }
}
