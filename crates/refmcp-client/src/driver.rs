//! The driver of a client: an engine, its transport, and the callers that wait.
//!
//! Callers and the tasks of the transport share the engine behind a lock that is held for one step. Messages are sent under
//! the lock, so their order is the engine's; handlers of the application never run under it.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use refmcp_proto::engine::CallId;
use refmcp_proto::engine::client::{
    CallError, CallOptions, CallResult, ClientConfig, ClientEngine, ClientOutput, ExchangeId, OpenError,
    ServerFacts, ServerRequest, ServerRequestId, TransportError,
};
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::model::{ProgressParams, ServerNotification, Task};
use refmcp_proto::time::Timestamp;
use refmcp_transport::Observed;
use refmcp_transport::clock::Clock;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::AbortHandle;
use tokio_util::task::AbortOnDropHandle;

use crate::call_log::LoggedCall;
use crate::host::{Event, Host, RequestHandler};
use crate::response_cache::ResponseCache;
use crate::transport::{MessageSink, Transport};

/// The outcome of a call.
pub(crate) type CallOutcome = Result<CallResult, CallError>;

pub(crate) type Listener<T> = Arc<dyn Fn(&T) + Send + Sync>;

/// The callbacks of one call; they replace those of the [`Host`].
#[derive(Clone, Default)]
pub(crate) struct CallCallbacks {
    pub(crate) progress: Option<Listener<ProgressParams>>,
    pub(crate) notification: Option<Listener<ServerNotification>>,
    pub(crate) request: Option<RequestHandler>,
    pub(crate) task: Option<Listener<Task>>,
}

/// Whether the session is open.
#[derive(Debug, Clone)]
pub(crate) enum OpenState {
    Opening,
    Open(Arc<ServerFacts>),
    Closed(OpenError),
}

pub(crate) struct ClientDriver {
    state: Mutex<State>,
    transport: OnceLock<Arc<dyn Transport>>,
    pub(crate) host: Arc<Host>,
    pub(crate) observed: Observed,
    pub(crate) cache: Mutex<ResponseCache>,
    open_state: watch::Sender<OpenState>,
    /// Told when a response to a request of the server was sent.
    pub(crate) responded: Arc<Notify>,
    clock: Clock,
    runtime: Handle,
    me: Weak<Self>,
}

struct State {
    engine: ClientEngine,
    calls: HashMap<CallId, WaitingCall>,
    /// Handlers that run for requests of the server.
    handlers: HashMap<ServerRequestId, AbortHandle>,
    /// The timer, and when it fires.
    timer: Option<(Timestamp, AbortOnDropHandle<()>)>,
}

struct WaitingCall {
    done: oneshot::Sender<CallOutcome>,
    listeners: CallCallbacks,
}

/// An effect that runs once the lock is released.
enum Deferred {
    ServerRequest(ServerRequest, Option<RequestHandler>),
    Notification(CallCallbacks, Box<ServerNotification>),
    Task(Listener<Task>, Box<Task>),
    Event(Event),
}

impl ClientDriver {
    pub(crate) fn new(config: ClientConfig, host: Arc<Host>, observed: Observed) -> Arc<Self> {
        let state = State {
            engine: ClientEngine::new(Arc::new(config)),
            calls: HashMap::new(),
            handlers: HashMap::new(),
            timer: None,
        };
        Arc::new_cyclic(|me| Self {
            state: Mutex::new(state),
            transport: OnceLock::new(),
            host,
            observed,
            cache: Mutex::default(),
            open_state: watch::Sender::new(OpenState::Opening),
            responded: Arc::default(),
            clock: Clock::new(),
            runtime: Handle::current(),
            me: me.clone(),
        })
    }

    /// The sink for the transport. It does not keep the driver alive.
    pub(crate) fn sink(self: &Arc<Self>) -> Arc<dyn MessageSink> {
        Arc::new(WeakSink(Arc::downgrade(self)))
    }

