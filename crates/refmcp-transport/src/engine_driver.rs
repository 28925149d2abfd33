//! The part that all drivers of a server engine share: the engine behind a lock, the calls that run, and the deadline.
//!
//! A step calls the engine and carries out its outputs: messages go to the [`Outbox`], still under the lock, so their
//! order is the engine's; calls run outside of it. A call that is likely done at once is polled where its request was
//! read, others run as tasks and come back through their [`EngineHandle`].

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use refmcp_proto::engine::{
    CallId, CloseReason, Dispatch, ExchangeId, HandlerOutcome, InputOutcome, OutgoingMessage, Output,
    ServerEngine, SharedOutput,
};
use refmcp_proto::jsonrpc::RequestId;
use refmcp_proto::time::Timestamp;
use tokio::runtime::Handle;
use tokio::sync::futures::OwnedNotified;
use tokio::task::unconstrained;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use crate::cancel::Cancellation;
use crate::clock::Clock;
use crate::service::{CallService, EngineAccess, EngineHandle, RunningCall};

/// Where the messages of an engine go. It is called under the engine's lock, and never waits.
pub trait Outbox: Send + 'static {
    /// Whether a running call gives way after each message, so that the task which writes it gets a turn.
    const YIELDS: bool = false;

    /// Takes a message.
    fn send(&mut self, message: OutgoingMessage);

    /// Nothing more follows on an exchange.
    fn end_exchange(&mut self, _: ExchangeId) {}

    /// Ends the connection that an exchange uses; its client comes back for the rest.
    fn detach(&mut self, _: ExchangeId) {}

    /// Takes something for the other processes that serve the session; a session of one process has none.
    fn share(&mut self, _: SharedOutput) {}

    /// A call runs as a task.
    fn call_spawned(&mut self, _: &ServerEngine, _: CallId) {}

    /// Ends all connections of this client.
    fn close(&mut self, reason: CloseReason);

    /// The engine's outputs are carried out.
    fn step_done(&mut self, _: &mut ServerEngine) {}

    /// The wait for room, while the client is slow to read.
    fn full(&self) -> Option<OwnedNotified> {
        None
    }
}

/// Drives one engine: that of a connection, of a session, or of a stateless request.
pub struct EngineDriver<S, O> {
    state: Mutex<State<O>>,
    service: S,
    clock: Clock,
    runtime: Handle,
    /// The runtime of the calls, if it is another. In a box, because sessions over HTTP are many and have none.
    handlers: Option<Box<Handle>>,
    handle: EngineHandle,
}

struct State<O> {
    engine: ServerEngine,
    outbox: O,
    /// The calls that run as tasks.
    running: BTreeMap<CallId, Cancellation>,
    /// The timer, and when it fires.
    timer: Option<(Timestamp, AbortOnDropHandle<()>)>,
}

/// A message that has come.
#[derive(Clone, Copy)]
struct Received<'a> {
    at: Instant,
    /// The same by the engine's clock.
    now: Timestamp,
    message: Option<&'a [u8]>,
}

/// Calls to start once the lock is released: mostly none or one.
#[derive(Default)]
struct NewCalls(Option<Dispatch>, VecDeque<Dispatch>);

impl NewCalls {
    fn push(&mut self, call: Dispatch) {
        match &self.0 {
            None => self.0 = Some(call),
            Some(_) => self.1.push_back(call),
        }
    }

    fn pop(&mut self) -> Option<Dispatch> {
        std::mem::replace(&mut self.0, self.1.pop_front())
    }
}

