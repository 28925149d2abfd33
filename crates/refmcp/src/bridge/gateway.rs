//! The gateway: a server whose calls the client library makes at another server, of any revision and over any transport.
//!
//! The server in front is one of ours, so what a client may do wrong is answered as everywhere else, and each revision is
//! served. A client has one connection to the server behind: its session's, its pipe's, or for stateless requests over
//! HTTP the one that all requests of its principal share.

use std::collections::BTreeMap;
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

use super::listeners::Listeners;
use super::subscriptions::ACKNOWLEDGED_WITHIN;
use super::upstream::Upstream;

/// Bytes of the longest message.
pub(super) const MAX_MESSAGE_SIZE: usize = 64 << 20;
/// How often one call may ask the client: a server that samples in a loop is none that never ends.
const MAX_ROUNDS: u32 = 1000;
/// Principals whose stateless requests have a connection at once.
const MOST_SHARED: usize = 256;
/// How long all connections may take to end in order.
const CLOSED_WITHIN: Duration = Duration::from_secs(5);

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
    /// The first connection: that of the client of a pipe, or that of stateless requests.
    first: Mutex<Option<Arc<Upstream>>>,
    /// The connections of stateless requests over HTTP, by principal.
    shared: Mutex<BTreeMap<Option<Arc<str>>, Arc<Slot>>>,
    all: Mutex<Vec<Weak<Upstream>>>,
    closing: TaskTracker,
}

