//! An engine, the transport it speaks by, and those who wait for what it brings.
//!
//! Callers and the tasks of the transport share the engine behind a lock that is held for no longer than a step takes.
//! Messages leave under the lock, so their order is the engine's; functions of the application never run under it.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use refmcp_proto::engine::CallId;
use refmcp_proto::engine::client::{
    CallError, CallOptions, CallResult, ClientConfig, ClientEngine, ClientOutput, ExchangeId, OpenError,
    ServerFacts, ServerRequest, ServerRequestId, TransportError,
};
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::model::{ProgressParams, ServerNotification};
use refmcp_proto::time::Timestamp;
use refmcp_transport::clock::Clock;
use serde_json::Value;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::{AbortHandle, JoinHandle};

use crate::host::{Event, Host};
use crate::response_cache::ResponseCache;
use crate::transport::{MessageSink, Transport};

/// What a call ends with.
pub(crate) type Ended = Result<CallResult, CallError>;

/// Hears of the progress of one call.
pub(crate) type OnProgress = Arc<dyn Fn(&ProgressParams) + Send + Sync>;

/// How far the opening has come.
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
    pub(crate) cache: Mutex<ResponseCache>,
    open_state: watch::Sender<OpenState>,
    clock: Clock,
    /// Rings when a deadline comes nearer.
    sooner: Arc<Notify>,
    me: Weak<Self>,
}

struct State {
    engine: ClientEngine,
    waiting: HashMap<CallId, Waiting>,
    /// Answers in the making, to be dropped when nobody wants them any more.
    asked: HashMap<ServerRequestId, AbortHandle>,
    /// The deadline that the timer knows of.
    alarm: Option<Timestamp>,
}

struct Waiting {
    done: oneshot::Sender<Ended>,
    progress: Option<OnProgress>,
}

/// What is done once the lock is released.
enum Later {
    ServerRequest(ServerRequest),
    Progress(OnProgress, Box<ServerNotification>),
    Tell(Event),
}

impl ClientDriver {
    pub(crate) fn new(config: ClientConfig, host: Arc<Host>) -> Arc<Self> {
        let state = State {
            engine: ClientEngine::new(Arc::new(config)),
            waiting: HashMap::new(),
            asked: HashMap::new(),
            alarm: None,
        };
        let driver = Arc::new_cyclic(|me| Self {
            state: Mutex::new(state),
            transport: OnceLock::new(),
            host,
            cache: Mutex::default(),
            open_state: watch::Sender::new(OpenState::Opening),
            clock: Clock::new(),
            sooner: Arc::new(Notify::new()),
            me: me.clone(),
        });
        let (clock, sooner) = (driver.clock, driver.sooner.clone());
        tokio::spawn(keep_time(Arc::downgrade(&driver), clock, sooner));
        driver
    }

    /// Who listens to the transport; it does not keep the conversation alive.
    pub(crate) fn sink(self: &Arc<Self>) -> Arc<dyn MessageSink> {
        Arc::new(WeakSink(Arc::downgrade(self)))
    }

    /// Begins to speak over a transport.
    pub(crate) fn open(&self, transport: Arc<dyn Transport>) {
        // A conversation has one transport; were it given another, the first would stay.
        let _ = self.transport.set(transport);
        self.step(|state, now| state.engine.open(now));
    }

    /// Waits until the conversation is open, or is not going to be.
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

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Makes a call; dropping what is returned cancels it.
    pub(crate) async fn call(
        self: &Arc<Self>,
        method: Arc<str>,
        name: Option<Arc<str>>,
        params: Box<str>,
        options: CallOptions,
        progress: Option<OnProgress>,
    ) -> Ended {
        if let Some(room) = self.transport.get().and_then(|transport| transport.ready()) {
            room.await;
        }
        let (done, ended) = oneshot::channel();
        let id = self.step(|state, now| {
            let id = state.engine.call(now, method, name, params, options);
            state.waiting.insert(id, Waiting { done, progress });
            id
        });
        let mut pending = PendingCall { driver: self, id, ended };
        // The sender is dropped with the conversation only, which we hold.
        (&mut pending.ended).await.unwrap_or(Err(CallError::Transport(TransportError::Closed)))
    }

    /// Tells the server something.
    pub(crate) fn notify(&self, method: &str) {
        self.step(|state, _| state.engine.notify(method, None));
    }

    /// Ends the conversation in order.
    pub(crate) async fn close(&self) {
        self.step(|state, _| state.engine.closed(TransportError::Closed));
        if let Some(transport) = self.transport.get() {
            transport.clone().close().await;
        }
    }

    /// Lets the engine do something, and does what it wants done.
    fn step<T>(&self, change: impl FnOnce(&mut State, Timestamp) -> T) -> T {
        let mut later = Vec::new();
        let mut state = self.state.lock();
        let value = change(&mut state, self.now());
        while let Some(output) = state.engine.poll() {
            self.carry_out(&mut state, output, &mut later);
        }
        let deadline = state.engine.deadline();
        let sooner = deadline.is_some_and(|deadline| state.alarm.is_none_or(|alarm| deadline < alarm));
        if sooner {
            state.alarm = deadline;
        }
        drop(state);
        if sooner {
            self.sooner.notify_one();
        }
        for thing in later {
            self.do_later(thing);
        }
        value
    }

