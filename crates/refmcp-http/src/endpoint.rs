//! The whole thing: a router to mount into an application, or a listener to serve.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{any, get, post};
use axum::serve::ListenerExt;
use refmcp_proto::engine::{Change, DuplicateIds, Early, EngineConfig};
use refmcp_server::transport::clock::Clock;
use refmcp_server::{Connection, Server};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::conversation::Conversation;
use crate::options::Options;
use crate::sessions::Sessions;
use crate::{delete, get as get_route, guard, legacy, post as post_route, websocket};

/// How often sessions and streams are looked through for old ones.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// How long a request may wait for `initialized`, which another connection may carry and be slower.
const INITIALIZED_WITHIN: Duration = Duration::from_secs(1);

/// A server's HTTP side.
#[derive(Debug, Clone)]
pub struct Endpoint {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) server: Server,
    pub(crate) options: Arc<Options>,
    pub(crate) config: Arc<EngineConfig>,
    pub(crate) clock: Clock,
    pub(crate) sessions: Sessions,
    /// Conversations without a session that want to hear of changes.
    listeners: Mutex<Vec<Weak<Conversation>>>,
    pub(crate) stop: CancellationToken,
}

impl Endpoint {
    /// An endpoint for this server. Its background work ends with it.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn new(server: Server, options: Options) -> Self {
        let mut config = server.config().clone();
        if config.policy.early_requests == Early::Refuse {
            config.policy.early_requests = Early::Hold(INITIALIZED_WITHIN);
        }
        if options.serve_duplicate_ids {
            config.policy.duplicate_ids = DuplicateIds::Serve;
        }
        config.policy.announce_end = false;
        let clock = server.clock();
        let inner = Arc::new(Inner {
            server,
            options: Arc::new(options),
            config: Arc::new(config),
            clock,
            sessions: Sessions::new(clock),
            listeners: Mutex::default(),
            stop: CancellationToken::new(),
        });
        tokio::spawn(keep_house(Arc::downgrade(&inner)));
        Self { inner }
    }

    /// The routes, to be merged into any application.
    pub fn router(&self) -> Router {
        let limit = DefaultBodyLimit::disable();
        let guard = from_fn_with_state(self.inner.options.clone(), guard::guard);
        Router::new()
            .route("/mcp", post(post_route::post).get(get_route::get).delete(delete::delete))
            .route("/mcp/ws", any(websocket::upgrade))
            .route("/sse", get(legacy::open))
            .route("/messages", post(legacy::message))
            .layer(limit)
            .layer(guard)
            .with_state(self.clone())
    }

    /// Serves until `stop` is cancelled; then streams are ended, and exchanges get `patience` to finish.
    pub async fn serve(
        &self,
        listener: TcpListener,
        stop: CancellationToken,
        patience: Duration,
    ) -> io::Result<()> {
        // Small answers must not wait for company.
        let listener = listener.tap_io(|stream| {
            if let Err(fault) = stream.set_nodelay(true) {
                tracing::debug!(%fault, "TCP_NODELAY");
            }
        });
        let (endpoint, told) = (self.clone(), stop.clone());
        let serving =
            axum::serve(listener, self.router().into_make_service_with_connect_info::<SocketAddr>())
                .with_graceful_shutdown(async move {
                    told.cancelled().await;
                    endpoint.shut_down();
                });
        let served = tokio::select! {
            served = std::future::IntoFuture::into_future(serving) => served,
            () = async { stop.cancelled().await; tokio::time::sleep(patience).await } => Ok(()),
        };
        for session in self.inner.sessions.all() {
            session.conversation.end();
        }
        served
    }

    /// Ends properly what would never end by itself; calls go on, nothing new is begun.
    fn shut_down(&self) {
        self.inner.stop.cancel();
        for listener in self.inner.listeners() {
            listener.wind_down();
        }
        for session in self.inner.sessions.all() {
            session.conversation.wind_down();
        }
    }
}

impl Inner {
    /// A conversation of its own.
    pub(crate) fn converse(&self, connection: Connection) -> Arc<Conversation> {
        let opened = self.server.open(self.config.clone(), connection);
        Conversation::new(opened, self.clock, self.options.stream_bytes)
    }

    /// Remembers a conversation that wants to hear of changes for as long as it lasts.
    pub(crate) fn listens(&self, conversation: &Arc<Conversation>) {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(Arc::downgrade(conversation));
    }

    fn listeners(&self) -> Vec<Arc<Conversation>> {
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.iter().filter_map(Weak::upgrade).collect()
    }

    fn changed(&self, change: &Change) {
        for session in self.sessions.all() {
            session.conversation.changed(change);
        }
        for listener in self.listeners() {
            listener.changed(change);
        }
    }
}

/// Passes changes on and clears away what nobody uses any more.
async fn keep_house(endpoint: Weak<Inner>) {
    let Some(feed) = endpoint.upgrade().map(|endpoint| endpoint.server.changes()) else { return };
    let mut sweep = tokio::time::interval(SWEEP_EVERY);
    loop {
        tokio::select! {
            () = feed.changed() => {
                let Some(endpoint) = endpoint.upgrade() else { return };
                for change in feed.take() {
                    endpoint.changed(&change);
                }
            }
            _ = sweep.tick() => {
                let Some(endpoint) = endpoint.upgrade() else { return };
                endpoint.sessions.sweep(&endpoint.options);
            }
        }
    }
}
