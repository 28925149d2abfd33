//! The tasks that send messages, and the send order: notifications and responses go one after the other, a request waits
//! for the last notification and for the GET stream only.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use refmcp_proto::engine::client::{ClientMessage, ClientMessageKind, ExchangeId, TransportError};
use refmcp_proto::revision::Method;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long a message waits for the acknowledgement of one before it.
const ORDER_TIMEOUT: Duration = Duration::from_secs(5);

/// Notifications and responses under way: a server that asks faster than it takes responses could fill the memory.
const MAX_UNANSWERED: usize = 1_000;

/// Why the task of a message was not started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotStarted {
    /// Everything is closed.
    Closed,
    /// Too many messages are under way.
    TooMany,
}

impl From<NotStarted> for TransportError {
    fn from(why: NotStarted) -> Self {
        match why {
            NotStarted::Closed => Self::Closed,
            NotStarted::TooMany => Self::Misbehaved(format!(
                "it sends requests faster than it takes the responses, of which {MAX_UNANSWERED} are under way"
            )),
        }
    }
}

/// One task for each message under way, and one for the GET stream.
pub(crate) struct MessageTasks {
    runtime: Handle,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    requests: HashMap<ExchangeId, JoinHandle<()>>,
    /// Notifications and responses, which have no answer, and what has to be sent although no caller waits.
    unanswered: HashMap<ExchangeId, JoinHandle<()>>,
    get_stream: Option<JoinHandle<()>>,
    last_unanswered: Option<Acknowledgement>,
    last_notification: Option<Acknowledgement>,
    closed: bool,
}

/// Closed once the server has acknowledged a message, or will not.
type Acknowledgement = Arc<Semaphore>;

/// Acknowledges a message when it is dropped.
pub(crate) struct SendOrderGuard(Option<Acknowledgement>);

impl Drop for SendOrderGuard {
    fn drop(&mut self) {
        if let Some(acknowledgement) = &self.0 {
            acknowledgement.close();
        }
    }
}

/// The place of a message in the send order.
pub(crate) struct SendOrder {
    after: Option<Acknowledgement>,
    guard: SendOrderGuard,
}

impl SendOrder {
    /// Waits for the message before; the one after waits until the guard is dropped.
    pub(crate) async fn wait(self) -> SendOrderGuard {
        if let Some(acknowledgement) = self.after
            && timeout(ORDER_TIMEOUT, acknowledgement.acquire()).await.is_err()
        {
            tracing::debug!("a message goes before one that was not acknowledged");
        }
        self.guard
    }
}

impl MessageTasks {
    /// # Panics
    /// Outside of a tokio runtime.
    pub(crate) fn new() -> Self {
        Self { runtime: Handle::current(), state: Mutex::default() }
    }