    fn carry_out(&self, state: &mut State, output: ClientOutput, later: &mut Vec<Later>) {
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
                if let Some(waiting) = state.waiting.remove(&call) {
                    // Whoever called may have left.
                    let _ = waiting.done.send(ended);
                }
            }
            ClientOutput::Opened(server) => {
                if let Some(transport) = self.transport.get() {
                    transport.clone().opened(server.rules());
                }
                let before = self.open_state.send_replace(OpenState::Open(server.clone()));
                if let OpenState::Open(_) = before {
                    later.push(Later::Tell(Event::Reopened(server)));
                }
            }
            ClientOutput::Closed(why) => {
                self.open_state.send_replace(OpenState::Closed(why.clone()));
                later.push(Later::Tell(Event::Closed(why)));
            }
            ClientOutput::Request(ask) => later.push(Later::ServerRequest(ask)),
            ClientOutput::RequestCancelled(question) => {
                if let Some(answering) = state.asked.remove(&question) {
                    answering.abort();
                }
            }
            ClientOutput::Notification(call, heard) => {
                let listener = call.and_then(|call| state.waiting.get(&call)?.progress.clone());
                later.push(match (listener, &*heard) {
                    (Some(listener), ServerNotification::Progress(_)) => Later::Progress(listener, heard),
                    _ => Later::Tell(Event::Notification(*heard)),
                });
            }
            ClientOutput::Finding(finding) => later.push(Later::Tell(Event::Finding(finding))),
            ClientOutput::Ignored(what) => later.push(Later::Tell(Event::Ignored(what))),
        }
    }

    fn do_later(&self, thing: Later) {
        match thing {
            Later::ServerRequest(ask) => self.ask(ask),
            Later::Progress(listener, heard) => {
                if let ServerNotification::Progress(progress) = &*heard {
                    listener(progress);
                }
            }
            Later::Tell(event) => {
                if let Event::Notification(told) = &event {
                    self.cache.lock().heard(told);
                }
                self.host.tell(&event);
            }
        }
    }

    fn ask(&self, ask: ServerRequest) {
        let (me, host, question) = (self.me.clone(), self.host.clone(), ask.id);
        // Under the lock: the answer cannot come before it is known who makes it.
        let mut state = self.state.lock();
        let answering = tokio::spawn(async move {
            // A panic of the application must not leave the server without an answer.
            let mut answer = Dependent(tokio::spawn(async move { host.answer(ask.request).await }));
            let answer =
                (&mut answer.0).await.unwrap_or_else(|_| Err(RpcError::internal("the application failed")));
            if let Some(me) = me.upgrade() {
                me.answer(question, answer);
            }
        });
        state.asked.insert(question, answering.abort_handle());
    }

    fn answer(&self, question: ServerRequestId, answer: Result<Value, RpcError>) {
        self.step(|state, now| {
            state.asked.remove(&question);
            state.engine.respond(now, question, answer);
        });
    }
}

/// A call that somebody waits for.
struct PendingCall<'a> {
    driver: &'a ClientDriver,
    id: CallId,
    ended: oneshot::Receiver<Ended>,
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        if !self.ended.is_terminated() {
            self.driver.step(|state, _| {
                state.waiting.remove(&self.id);
                state.engine.cancel(self.id, "no longer wanted");
            });
        }
    }
}

impl Drop for ClientDriver {
    fn drop(&mut self) {
        for (_, answering) in self.state.lock().asked.drain() {
            answering.abort();
        }
        self.sooner.notify_one();
    }
}

/// Rings when something is due, for as long as the conversation is there.
async fn keep_time(driver: Weak<ClientDriver>, clock: Clock, sooner: Arc<Notify>) {
    loop {
        let Some(alarm) = driver.upgrade().map(|it| it.state.lock().alarm) else { return };
        let due = async {
            match alarm {
                Some(at) => tokio::time::sleep_until(clock.instant(at)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = sooner.notified() => continue,
            () = due => {}
        }
        if let Some(it) = driver.upgrade() {
            it.step(|state, now| {
                state.alarm = None;
                state.engine.tick(now);
            });
        }
    }
}

/// Work that ends with whoever waits for it.
struct Dependent<T>(JoinHandle<T>);

impl<T> Drop for Dependent<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct WeakSink(Weak<ClientDriver>);

impl WeakSink {
    fn step(&self, change: impl FnOnce(&mut State, Timestamp)) {
        if let Some(driver) = self.0.upgrade() {
            driver.step(change);
        }
    }
}

impl MessageSink for WeakSink {
    fn message(&self, exchange: Option<ExchangeId>, json: &[u8]) {
        self.step(|state, now| state.engine.receive(now, exchange, json));
    }

    fn too_long(&self, exchange: Option<ExchangeId>, limit: usize) {
        let what = format!("longer than {limit} bytes");
        self.step(|state, now| state.engine.unreadable(now, exchange, &what));
    }

    fn ended(&self, exchange: ExchangeId, why: TransportError) {
        self.step(|state, now| state.engine.ended(now, exchange, why));
    }

    fn closed(&self, why: TransportError) {
        self.step(|state, _| state.engine.closed(why));
    }

    fn ignored_input(&self, what: &str) {
        self.step(|state, now| state.engine.ignored_input(now, what));
    }
}
