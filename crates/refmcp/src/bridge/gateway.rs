//! The gateway: a server whose calls the client library makes at another server, of any revision and over any transport.
//!
//! The server in front is one of ours, so what a client may do wrong is answered as everywhere else, and each revision is
//! served. A client has one connection to the server behind: its session's, its pipe's, or for stateless requests over
//! HTTP the one that all of them share.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use refmcp_client::observer::Observer;
use refmcp_client::transport::Connector;
use refmcp_client::{
    CallError as RequestError, Client, ConnectError, Error, Host, ServerFacts, VersionPolicy,
};
use refmcp_proto::jsonrpc::{Limits, RpcError, code};
use refmcp_proto::model::{
    ClientCapabilities, EmptyResult, Implementation, JsonObject, SetLevelParams, SubscribeParams,
    SubscriptionFilter, TASKS_EXTENSION,
};
use refmcp_proto::peer::Peer;
use refmcp_proto::revision::{Lifecycle, Method, upgrade};
use refmcp_server::{
    BuildError, Call, CallError, CallId, Forward, ForwardedCall, HandlerOutcome, Policy, Server,
    ServerRequestError, Session,
};
use serde_json::value::RawValue;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::upstream::{FrontServer, Upstream};

/// Bytes of the longest message.
pub(super) const MAX_MESSAGE_SIZE: usize = 64 << 20;
/// How often one call may ask the client: a server that samples in a loop is none that never ends.
const MAX_ROUNDS: u32 = 1000;
/// How long all connections may take to end in order.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Where the server behind is, and how it is connected.
pub(crate) struct Target {
    pub(crate) connector: Arc<dyn Connector>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) version: VersionPolicy,
    pub(crate) open_timeout: Duration,
    pub(crate) meta: JsonObject,
}

/// The gateway; clones are the same.
#[derive(Clone)]
pub(super) struct Gateway(Arc<Inner>);

struct Inner {
    target: Target,
    /// Whether it serves one client alone, over standard input and output.
    single: bool,
    server: FrontServer,
    /// The server as that client has it, or all stateless requests over HTTP.
    own: Arc<Upstream>,
    /// Told when all connections are to be closed, and the tasks that close them.
    close: CancellationToken,
    closing: TaskTracker,
}

impl Gateway {
    pub(super) fn new(target: Target, single: bool) -> Self {
        let server = FrontServer::default();
        let own = Upstream::new(!single, server.clone());
        let (close, closing) = (CancellationToken::new(), TaskTracker::new());
        Self(Arc::new(Inner { target, single, server, own, close, closing }))
    }

    pub(super) fn name(&self) -> String {
        self.0.target.connector.name()
    }

    /// Connects to the server for the only client, or for all stateless requests.
    pub(super) async fn open(&self, client: Option<&Peer>) -> Result<Client, ConnectError> {
        self.connect(&self.0.own, client).await
    }

    /// The server in front, by what the server behind says of itself.
    pub(super) fn server(&self, facts: &ServerFacts) -> Result<Server, BuildError> {
        let info = facts.info.clone().unwrap_or_else(|| Implementation::new(self.name(), ""));
        let mut offered = facts.capabilities.clone();
        // Completion is older than its capability.
        if !facts.rules().completions_capability && (offered.prompts.is_some() || offered.resources.is_some())
        {
            offered.completions.get_or_insert_default();
        }
        let mut builder = Server::builder(&info.name, &info.version)
            .info(|_| info)
            .capabilities(move |declared| *declared = offered)
            .forward(self.clone())
            // It connects programs and judges none: what can be understood is served.
            .policy(Policy::LENIENT)
            .limits(Limits { max_message_size: MAX_MESSAGE_SIZE, ..Limits::default() })
            .max_rounds(MAX_ROUNDS)
            .grace(self.0.target.open_timeout);
        if let Some(observer) = &self.0.target.observer {
            builder = builder.observer(observer.clone());
        }
        if let Some(instructions) = &facts.instructions {
            builder = builder.instructions(instructions);
        }
        let server = builder.build()?;
        // Called once.
        let _ = self.0.server.set(server.downgrade());
        Ok(server)
    }