impl<S: CallService, O: Outbox> EngineDriver<S, O> {
    /// A driver that runs calls on `handlers`, or else on the current runtime.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn new(
        engine: ServerEngine,
        service: S,
        outbox: O,
        clock: Clock,
        handlers: Option<Handle>,
    ) -> Arc<Self> {
        let (running, timer) = (BTreeMap::new(), None);
        Arc::new_cyclic(|me: &Weak<Self>| Self {
            state: Mutex::new(State { engine, outbox, running, timer }),
            service,
            clock,
            runtime: Handle::current(),
            handlers: handlers.map(Box::new),
            handle: EngineHandle(Some(me.clone())),
        })
    }

    /// A handle to the engine.
    pub fn handle(&self) -> EngineHandle {
        self.handle.clone()
    }

    /// The service that runs its calls.
    pub fn service(&self) -> &S {
        &self.service
    }

    /// Looks at the engine and at the outbox.
    pub fn inspect<V>(&self, look: impl FnOnce(&mut ServerEngine, &mut O) -> V) -> V {
        let State { engine, outbox, .. } = &mut *self.state.lock();
        look(engine, outbox)
    }

    /// Calls the engine, and carries out its outputs.
    pub fn step(&self, act: impl FnOnce(&mut ServerEngine)) {
        self.run(None, |state| act(&mut state.engine), |_| ());
    }

    /// Takes the response of the client to a request of the engine, wherever it arrived.
    pub fn deliver(&self, id: &RequestId, outcome: InputOutcome) {
        let now = self.clock.now();
        self.run(None, |state| state.engine.deliver(now, id, outcome), |_| ());
    }

    /// The same for a message that has come now; `last` gets the outbox when its calls have begun. Findings are told with
    /// the message, if it is given.
    pub fn receive<V>(
        &self,
        message: Option<&[u8]>,
        act: impl FnOnce(&mut ServerEngine, &mut O, Timestamp),
        last: impl FnOnce(&mut O) -> V,
    ) -> V {
        let at = Instant::now();
        let now = self.clock.at(at);
        let received = Received { at, now, message };
        self.run(Some(received), |State { engine, outbox, .. }| act(engine, outbox, now), last)
    }

    fn run<V>(
        &self,
        received: Option<Received<'_>>,
        act: impl FnOnce(&mut State<O>),
        last: impl FnOnce(&mut O) -> V,
    ) -> V {
        let (mut state, mut calls) = (self.state.lock(), NewCalls::default());
        act(&mut state);
        self.apply(&mut state, received, &mut calls);
        while let Some(call) = calls.pop() {
            let id = call.call;
            // It may have been cancelled while a call before it ran.
            if !state.engine.is_in_flight(id) {
                continue;
            }
            match MutexGuard::unlocked(&mut state, || self.start(call)) {
                Ok(outcome) => {
                    state.engine.finish(self.time_of(&outcome, received), id, outcome);
                    self.apply(&mut state, None, &mut calls);
                }
                Err(running) => self.spawn(&mut state, id, running),
            }
        }
        self.set_timer(&mut state);
        last(&mut state.outbox)
    }

    /// The time of an outcome. By it the engine sets the deadlines of input that is required; others save the clock.
    fn time_of(&self, outcome: &HandlerOutcome, received: Option<Received<'_>>) -> Timestamp {
        match (outcome, received) {
            (HandlerOutcome::InputRequired { .. }, _) | (_, None) => self.clock.now(),
            (_, Some(received)) => received.now,
        }
    }

    /// Carries out the engine's outputs, in its order.
    fn apply(&self, state: &mut State<O>, received: Option<Received<'_>>, calls: &mut NewCalls) {
        let State { engine, outbox, running, .. } = state;
        while let Some(output) = engine.poll() {
            match output {
                Output::Send(message) => outbox.send(message),
                Output::Run(call) => calls.push(call),
                Output::Cancel(call) => match running.remove(&call) {
                    Some(cancel) => cancel.cancel(self.clock.now()),
                    None => self.service.waiting_call_ended(call),
                },
                Output::NoResponse(exchange) => outbox.end_exchange(exchange),
                Output::Ready => self.service.ready(),
                Output::ClientResponded { request, outcome } => {
                    self.service.client_responded(&request, outcome);
                }
                Output::RootsChanged => self.service.roots_changed(),
                Output::Listening(filter) => self.service.listening(&filter),
                Output::ListensForTasks { listener, context } => {
                    self.service.listens_for_tasks(*listener, context.as_ref(), &self.handle);
                }
                Output::Finding(finding) => {
                    self.service.found(&finding, received.and_then(|received| received.message));
                }
                Output::Responded(responded) => {
                    let took = received.map_or(Duration::ZERO, |received| received.at.elapsed());
                    self.service.answered(&responded, took);
                }
                Output::Shared(output) => outbox.share(output),
                Output::Close(reason) => outbox.close(reason),
            }
        }
        outbox.step_done(engine);
    }

    /// Starts a call; its outcome, if it is done at once.
    fn start(&self, call: Dispatch) -> Result<HandlerOutcome, RunningCall<S::Work>> {
        let mut running = self.service.start(call, &self.handle);
        // Polled without tokio's coop budget, so that many inline calls in a row do not return pending.
        if running.inline
            && let Poll::Ready(outcome) = poll_now(unconstrained(&mut running.work))
        {
            return Ok(outcome);
        }
        Err(running)
    }

    /// Runs the rest of a call as a task, unless it was cancelled meanwhile.
    fn spawn(&self, state: &mut State<O>, call: CallId, running: RunningCall<S::Work>) {
        let (cancel, work) = (self.service.cancellation(&running.work), running.work);
        if !state.engine.is_in_flight(call) {
            return cancel.cancel(self.clock.now());
        }
        state.running.insert(call, cancel.clone());
        state.outbox.call_spawned(&state.engine, call);
        let handle = self.handle.clone();
        self.handlers.as_deref().unwrap_or(&self.runtime).spawn(async move {
            tokio::select! {
                // The work first: when it is cancelled it may tidy up within this one turn.
                biased;
                outcome = work => handle.finish(call, outcome),
                () = cancel.cancelled() => {}
            }
        });
    }

    /// Calls the engine again at its deadline.
    fn set_timer(&self, state: &mut State<O>) {
        let Some(deadline) = state.engine.deadline() else { return };
        if state.timer.as_ref().is_some_and(|(timer, _)| *timer <= deadline) {
            return;
        }
        let (handle, at) = (self.handle.clone(), self.clock.instant(deadline));
        let timer = self.runtime.spawn(async move {
            sleep_until(at).await;
            if let Some(driver) = handle.driver() {
                driver.tick();
            }
        });
        state.timer = Some((deadline, AbortOnDropHandle::new(timer)));
    }
}

