//! The gateway: a server whose calls the client library makes at another server, of any revision and over any transport.
//!
//! The server in front is one of ours, so what a client may do wrong is answered as everywhere else, and each revision is
//! served. A client has one connection to the server behind: its session's, its pipe's, or for stateless requests over
//! HTTP the one that all of them share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use anyhow::Result;
use parking_lot::Mutex;
use refmcp_client::observer::Observer;
use refmcp_client::transport::Connector;
use refmcp_client::{
    CallError as RequestError, Client, ConnectError, Error, Host, OpenError, ServerFacts, VersionPolicy,
};
use refmcp_proto::jsonrpc::{Limits, RpcError, code};
use refmcp_proto::model::{
    ClientCapabilities, EmptyResult, Implementation, JsonObject, SetLevelParams, SubscribeParams,
    SubscriptionFilter,
};
use refmcp_proto::peer::Peer;
use refmcp_proto::revision::{Lifecycle, Method, upgrade};
use refmcp_server::{
    BuildError, Call, CallError, CallId, Forward, ForwardedCall, HandlerOutcome, Policy, Server,
    ServerRequestError, Session, WeakServer,
};
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::subscriptions::{ACKNOWLEDGE_TIMEOUT, Wants};
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
    server: Arc<OnceLock<WeakServer>>,
    /// The connection of that client, or of all stateless requests over HTTP.
    own: Arc<Slot>,
    all: Mutex<Vec<Weak<Upstream>>>,
    closing: TaskTracker,
}

/// The connection of one client, opened for its first call.
#[derive(Default)]
struct Slot {
    upstream: Mutex<Option<Arc<Upstream>>>,
    /// Held while a connection is opened.
    opening: tokio::sync::Mutex<()>,
    /// Whether a call was made over it.
    is_used: AtomicBool,
    wants: Arc<Wants>,
    /// Subscriptions that the server has not acknowledged. Calls wait for them, so that a client hears of what its own
    /// calls change.
    subscribing: watch::Sender<usize>,
}

impl Gateway {
    pub(super) fn new(target: Target, single: bool) -> Self {
        Self(Arc::new(Inner {
            target,
            single,
            server: Arc::default(),
            own: Arc::default(),
            all: Mutex::default(),
            closing: TaskTracker::new(),
        }))
    }

    pub(super) fn name(&self) -> String {
        self.0.target.connector.name()
    }

    /// Connects to the server for the only client, or for all stateless requests.
    pub(super) async fn open(&self, client: Option<&Peer>) -> Result<Arc<Upstream>, ConnectError> {
        let upstream = self.connect(&self.0.own, None, client).await?;
        *self.0.own.upstream.lock() = Some(upstream.clone());
        Ok(upstream)
    }

    /// The server in front, by what the server behind says of itself.
    pub(super) fn server(&self, facts: &ServerFacts) -> Result<Server, BuildError> {
        let server = self.build(facts)?;
        // Called once.
        let _ = self.0.server.set(server.downgrade());
        Ok(server)
    }

    fn build(&self, facts: &ServerFacts) -> Result<Server, BuildError> {
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
        builder.build()
    }

    /// Connects in the client's revision where the server has it, so that nothing has to be translated.
    async fn connect(
        &self,
        slot: &Arc<Slot>,
        session: Option<&Arc<Session>>,
        client: Option<&Peer>,
    ) -> Result<Arc<Upstream>, ConnectError> {
        let policy = self.0.target.version;
        let first = match client {
            Some(peer) if policy == VersionPolicy::Auto => VersionPolicy::AtMost(peer.revision),
            _ => policy,
        };
        match self.connect_in(slot, session, client, first).await {
            Err(fault) if first != policy && is_about_revision(fault.why()) => {
                self.connect_in(slot, session, client, policy).await
            }
            done => done,
        }
    }