    /// Connects in the client's revision where the server has it, so that nothing has to be translated.
    async fn connect(&self, upstream: &Arc<Upstream>, client: Option<&Peer>) -> Result<Client, ConnectError> {
        let target = &self.0.target;
        let (asks, hears) = (Arc::downgrade(upstream), Arc::downgrade(upstream));
        let mut capabilities = client.map_or_else(every_capability, |peer| peer.capabilities.clone());
        // A task is followed here where the client has none.
        let extensions = capabilities.extensions.get_or_insert_default();
        extensions.insert(TASKS_EXTENSION.to_owned(), JsonObject::new().into());
        let host = Host::new()
            .requests(capabilities, move |request| Upstream::ask(asks.clone(), None, request))
            .on_event(move |event| {
                if let Some(upstream) = hears.upgrade() {
                    upstream.heard(event);
                }
            });
        let mut builder = Client::builder("refmcp", env!("CARGO_PKG_VERSION"))
            .host(host)
            .version_policy(target.version)
            .open_timeout(target.open_timeout)
            .max_rounds(MAX_ROUNDS)
            .meta(target.meta.clone());
        if let Some(info) = client.and_then(|peer| peer.info.clone()) {
            builder = builder.info(info);
        }
        if let Some(observer) = &target.observer {
            builder = builder.observer(observer.clone());
        }
        let connected = match client {
            Some(peer) => builder.connect_preferring(peer.revision, target.connector.clone()).await?,
            None => builder.connect_to(target.connector.clone()).await?,
        };
        let (client, close) = (connected.clone(), self.0.close.child_token());
        upstream.connected(client.clone(), close.clone().drop_guard());
        self.0.closing.spawn(async move {
            close.cancelled().await;
            client.close().await;
        });
        Ok(connected)
    }

    /// The server as a client has it: the only client, or all stateless requests over HTTP, or else a session or a pipe.
    fn upstream(&self, session: &Arc<Session>, in_session: bool) -> Arc<Upstream> {
        let Inner { single, own, server, .. } = &*self.0;
        let has_own = !single && (in_session || session.connection().transport != "http");
        let upstream = if has_own {
            let value: Arc<OnceLock<Arc<Upstream>>> = session.value();
            value.get_or_init(|| Upstream::new(false, server.clone())).clone()
        } else {
            own.clone()
        };
        if !upstream.is_shared {
            upstream.belongs_to(session);
        }
        upstream
    }

    /// The client behind, connected if there is none or if its session has ended.
    async fn client(
        &self,
        upstream: &Arc<Upstream>,
        session: &Session,
        peer: Option<&Peer>,
    ) -> Result<Client, ConnectError> {
        let _opening = upstream.opening.lock().await;
        let own = &self.0.own;
        if !Arc::ptr_eq(upstream, own) && !own.is_used.load(Ordering::Relaxed) {
            // So that there is one connection for each client. What the server offers is known.
            own.disconnect();
        }
        let is_used = upstream.is_used.swap(true, Ordering::Relaxed);
        let client = match upstream.client() {
            Some(client) if is_used => return Ok(client),
            Some(client) => client,
            None => self.connect(upstream, peer).await?,
        };
        let (facts, subscriptions) = (client.server(), &upstream.subscriptions);
        if peer.is_some() && facts.rules().lifecycle == Lifecycle::PerRequest {
            // What a server with sessions does by itself has to be asked of one without.
            subscriptions.set_lists(session.number(), &facts.capabilities);
            subscriptions.set_level(subscriptions.level().unwrap_or(session.server().config().log_level));
        }
        subscriptions.connect(&client).await;
        Ok(client)
    }

    async fn forward(self, call: Call) -> Result<HandlerOutcome, CallError> {
        let session = call.connection_session();
        let peer = call.session().map(|_| call.peer());
        let upstream = self.upstream(session, peer.is_some());
        let client = self.client(&upstream, session, peer).await.map_err(|error| own_error(&error))?;
        let facts = client.server();
        let is_stateless = facts.rules().lifecycle == Lifecycle::PerRequest;
        if is_stateless && upstream.record(&call)? {
            // Methods of sessions that the server does not have.
            upstream.subscriptions.apply().await;
            return Ok(HandlerOutcome::Done(Box::new(EmptyResult::default().into())));
        }
        // So that a client hears of what its own calls change.
        upstream.subscriptions.applied().await;
        if let Some(level) = call.log_level().filter(|_| !is_stateless) {
            let known = upstream.subscriptions.level();
            upstream.subscriptions.set_level(known.map_or(level, |known| known.min(level)));
            upstream.subscriptions.apply().await;
        }
        let mut running = upstream.running(&call, &client).await?;
        running.answer(&call).await;
        loop {
            if running.ask(&call) {
                upstream.park(running, call);
                return Err(ServerRequestError::Pending.into());
            }
            let Some(done) = running.run(&call).await else { continue };
            let result = done.map_err(|error| error_of(error, &call, &facts))?;
            if upstream.record(&call)? {
                upstream.subscriptions.mark_applied().await;
            }
            return Ok(outcome(result, &call, &facts)?);
        }
    }