/// The connection of one client, opened for its first call.
#[derive(Default)]
struct Slot {
    upstream: tokio::sync::Mutex<Option<Arc<Upstream>>>,
    /// The changes that sessions in front want; a connection that is opened again gets them too.
    wants: Mutex<BTreeMap<u64, SubscriptionFilter>>,
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
            first: Mutex::default(),
            shared: Mutex::default(),
            all: Mutex::default(),
            closing: TaskTracker::new(),
        }))
    }

    pub(super) fn name(&self) -> String {
        self.0.target.connector.name()
    }

    /// Connects to the server for this client, or for all stateless requests.
    pub(super) async fn open(&self, client: Option<&Peer>) -> Result<Arc<Upstream>, ConnectError> {
        let upstream = self.connect(client).await?;
        *self.0.first.lock() = Some(upstream.clone());
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
        if let Some(instructions) = &facts.instructions {
            builder = builder.instructions(instructions);
        }
        builder.build()
    }

    /// Connects in the client's revision where the server has it, so that nothing has to be translated.
    async fn connect(&self, client: Option<&Peer>) -> Result<Arc<Upstream>, ConnectError> {
        let policy = self.0.target.version;
        match client {
            Some(peer) if policy == VersionPolicy::Auto => {
                match self.connect_in(client, VersionPolicy::AtMost(peer.revision)).await {
                    Err(fault) if is_about_revision(fault.why()) => self.connect_in(client, policy).await,
                    done => done,
                }
            }
            _ => self.connect_in(client, policy).await,
        }
    }

    async fn connect_in(
        &self,
        client: Option<&Peer>,
        policy: VersionPolicy,
    ) -> Result<Arc<Upstream>, ConnectError> {
        let Inner { target, server, single, closing, all, .. } = &*self.0;
        let all_clients = *single || client.is_none();
        let listeners = Listeners { server: server.clone(), all: all_clients, ..Listeners::default() };
        let upstream = Upstream::new(listeners, closing.clone());
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

    /// The place of a connection: with the session, with the pipe, or shared by the requests of a principal.
    fn slot(&self, session: &Session, in_session: bool) -> Arc<Slot> {
        if in_session || session.connection().transport != "http" {
            return session.value();
        }
        let mut shared = self.0.shared.lock();
        if shared.len() >= MOST_SHARED {
            shared.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        shared.entry(session.connection().principal.clone()).or_default().clone()
    }

    /// The connection in a slot, opened if there is none or if it has ended.
    async fn upstream(
        &self,
        slot: &Slot,
        session: &Arc<Session>,
        client: Option<&Peer>,
    ) -> Result<Arc<Upstream>, ConnectError> {
        let mut place = slot.upstream.lock().await;
        if let Some(upstream) = place.as_ref().filter(|upstream| upstream.ended().is_none()) {
            return Ok(upstream.clone());
        }
        let upstream = match self.take_first(client.is_some()) {
            Some(upstream) if upstream.ended().is_none() => upstream,
            _ => self.connect(client).await?,
        };
        if client.is_some() {
            // A slot is of one session.
            let _ = upstream.listeners.session.set(Arc::downgrade(session));
            if let Some(facts) =
                upstream.facts().filter(|facts| facts.rules().lifecycle == Lifecycle::PerRequest)
            {
                self.listen_for_session(&upstream, &facts, slot, session.number()).await;
            }
        }
        let wants = slot.wants.lock().clone();
        for (session, filter) in wants {
            upstream.want(session, filter).await;
        }
        *place = Some(upstream.clone());
        Ok(upstream)
    }

    /// The first connection. Over HTTP it is that of stateless requests; where there are none, the first session ends it,
    /// so that there is one connection for each client.
    fn take_first(&self, for_session: bool) -> Option<Arc<Upstream>> {
        let first = self.0.first.lock().take();
        if for_session && !self.0.single {
            // It closes as it is dropped.
            return None;
        }
        first
    }

    /// What a server with sessions does by itself has to be asked of one without.
    async fn listen_for_session(&self, upstream: &Upstream, facts: &ServerFacts, slot: &Slot, session: u64) {
        let offered = &facts.capabilities;
        {
            let mut wants = slot.wants.lock();
            let filter = wants.entry(session).or_default();
            filter.tools_list_changed = offered.tools.as_ref().and_then(|tools| tools.list_changed);
            filter.prompts_list_changed = offered.prompts.as_ref().and_then(|prompts| prompts.list_changed);
            filter.resources_list_changed =
                offered.resources.as_ref().and_then(|resources| resources.list_changed);
        }
        if let (Some(client), true) = (upstream.client(), offered.logging.is_some()) {
            let level =
                self.0.server.get().and_then(WeakServer::upgrade).map(|server| server.config().log_level);
            // Without a session this sends nothing.
            if let Some(level) = level
                && let Err(fault) = client.set_level(level).await
            {
                tracing::debug!("no log messages: {fault}");
            }
        }
    }

    async fn forward(self, call: Call) -> Result<HandlerOutcome, CallError> {
        let in_session = call.session().is_some();
        let session = call.connection_session();
        let slot = self.slot(session, in_session);
        let peer = in_session.then(|| call.peer());
        let upstream = self.upstream(&slot, session, peer).await.map_err(|fault| own_error(&fault))?;
        let Some(facts) = upstream.facts() else { return Err(own_error(&"it is not connected").into()) };
        let stateless = facts.rules().lifecycle == Lifecycle::PerRequest;
        if stateless && let Some(outcome) = self.in_place(&call, &upstream, &slot).await? {
            return Ok(outcome);
        }
        if *slot.subscribing.borrow() > 0 {
            let mut subscribing = slot.subscribing.subscribe();
            // A server that does not acknowledge holds back no call for longer.
            let _ = timeout(ACKNOWLEDGED_WITHIN, subscribing.wait_for(|count| *count == 0)).await;
        }
        if let Some(level) = call.log_level() {
            upstream.lower_level(level).await.map_err(|fault| error_of(fault, &call, &facts))?;
        }
        let number = call.once("call", async { Ok(upstream.start(&call)?) }).await?;
        let gone =
            || RpcError::invalid_request("the call that asked for this input has ended; make it again");
        let mut running = upstream.take(number).await.ok_or_else(gone)?;
        running.answer(&call).await;
        loop {
            if !running.is_done() && running.ask(&call) {
                upstream.park(running, call);
                return Err(ServerRequestError::Pending.into());
            }
            if let Some(done) = running.run(&call).await {
                running.pass_on_requests();
                if let Err(Error::Call(RequestError::NotOpen(why))) = &done {
                    upstream.end(why);
                }
                let result = done.map_err(|fault| error_of(fault, &call, &facts))?;
                return Ok(outcome(result, &call, &facts)?);
            }
        }
    }

    /// Methods of sessions that a server without them does not have.
    async fn in_place(
        &self,
        call: &Call,
        upstream: &Arc<Upstream>,
        slot: &Slot,
    ) -> Result<Option<HandlerOutcome>, CallError> {
        match call.method() {
            Method::SetLevel => {
                let params: SetLevelParams = serde_json::from_str(call.params())?;
                if let Some(client) = upstream.client() {
                    client.set_level(params.level).await?;
                }
            }
            Method::Subscribe | Method::Unsubscribe => {
                let SubscribeParams { uri, .. } = serde_json::from_str(call.params())?;
                let session = call.connection_session().number();
                let filter = {
                    let mut wants = slot.wants.lock();
                    let filter = wants.entry(session).or_default();
                    let uris = filter.resource_subscriptions.get_or_insert_default();
                    uris.retain(|known| *known != uri);
                    if *call.method() == Method::Subscribe {
                        uris.push(uri);
                    }
                    filter.clone()
                };
                upstream.want(session, filter).await;
            }
            _ => return Ok(None),
        }
        Ok(Some(HandlerOutcome::Done(Box::new(EmptyResult::default().into()))))
    }

    /// Ends all connections in order.
    pub(super) async fn close(&self) {
        let open: Vec<Arc<Upstream>> = self.0.all.lock().iter().filter_map(Weak::upgrade).collect();
        for upstream in open {
            self.0.closing.spawn(async move { upstream.close().await });
        }
        self.0.closing.close();
        if timeout(CLOSED_WITHIN, self.0.closing.wait()).await.is_err() {
            tracing::info!("not all connections to the server have ended in time");
        }
    }
}

impl Forward for Gateway {
    fn call(&self, call: Call) -> ForwardedCall {
        Box::pin(self.clone().forward(call))
    }

    fn waiting_call_ended(&self, session: &Arc<Session>, call: CallId) {
        // A slot that is locked is being opened, and no call waits in it.
        if let Ok(place) = session.value::<Slot>().upstream.try_lock()
            && let Some(upstream) = &*place
        {
            upstream.drop_parked(session.number(), call);
        }
    }

    fn roots_changed(&self, session: &Arc<Session>) {
        if let Ok(place) = session.value::<Slot>().upstream.try_lock()
            && let Some(client) = place.as_ref().and_then(|upstream| upstream.client())
        {
            client.roots_changed();
        }
    }

    fn listening(&self, session: &Arc<Session>, filter: &SubscriptionFilter) {
        let (gateway, slot, session) = (self.clone(), self.slot(session, false), session.clone());
        let number = session.number();
        let ends = *filter == SubscriptionFilter::default();
        if ends {
            slot.wants.lock().remove(&number);
        } else {
            slot.wants.lock().insert(number, filter.clone());
        }
        slot.subscribing.send_modify(|count| *count += 1);
        tokio::spawn(async move {
            let current = slot.upstream.lock().await.clone();
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
                // What is wanted now: it may have changed meanwhile.
                let filter = slot.wants.lock().get(&number).cloned().unwrap_or_default();
                upstream.want(number, filter).await;
            }
            slot.subscribing.send_modify(|count| *count -= 1);
        });
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