    /// Opens the session over a transport.
    pub(crate) fn open(&self, transport: Arc<dyn Transport>) {
        // Called once.
        let _ = self.transport.set(transport);
        self.step(|state, now| state.engine.open(now));
    }

    /// Waits until the session is open, or opening has failed.
    pub(crate) async fn opened(&self) -> Result<Arc<ServerFacts>, OpenError> {
        let mut open_state = self.open_state.subscribe();
        loop {
            match &*open_state.borrow_and_update() {
                OpenState::Open(server) => return Ok(server.clone()),
                OpenState::Closed(why) => return Err(why.clone()),
                OpenState::Opening => {}
            }
            if open_state.changed().await.is_err() {
                return Err(OpenError::Transport(TransportError::Closed));
            }
        }
    }

    pub(crate) fn open_state(&self) -> OpenState {
        self.open_state.borrow().clone()
    }

    /// The states from now on.
    pub(crate) fn open_states(&self) -> watch::Receiver<OpenState> {
        self.open_state.subscribe()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Makes a call; dropping the future cancels it. Gives its number, too.
    pub(crate) async fn call(
        self: &Arc<Self>,
        method: Arc<str>,
        name: Option<Arc<str>>,
        params: Box<str>,
        options: CallOptions,
        listeners: CallCallbacks,
    ) -> (CallId, CallOutcome) {
        if let Some(ready) = self.transport.get().and_then(|transport| transport.ready()) {
            ready.await;
        }
        let logged = LoggedCall::begin(&method, name.as_ref());
        let begin = |engine: &mut ClientEngine, now| engine.call(now, method, name, params, options);
        let (id, outcome) = self.run(listeners, begin).await;
        if let Some(logged) = logged {
            logged.end(&outcome);
        }
        (id, outcome)
    }

    /// Follows a task until it ends; dropping the future leaves it alone.
    pub(crate) async fn follow(
        self: &Arc<Self>,
        task: &str,
        created_by: Option<CallId>,
        options: CallOptions,
        listeners: CallCallbacks,
    ) -> CallOutcome {
        let begin = |engine: &mut ClientEngine, now| engine.follow_task(now, task, created_by, options);
        self.run(listeners, begin).await.1
    }

    async fn run(
        self: &Arc<Self>,
        listeners: CallCallbacks,
        begin: impl FnOnce(&mut ClientEngine, Timestamp) -> CallId,
    ) -> (CallId, CallOutcome) {
        let (done, ended) = oneshot::channel();
        let id = self.step(|state, now| {
            let id = begin(&mut state.engine, now);
            state.calls.insert(id, WaitingCall { done, listeners });
            id
        });
        let mut pending = PendingCall { driver: self, id, ended };
        // The sender is only dropped with the driver, which `self` holds.
        let outcome = (&mut pending.ended).await.unwrap_or(Err(CallError::Transport(TransportError::Closed)));
        (id, outcome)
    }

    /// Sends a notification without parameters.
    pub(crate) fn notify(&self, method: &str) {
        self.step(|state, _| state.engine.notify(method, None));
    }

    /// Closes the session and the transport in order.
    pub(crate) async fn close(&self) {
        self.step(|state, _| state.engine.closed(TransportError::Closed));
        if let Some(transport) = self.transport.get() {
            transport.clone().close().await;
        }
        self.observed.closed(&TransportError::Closed);
    }

    /// Calls the engine, and carries out its outputs.
    fn step<T>(&self, change: impl FnOnce(&mut State, Timestamp) -> T) -> T {
        self.step_for(None, change)
    }

    /// The same for a message of the server.
    fn step_for<T>(&self, message: Option<&[u8]>, change: impl FnOnce(&mut State, Timestamp) -> T) -> T {
        let mut deferred = Vec::new();
        let mut state = self.state.lock();
        let value = change(&mut state, self.now());
        while let Some(output) = state.engine.poll() {
            if let ClientOutput::Finding(finding) = &output {
                self.observed.finding(finding, message);
            }
            self.apply(&mut state, output, &mut deferred);
        }
        self.set_timer(&mut state);
        drop(state);
        for effect in deferred {
            self.run_deferred(effect);
        }
        value
    }

    fn apply(&self, state: &mut State, output: ClientOutput, deferred: &mut Vec<Deferred>) {
        match output {
            ClientOutput::Send(message) => {
                if let Some(transport) = self.transport.get() {
                    transport.clone().send(message);
                }
            }
            ClientOutput::Abandon(exchange) => {
                if let Some(transport) = self.transport.get() {
                    transport.abandon(exchange);
                }
            }
            ClientOutput::Done(call, ended) => {
                if let Some(waiting) = state.calls.remove(&call) {
                    // The caller may be gone.
                    let _ = waiting.done.send(ended);
                }
            }
            ClientOutput::Opened(server) => {
                if let Some(transport) = self.transport.get() {
                    transport.clone().opened(server.rules());
                }
                self.observed.set_revision(server.revision);
                let before = self.open_state.send_replace(OpenState::Open(server.clone()));
                if let OpenState::Open(_) = before {
                    deferred.push(Deferred::Event(Event::Reopened(server)));
                }
            }
            ClientOutput::Closed(why) => {
                self.open_state.send_replace(OpenState::Closed(why.clone()));
                deferred.push(Deferred::Event(Event::Closed(why)));
            }
            ClientOutput::Request(request) => {
                let handler = request.call.and_then(|call| state.calls.get(&call)?.listeners.request.clone());
                deferred.push(Deferred::ServerRequest(request, handler));
            }
            ClientOutput::RequestCancelled(request) => {
                if let Some(handler) = state.handlers.remove(&request) {
                    handler.abort();
                }
            }
            ClientOutput::Notification(call, notification) => {
                let listeners = call.and_then(|call| state.calls.get(&call)).map(|call| &call.listeners);
                let listeners = listeners.filter(|listeners| match &*notification {
                    ServerNotification::Progress(_) => listeners.progress.is_some(),
                    _ => listeners.notification.is_some(),
                });
                deferred.push(match listeners {
                    Some(listeners) => Deferred::Notification(listeners.clone(), notification),
                    None => Deferred::Event(Event::Notification(*notification)),
                });
            }
            ClientOutput::Task(call, task) => {
                let listener = state.calls.get(&call).and_then(|call| call.listeners.task.clone());
                deferred.extend(listener.map(|listen| Deferred::Task(listen, task)));
            }
            ClientOutput::Finding(finding) => deferred.push(Deferred::Event(Event::Finding(finding))),
            ClientOutput::Ignored(what) => deferred.push(Deferred::Event(Event::Ignored(what))),
        }
    }

    fn run_deferred(&self, effect: Deferred) {
        match effect {
            Deferred::ServerRequest(request, handler) => self.start(request, handler),
            Deferred::Notification(listeners, notification) => {
                match (&*notification, &listeners.progress, &listeners.notification) {
                    (ServerNotification::Progress(progress), Some(listen), _) => listen(progress),
                    (other, _, Some(listen)) => listen(other),
                    _ => {}
                }
            }
            Deferred::Task(listen, task) => listen(&task),
            Deferred::Event(event) => self.emit(&event),
        }
    }

    /// Tells the application of an event.
    pub(crate) fn emit(&self, event: &Event) {
        if let Event::Notification(notification) = event {
            self.cache.lock().invalidate(notification);
        }
        self.host.emit(event);
    }

    /// Runs the handler of a request as a task.
    fn start(&self, request: ServerRequest, handler: Option<RequestHandler>) {
        let (me, host, id) = (self.me.clone(), self.host.clone(), request.id);
        // Locked until the handler is in the map: its response cannot come before.
        let mut state = self.state.lock();
        let handler = tokio::spawn(async move {
            // A panic of the application must not leave the server without a response.
            let handler = tokio::spawn(async move {
                match handler {
                    Some(handle) => handle(request.request).await,
                    None => host.handle(request.request).await,
                }
            });
            let response = AbortOnDropHandle::new(handler).await;
            let response = response.unwrap_or_else(|_| Err(RpcError::internal("the application failed")));
            if let Some(me) = me.upgrade() {
                me.finish(id, response);
            }
        });
        state.handlers.insert(id, handler.abort_handle());
    }

    fn finish(&self, request: ServerRequestId, response: Result<Value, RpcError>) {
        self.step(|state, now| {
            state.handlers.remove(&request);
            state.engine.respond(now, request, response);
        });
        self.responded.notify_waiters();
    }

    /// Calls the engine again at its deadline.
    fn set_timer(&self, state: &mut State) {
        let Some(deadline) = state.engine.deadline() else { return };
        if state.timer.as_ref().is_some_and(|(timer, _)| *timer <= deadline) {
            return;
        }
        let (me, at) = (self.me.clone(), self.clock.instant(deadline));
        let timer = self.runtime.spawn(async move {
            tokio::time::sleep_until(at).await;
            let Some(driver) = me.upgrade() else { return };
            driver.step(|state, now| {
                state.timer = None;
                state.engine.tick(now);
            });
        });
        state.timer = Some((deadline, AbortOnDropHandle::new(timer)));
    }
}

/// Cancels a call that is dropped before its end.
struct PendingCall<'a> {
    driver: &'a ClientDriver,
    id: CallId,
    ended: oneshot::Receiver<CallOutcome>,
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        if !self.ended.is_terminated() {
            self.driver.step(|state, now| {
                state.calls.remove(&self.id);
                state.engine.cancel(now, self.id, "no longer wanted");
            });
        }
    }
}