    /// Ends all connections in order.
    pub(super) async fn close(&self) {
        self.0.close.cancel();
        self.0.closing.close();
        if timeout(CLOSE_TIMEOUT, self.0.closing.wait()).await.is_err() {
            tracing::info!("not all connections to the server have ended in time");
        }
    }
}

impl Forward for Gateway {
    fn call(&self, call: Call) -> ForwardedCall {
        Box::pin(self.clone().forward(call))
    }

    fn waiting_call_ended(&self, session: &Arc<Session>, call: CallId) {
        for upstream in [&self.upstream(session, true), &self.0.own] {
            upstream.drop_parked(session.number(), call);
        }
    }

    fn roots_changed(&self, session: &Arc<Session>) {
        if let Some(client) = self.upstream(session, true).client() {
            client.roots_changed();
        }
    }

    fn listening(&self, session: &Arc<Session>, filter: &SubscriptionFilter) {
        let (gateway, upstream, session) = (self.clone(), self.upstream(session, false), session.clone());
        let ends = *filter == SubscriptionFilter::default();
        upstream.subscriptions.set(session.number(), filter.clone());
        tokio::spawn(async move {
            // Ending a subscription starts no server.
            if !ends && let Err(error) = gateway.client(&upstream, &session, None).await {
                tracing::warn!("no changes are heard of: {error}");
            }
            upstream.subscriptions.apply().await;
        });
    }
}

impl Upstream {
    /// Records what a call of a session is to change for good; `false` where it changes nothing.
    fn record(&self, call: &Call) -> Result<bool, CallError> {
        let session = call.connection_session().number();
        match call.method() {
            Method::SetLevel => {
                let SetLevelParams { level, .. } = serde_json::from_str(call.params())?;
                self.subscriptions.set_level(level);
            }
            Method::Subscribe | Method::Unsubscribe => {
                let SubscribeParams { uri, .. } = serde_json::from_str(call.params())?;
                self.subscriptions.set_resource(session, &uri, *call.method() == Method::Subscribe);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The capabilities that stateless requests may have; the server in front refuses what a client has not.
fn every_capability() -> ClientCapabilities {
    let mut all = ClientCapabilities::default();
    all.roots.get_or_insert_default().list_changed = Some(true);
    let sampling = all.sampling.get_or_insert_default();
    (sampling.tools, sampling.context) = (Some(JsonObject::new()), Some(JsonObject::new()));
    let elicitation = all.elicitation.get_or_insert_default();
    (elicitation.form, elicitation.url) = (Some(JsonObject::new()), Some(JsonObject::new()));
    all
}

/// A result as it was written, where both sides speak the same revision.
fn outcome(result: Box<RawValue>, call: &Call, facts: &ServerFacts) -> Result<HandlerOutcome, RpcError> {
    if call.peer().revision == facts.revision {
        return Ok(HandlerOutcome::Raw(result));
    }
    let read = upgrade::result(call.method(), result.get());
    let unreadable = |error| {
        own_error(&format!("the server's result of {} makes no sense: {error}", call.method().name()))
    };
    Ok(HandlerOutcome::Done(Box::new(read.map_err(unreadable)?)))
}

/// The error of the server, by the code of the client's revision; or ours about the server.
fn error_of(error: Error, call: &Call, facts: &ServerFacts) -> RpcError {
    let mut error = match error {
        Error::Call(RequestError::Rpc(error) | RequestError::Refused(error)) => error,
        other => return own_error(&other),
    };
    let missing = facts.rules().resource_not_found;
    let tells_uri = || error.data.as_ref().is_some_and(|data| data.get("uri").is_some());
    if *call.method() == Method::ReadResource
        && error.code == missing
        && (missing != code::INVALID_PARAMS || tells_uri())
    {
        error.code = call.peer().rules().resource_not_found;
    }
    error
}

pub(super) fn own_error(error: &dyn std::fmt::Display) -> RpcError {
    RpcError::internal(format!("refmcp bridge: {error}"))
}
