//! The tasks behind a transport: one for each message on its way, and the order among them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use refmcp_proto::engine::client::{ClientMessageKind, ExchangeId};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long a message waits for one before it that the server does not acknowledge.
const ORDER_PATIENCE: Duration = Duration::from_secs(5);

/// What a message has to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendOrder {
    /// Waits for notifications, and not for other requests.
    Request,
    /// Waits for whatever was told before.
    Notification,
    /// Waits for whatever was told before, and no request waits for it.
    Answer,
}

impl SendOrder {
    pub(super) fn of(kind: &ClientMessageKind) -> Self {
        match kind {
            ClientMessageKind::Request { .. } => Self::Request,
            ClientMessageKind::Notification { .. } => Self::Notification,
            ClientMessageKind::Response => Self::Answer,
        }
    }
}

/// The tasks behind a transport.
#[derive(Debug)]
pub(super) struct MessageTasks {
    runtime: Handle,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    asked: HashMap<ExchangeId, JoinHandle<()>>,
    told: HashMap<ExchangeId, JoinHandle<()>>,
    /// What reads a stream that belongs to no message.
    standing: Option<JoinHandle<()>>,
    /// The last thing that was told, a notification or an answer.
    last_told: Option<Gate>,
    /// The last notification; requests wait for it.
    last_notified: Option<Gate>,
    closed: bool,
}

/// Open once the server has acknowledged a message, or will not.
type Gate = Arc<Semaphore>;

/// TurnGuard a gate, at the latest when it is dropped.
#[derive(Debug)]
pub(super) struct TurnGuard(Option<Gate>);

impl Drop for TurnGuard {
    fn drop(&mut self) {
        if let Some(gate) = &self.0 {
            gate.close();
        }
    }
}

/// What a message has to wait for, and what waits for it.
#[derive(Debug)]
pub(super) struct Turn {
    after: Option<Gate>,
    opens: TurnGuard,
}

impl Turn {
    /// Waits for what comes before; whoever comes after waits until what is given back is dropped.
    pub(super) async fn wait(self) -> TurnGuard {
        if let Some(gate) = self.after
            && timeout(ORDER_PATIENCE, gate.acquire()).await.is_err()
        {
            tracing::debug!("a message goes before one that was not acknowledged");
        }
        self.opens
    }
}

impl MessageTasks {
    /// # Panics
    /// Outside of a tokio runtime.
    pub(super) fn new() -> Self {
        Self { runtime: Handle::current(), state: Mutex::default() }
    }

    /// Starts the task of a message; whether it could be. The task says when it is done by [`Self::done`].
    pub(super) fn start<F>(
        &self,
        exchange: ExchangeId,
        order: SendOrder,
        work: impl FnOnce(Turn) -> F,
    ) -> bool
    where
        F: Future<Output = ()> + Send + 'static,
    {
        // Locked while the task is started, so that it cannot be done before it is known.
        let mut state = self.state.lock();
        if state.closed {
            return false;
        }
        let turn = state.turn(order);
        let task = self.runtime.spawn(work(turn));
        if order == SendOrder::Request { &mut state.asked } else { &mut state.told }.insert(exchange, task);
        true
    }

    /// Runs something beside every message.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(work);
    }

    /// Sets what reads the stream that belongs to no message, in place of what did before.
    pub(super) fn open_get_stream<F>(&self, work: impl FnOnce(Turn) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut state = self.state.lock();
        if state.closed {
            return;
        }
        let turn = state.turn(SendOrder::Request);
        let task = self.runtime.spawn(work(turn));
        if let Some(before) = state.standing.replace(task) {
            before.abort();
        }
    }

    /// Ends what reads the stream that belongs to no message.
    pub(super) fn close_get_stream(&self) {
        if let Some(task) = self.state.lock().standing.take() {
            task.abort();
        }
    }

    /// The task of a message has done its work.
    pub(super) fn done(&self, exchange: ExchangeId) {
        let mut state = self.state.lock();
        if state.asked.remove(&exchange).is_none() {
            state.told.remove(&exchange);
        }
    }

    /// Ends the task of a request.
    pub(super) fn abandon(&self, exchange: ExchangeId) {
        if let Some(task) = self.state.lock().asked.remove(&exchange) {
            task.abort();
        }
    }

    /// Starts nothing more and waits for no answers; what is being told is given back, to be waited for.
    pub(super) async fn wind_down(&self) -> Vec<JoinHandle<()>> {
        let (ended, told) = {
            let mut state = self.state.lock();
            state.closed = true;
            let asked = std::mem::take(&mut state.asked).into_values();
            let ended: Vec<_> = asked.chain(state.standing.take()).collect();
            (ended, std::mem::take(&mut state.told).into_values().collect())
        };
        end(ended).await;
        told
    }

    /// Ends everything at once.
    pub(super) fn abort(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let State { asked, told, standing, .. } = &mut *state;
        for (_, task) in asked.drain().chain(told.drain()) {
            task.abort();
        }
        if let Some(task) = standing.take() {
            task.abort();
        }
    }
}

/// Waits until tasks have come to their end, and takes out those that have.
pub(super) async fn join(tasks: &mut Vec<JoinHandle<()>>) {
    while let Some(task) = tasks.last_mut() {
        // How it went was told to the sink.
        let _ended = task.await;
        tasks.pop();
    }
}

/// Ends tasks and waits until they are gone.
pub(super) async fn end(tasks: Vec<JoinHandle<()>>) {
    for task in &tasks {
        task.abort();
    }
    for task in tasks {
        // It was ended, or had come to its end; both is what we want.
        let _ended = task.await;
    }
}

impl State {
    fn turn(&mut self, order: SendOrder) -> Turn {
        if order == SendOrder::Request {
            self.last_notified.take_if(|gate| gate.is_closed());
            return Turn { after: self.last_notified.clone(), opens: TurnGuard(None) };
        }
        let gate = Arc::new(Semaphore::new(0));
        if order == SendOrder::Notification {
            self.last_notified = Some(gate.clone());
        }
        let after = self.last_told.replace(gate.clone()).filter(|gate| !gate.is_closed());
        Turn { after, opens: TurnGuard(Some(gate)) }
    }
}