impl Drop for ClientDriver {
    fn drop(&mut self) {
        for (_, handler) in self.state.lock().handlers.drain() {
            handler.abort();
        }
    }
}

struct WeakSink(Weak<ClientDriver>);

impl WeakSink {
    fn step(&self, change: impl FnOnce(&mut State, Timestamp)) {
        if let Some(driver) = self.0.upgrade() {
            driver.step(change);
        }
    }

    fn tell(&self, event: &Event) {
        if let Some(driver) = self.0.upgrade() {
            driver.emit(event);
        }
    }
}

impl MessageSink for WeakSink {
    fn message(&self, exchange: Option<ExchangeId>, json: &[u8]) {
        if let Some(driver) = self.0.upgrade() {
            driver.step_for(Some(json), |state, now| state.engine.receive(now, exchange, json));
        }
    }

    fn too_long(&self, exchange: Option<ExchangeId>, limit: usize) {
        let what = format!("longer than {limit} bytes");
        self.step(|state, now| state.engine.unreadable(now, exchange, &what));
    }

    fn ended(&self, exchange: ExchangeId, why: TransportError) {
        self.step(|state, now| state.engine.ended(now, exchange, why));
    }

    fn closed(&self, why: TransportError) {
        self.observed().closed(&why);
        self.step(|state, _| state.engine.closed(why));
    }

    fn ignored_input(&self, what: &str) {
        self.step(|state, now| state.engine.ignored_input(now, what));
    }

    fn line_abandoned(&self, begun: &str) {
        self.step(|state, _| state.engine.line_abandoned(begun));
    }

    fn stream_lost(&self, why: TransportError) {
        self.tell(&Event::StreamLost(why));
    }

    fn stream_restored(&self) {
        self.tell(&Event::StreamRestored);
    }

    fn observed(&self) -> Observed {
        self.0.upgrade().map(|driver| driver.observed.clone()).unwrap_or_default()
    }
}