impl<S: CallService, O: Outbox> EngineAccess for EngineDriver<S, O> {
    fn step(&self, act: &mut dyn FnMut(&mut ServerEngine)) {
        Self::step(self, act);
    }

    fn tick(&self) {
        let now = self.clock.now();
        let tick = |state: &mut State<O>| {
            state.timer = None;
            state.engine.tick(now);
        };
        self.run(None, tick, |_| ());
    }

    fn finish(&self, call: CallId, outcome: HandlerOutcome) {
        let now = self.clock.now();
        let finish = |state: &mut State<O>| {
            state.running.remove(&call);
            state.engine.finish(now, call, outcome);
        };
        self.run(None, finish, |_| ());
    }

    fn detach(&self, call: CallId) {
        self.inspect(|engine, outbox| {
            if let Some(exchange) = engine.polled_exchange(call) {
                outbox.detach(exchange);
            }
        });
    }

    fn full(&self) -> Option<OwnedNotified> {
        self.state.lock().outbox.full()
    }

    fn yields(&self) -> bool {
        O::YIELDS
    }
}

impl<S, O> Drop for EngineDriver<S, O> {
    /// Running calls are cancelled with their driver: their answers have no client any more.
    fn drop(&mut self) {
        let now = self.clock.now();
        for cancel in self.state.get_mut().running.values() {
            cancel.cancel(now);
        }
    }
}

impl<S, O> fmt::Debug for EngineDriver<S, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineDriver").finish_non_exhaustive()
    }
}

/// Polls once. What is not ready is awaited later, with another waker.
pub(crate) fn poll_now<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}