    async fn connect_in(
        &self,
        slot: &Arc<Slot>,
        session: Option<&Arc<Session>>,
        client: Option<&Peer>,
        policy: VersionPolicy,
    ) -> Result<Arc<Upstream>, ConnectError> {
        let Inner { target, single, server, closing, all, .. } = &*self.0;
        let front = FrontServer { server: server.clone(), all_listen: *single || client.is_none() };
        let upstream = Upstream::new(self.is_shared(slot), slot.wants.clone(), front, closing.clone());
        upstream.belongs_to(session);
        let (asks, hears) = (Arc::downgrade(&upstream), Arc::downgrade(&upstream));
        let capabilities = client.map_or_else(every_capability, |peer| peer.capabilities.clone());
        let host = Host::new()
            .requests(capabilities, move |request| Upstream::ask(asks.clone(), None, request))
            .on_event(move |event| {
                if let Some(upstream) = hears.upgrade() {
                    upstream.heard(event);
                }
            });
        let mut builder = Client::builder("refmcp", env!("CARGO_PKG_VERSION"))
            .host(host)
            .version_policy(policy)
            .open_timeout(target.open_timeout)
            .max_rounds(MAX_ROUNDS)
            .meta(target.meta.clone());
        if let Some(info) = client.and_then(|peer| peer.info.clone()) {
            builder = builder.info(info);
        }
        if let Some(observer) = &target.observer {
            builder = builder.observer(observer.clone());
        }
        let connected = builder.connect_to(target.connector.clone()).await?;
        upstream.connected(connected);
        let mut all = all.lock();
        all.retain(|upstream| upstream.strong_count() > 0);
        all.push(Arc::downgrade(&upstream));
        Ok(upstream)
    }

    /// The place of a connection: the only client's, or that of all stateless requests over HTTP, or else the session's or
    /// the pipe's.
    fn slot(&self, session: &Session, in_session: bool) -> Arc<Slot> {
        let has_own = !self.0.single && (in_session || session.connection().transport != "http");
        if has_own { session.value() } else { self.0.own.clone() }
    }

    /// Whether clients share a connection that have nothing to do with each other.
    fn is_shared(&self, slot: &Arc<Slot>) -> bool {
        !self.0.single && Arc::ptr_eq(slot, &self.0.own)
    }

    /// The connection in a slot, opened if there is none or if it has ended.
    async fn upstream(
        &self,
        slot: &Arc<Slot>,
        session: &Arc<Session>,
        client: Option<&Peer>,
    ) -> Result<Arc<Upstream>, ConnectError> {
        let _opening = slot.opening.lock().await;
        let (own, own_session) = (&self.0.own, (!self.is_shared(slot)).then_some(session));
        if !Arc::ptr_eq(slot, own) && !own.is_used.load(Ordering::Relaxed) {
            // So that there is one connection for each client. What the server offers is known; it closes as it is dropped.
            own.upstream.lock().take();
        }
        let known = slot.upstream.lock().clone().filter(|upstream| upstream.ended().is_none());
        let is_used = slot.is_used.swap(true, Ordering::Relaxed);
        let upstream = match known {
            Some(upstream) if is_used => return Ok(upstream),
            Some(upstream) => upstream,
            None => self.connect(slot, own_session, client).await?,
        };
        upstream.belongs_to(own_session);
        *slot.upstream.lock() = Some(upstream.clone());
        if let (Some(_), Some(facts)) = (client, upstream.facts())
            && facts.rules().lifecycle == Lifecycle::PerRequest
        {
            // What a server with sessions does by itself has to be asked of one without.
            slot.wants.set_lists(session.number(), &facts.capabilities);
            let level =
                self.0.server.get().and_then(WeakServer::upgrade).map(|server| server.config().log_level);
            let mut wanted = slot.wants.level.lock();
            *wanted = wanted.or(level);
        }
        upstream.restore().await;
        Ok(upstream)
    }

    async fn forward(self, call: Call) -> Result<HandlerOutcome, CallError> {
        let in_session = call.session().is_some();
        let session = call.connection_session();
        let slot = self.slot(session, in_session);
        let peer = in_session.then(|| call.peer());
        let upstream = self.upstream(&slot, session, peer).await.map_err(|fault| own_error(&fault))?;
        let Some(facts) = upstream.facts() else { return Err(own_error(&"it is not connected").into()) };
        let is_stateless = facts.rules().lifecycle == Lifecycle::PerRequest;
        if is_stateless && slot.record(&call)? {
            // Methods of sessions that the server does not have.
            upstream.restore().await;
            return Ok(HandlerOutcome::Done(Box::new(EmptyResult::default().into())));
        }
        if *slot.subscribing.borrow() > 0 {
            let mut subscribing = slot.subscribing.subscribe();
            // A server that does not acknowledge holds back no call for longer.
            let _ = timeout(ACKNOWLEDGE_TIMEOUT, subscribing.wait_for(|count| *count == 0)).await;
        }
        if let Some(level) = call.log_level().filter(|_| !is_stateless) {
            let level = slot.wants.lower_level(level);
            upstream.set_level(level).await.map_err(|fault| error_of(fault, &call, &facts))?;
        }
        let mut running = upstream.running(&call).await?;
        running.answer(&call).await;
        loop {
            if running.ask(&call) {
                upstream.park(running, call);
                return Err(ServerRequestError::Pending.into());
            }
            let Some(done) = running.run(&call).await else { continue };
            if let Err(Error::Call(RequestError::NotOpen(why))) = &done {
                upstream.end(why);
            }
            let result = done.map_err(|fault| error_of(fault, &call, &facts))?;
            if slot.record(&call)? {
                upstream.recorded().await;
            }
            return Ok(outcome(result, &call, &facts)?);
        }
    }