    /// Starts the task of a message, which calls [`Self::done`] at its end.
    ///
    /// # Errors
    /// Everything is closed, or too many messages are under way.
    pub(crate) fn start<F>(
        &self,
        message: ClientMessage,
        work: impl FnOnce(SendOrder, ClientMessage) -> F,
    ) -> Result<(), NotStarted>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        // Locked while the task is started, so that it cannot be done before it is in the map.
        let mut state = self.state.lock();
        if state.closed {
            return Err(NotStarted::Closed);
        }
        if matches!(message.kind, ClientMessageKind::Response) && state.unanswered.len() >= MAX_UNANSWERED {
            return Err(NotStarted::TooMany);
        }
        let exchange = message.exchange;
        let (order, is_request) = match &message.kind {
            kind @ ClientMessageKind::Request { .. } => (state.order_of_request(), !cancels_task(kind)),
            ClientMessageKind::Notification { .. } => (state.order_of_unanswered(true), false),
            ClientMessageKind::Response => (state.order_of_unanswered(false), false),
        };
        let task = self.runtime.spawn(work(order, message));
        if is_request { &mut state.requests } else { &mut state.unanswered }.insert(exchange, task);
        Ok(())
    }

    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(work);
    }

    /// Starts the task that reads the GET stream, in place of the one before.
    pub(crate) fn open_get_stream<F>(&self, work: impl FnOnce(SendOrder) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut state = self.state.lock();
        if state.closed {
            return;
        }
        let order = state.order_of_get_stream();
        let task = self.runtime.spawn(work(order));
        if let Some(before) = state.get_stream.replace(task) {
            before.abort();
        }
    }

    pub(crate) fn close_get_stream(&self) {
        if let Some(task) = self.state.lock().get_stream.take() {
            task.abort();
        }
    }

    /// The task of a message has ended.
    pub(crate) fn done(&self, exchange: ExchangeId) {
        let mut state = self.state.lock();
        if state.requests.remove(&exchange).is_none() {
            state.unanswered.remove(&exchange);
        }
    }

    /// Ends the task of a request.
    pub(crate) fn abandon(&self, exchange: ExchangeId) {
        let mut state = self.state.lock();
        let task = state.requests.remove(&exchange).or_else(|| state.unanswered.remove(&exchange));
        if let Some(task) = task {
            task.abort();
        }
    }

    /// Starts nothing more and ends requests and the GET stream. Returns what still sends notifications and responses.
    pub(crate) async fn close(&self) -> Vec<JoinHandle<()>> {
        let (ended, unanswered) = {
            let mut state = self.state.lock();
            state.closed = true;
            let requests = std::mem::take(&mut state.requests).into_values();
            let ended: Vec<_> = requests.chain(state.get_stream.take()).collect();
            (ended, std::mem::take(&mut state.unanswered).into_values().collect())
        };
        abort(ended).await;
        unanswered
    }

    /// Ends everything at once.
    pub(crate) fn abort(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let State { requests, unanswered, get_stream, .. } = &mut *state;
        let tasks = requests.drain().chain(unanswered.drain()).map(|(_, task)| task);
        tasks.chain(get_stream.take()).for_each(|task| task.abort());
    }
}

/// Whether a message is `tasks/cancel`. A task outlives the connection: that it is cancelled is sent to the end, as a
/// notification is.
pub(crate) fn cancels_task(kind: &ClientMessageKind) -> bool {
    matches!(kind, ClientMessageKind::Request { method, .. } if **method == *Method::CancelTask.name())
}

/// Waits for the end of tasks, and takes out those that have ended.
pub(crate) async fn join(tasks: &mut Vec<JoinHandle<()>>) {
    while let Some(task) = tasks.last_mut() {
        // Errors went to the message sink.
        let _ended = task.await;
        tasks.pop();
    }
}

/// Ends tasks and waits until they are gone.
pub(crate) async fn abort(tasks: Vec<JoinHandle<()>>) {
    tasks.iter().for_each(JoinHandle::abort);
    for task in tasks {
        // Aborted or finished: both are fine.
        let _ended = task.await;
    }
}

impl State {
    fn order_of_request(&mut self) -> SendOrder {
        self.last_notification.take_if(|acknowledgement| acknowledgement.is_closed());
        SendOrder { after: self.last_notification.clone(), guard: SendOrderGuard(None) }
    }

    /// It goes where a notification would: what a server sends on the stream before it is open may be lost.
    fn order_of_get_stream(&mut self) -> SendOrder {
        let acknowledgement = Arc::new(Semaphore::new(0));
        let before = self.last_notification.replace(acknowledgement.clone());
        SendOrder { after: before.filter(|it| !it.is_closed()), guard: SendOrderGuard(Some(acknowledgement)) }
    }

    fn order_of_unanswered(&mut self, is_notification: bool) -> SendOrder {
        let acknowledgement = Arc::new(Semaphore::new(0));
        if is_notification {
            self.last_notification = Some(acknowledgement.clone());
        }
        let before = self.last_unanswered.replace(acknowledgement.clone());
        SendOrder { after: before.filter(|it| !it.is_closed()), guard: SendOrderGuard(Some(acknowledgement)) }
    }
}