    /// Ends all connections in order.
    pub(super) async fn close(&self) {
        let open: Vec<Arc<Upstream>> = self.0.all.lock().iter().filter_map(Weak::upgrade).collect();
        for upstream in open {
            self.0.closing.spawn(async move { upstream.close().await });
        }
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
        for slot in [self.slot(session, true), self.0.own.clone()] {
            if let Some(upstream) = &*slot.upstream.lock() {
                upstream.drop_parked(session.number(), call);
            }
        }
    }

    fn roots_changed(&self, session: &Arc<Session>) {
        let upstream = self.slot(session, true).upstream.lock().clone();
        if let Some(client) = upstream.as_ref().and_then(|upstream| upstream.client()) {
            client.roots_changed();
        }
    }

    fn listening(&self, session: &Arc<Session>, filter: &SubscriptionFilter) {
        let (gateway, slot, session) = (self.clone(), self.slot(session, false), session.clone());
        let ends = *filter == SubscriptionFilter::default();
        slot.wants.set(session.number(), filter);
        slot.subscribing.send_modify(|count| *count += 1);
        tokio::spawn(async move {
            let current = slot.upstream.lock().clone();
            let upstream = match current {
                // Ending a subscription starts no server.
                current if ends => current,
                _ => gateway
                    .upstream(&slot, &session, None)
                    .await
                    .inspect_err(|fault| tracing::warn!("no changes are heard of: {fault}"))
                    .ok(),
            };
            if let Some(upstream) = upstream {
                upstream.subscribe().await;
            }
            slot.subscribing.send_modify(|count| *count -= 1);
        });
    }
}

impl Slot {
    /// Records what a call of a session is to change for good; `false` where it changes nothing.
    fn record(&self, call: &Call) -> Result<bool, CallError> {
        let session = call.connection_session().number();
        match call.method() {
            Method::SetLevel => {
                let SetLevelParams { level, .. } = serde_json::from_str(call.params())?;
                *self.wants.level.lock() = Some(level);
            }
            Method::Subscribe | Method::Unsubscribe => {
                let SubscribeParams { uri, .. } = serde_json::from_str(call.params())?;
                self.wants.set_resource(session, uri, *call.method() == Method::Subscribe);
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

/// Whether a server that refused one revision may speak another.
fn is_about_revision(why: &OpenError) -> bool {
    matches!(why, OpenError::NoCommonRevision { .. } | OpenError::Refused(_) | OpenError::Protocol(_))
        || matches!(why, OpenError::Transport(refmcp_client::TransportError::Refused { .. }))
}

/// A result as it was written, where both sides speak the same revision.
fn outcome(result: Box<RawValue>, call: &Call, facts: &ServerFacts) -> Result<HandlerOutcome, RpcError> {
    if call.peer().revision == facts.revision {
        return Ok(HandlerOutcome::Raw(result));
    }
    let read = upgrade::result(call.method(), result.get());
    let unreadable = |fault| {
        own_error(&format!("the server's result of {} makes no sense: {fault}", call.method().name()))
    };
    Ok(HandlerOutcome::Done(Box::new(read.map_err(unreadable)?)))
}

/// The error of the server, by the code of the client's revision; or ours about the server.
fn error_of(fault: Error, call: &Call, facts: &ServerFacts) -> RpcError {
    let mut error = match fault {
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

pub(super) fn own_error(fault: &dyn std::fmt::Display) -> RpcError {
    RpcError::internal(format!("refmcp bridge: {fault}"))
}
