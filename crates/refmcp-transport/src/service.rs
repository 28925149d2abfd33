//! The service that runs calls, and the handle of running calls to the engine.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use refmcp_proto::engine::{
    CallFailure, CallId, Change, Dispatch, HandlerOutcome, InputOutcome, LogMessage, Progress,
    RequestContext, Responded, ServerEngine, SessionRequest, TaskListener,
};
use refmcp_proto::finding::Finding;
use refmcp_proto::jsonrpc::RequestId;
use refmcp_proto::model::{ServerNotification, SubscriptionFilter, TaskNotificationParams};
use refmcp_proto::time::Timestamp;
use tokio::sync::futures::OwnedNotified;
use tokio::task::coop::consume_budget;
use tokio::task::yield_now;

use crate::cancel::Cancellation;

/// Runs the calls of one connection.
pub trait CallService: Send + Sync + 'static {
    /// The work on a call.
    type Work: Future<Output = HandlerOutcome> + Send + Unpin + 'static;

    /// Makes the work for a call; it starts when it is first polled.
    fn start(&self, call: Dispatch, handle: &EngineHandle) -> RunningCall<Self::Work>;

    /// What cancels this work, which is dropped right after; asked for once the work is not done at once.
    fn cancellation(&self, _work: &Self::Work) -> Cancellation {
        Cancellation::default()
    }

    /// The session is open: the client has sent `initialized`.
    fn ready(&self) {}

    /// What became of a request of the session ([`EngineHandle::request_client`]).
    fn client_responded(&self, _request: &RequestId, _outcome: InputOutcome) {}

    /// The client's roots have changed.
    fn roots_changed(&self) {}

    /// A call that waits for input of the client has ended: it was cancelled, or the client cannot give the input.
    fn waiting_call_ended(&self, _call: CallId) {}

    /// What `subscriptions/listen` streams of the connection want has changed; told where calls are forwarded.
    fn listening(&self, _filter: &SubscriptionFilter) {}

    /// A `subscriptions/listen` stream was opened that names tasks; notifications of them go to the engine by the handle.
    fn listens_for_tasks(
        &self,
        _listener: TaskListener,
        _context: Option<&RequestContext>,
        _handle: &EngineHandle,
    ) {
    }

    /// The client broke a rule for the first time, in this message if it is known.
    fn found(&self, _finding: &Finding, _message: Option<&[u8]>) {}

    /// The engine answered a request without a handler.
    fn answered(&self, _responded: &Responded, _took: Duration) {}
}

/// Work on a call.
pub struct RunningCall<W> {
    /// Whether it is likely done at once: then it is first polled where the request was read, without a task. Work that
    /// blocks must not say so.
    pub inline: bool,
    /// The work.
    pub work: W,
}

impl<W> fmt::Debug for RunningCall<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningCall").field("inline", &self.inline).finish_non_exhaustive()
    }
}

/// A handle to the engine of one connection, for running calls. It does not keep the connection alive; once that is over
/// it does nothing.
#[derive(Debug, Clone)]
pub struct EngineHandle(pub(crate) Option<Weak<dyn EngineAccess>>);

/// What a handle does with the driver of its engine, whatever its service and its outbox are.
pub(crate) trait EngineAccess: Send + Sync {
    /// Calls the engine and carries out its outputs.
    fn step(&self, act: &mut dyn FnMut(&mut ServerEngine));

    /// Calls the engine at its deadline.
    fn tick(&self);

    /// A call that ran as a task has ended.
    fn finish(&self, call: CallId, outcome: HandlerOutcome);

    /// Ends the connection that a call's messages travel on.
    fn detach(&self, call: CallId);

    /// The wait for room, while the peer is slow to read.
    fn full(&self) -> Option<OwnedNotified>;

    /// Whether a running call gives way after each message, so that the task which writes it gets a turn.
    fn yields(&self) -> bool;
}

impl EngineHandle {
    /// A handle for calls without an engine: what they send has no client.
    pub fn disconnected() -> Self {
        Self(None)
    }

    pub(crate) fn driver(&self) -> Option<Arc<dyn EngineAccess>> {
        self.0.as_ref()?.upgrade()
    }

    /// Reports progress of a call.
    pub async fn progress(&self, call: CallId, progress: Progress) {
        self.send(|engine| engine.progress(call, progress)).await;
    }

    /// Sends a log message, for a call or for the session.
    pub async fn log(&self, call: Option<CallId>, note: LogMessage) {
        self.send(|engine| engine.log(call, note)).await;
    }

    /// Tells this session alone that something has changed.
    pub async fn changed(&self, change: Change) {
        self.send(|engine| engine.session_changed(&change)).await;
    }

    /// The same, on the client's streams of `subscriptions/listen` too.
    pub async fn published(&self, change: Change) {
        self.send(|engine| engine.changed(&change)).await;
    }

    /// Sends a notification that the engine knows nothing of, for a call or for the session.
    pub async fn notify(&self, call: Option<CallId>, notification: ServerNotification) {
        self.send(|engine| engine.notify(call, &notification)).await;
    }

    /// Tells a `subscriptions/listen` stream what has become of a task.
    pub async fn task_changed(&self, listener: Arc<TaskListener>, params: TaskNotificationParams) {
        self.send(move |engine| engine.task_changed(&listener, params)).await;
    }

    /// Whether both lead to the engine of one connection.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Weak::ptr_eq(one, other),
            _ => false,
        }
    }

    /// Runs a call again that waits for input of the client, since it no longer needs it.
    pub async fn withdraw_input(&self, call: CallId) {
        self.send(|engine| engine.withdraw_input(call)).await;
    }

    /// The same for what it has asked for after one run of its handler.
    pub async fn withdraw_input_of_round(&self, call: CallId, round: u32) {
        self.send(|engine| engine.withdraw_input_of_round(call, round)).await;
    }

    /// Sends the client a request that belongs to no call; `sent` gets its id before a response can come. `None` when the
    /// connection is over.
    pub fn request_client(
        &self,
        now: Timestamp,
        request: SessionRequest,
        sent: impl FnOnce(RequestId),
    ) -> Option<Result<(), CallFailure>> {
        let (driver, mut request, mut made) = (self.driver()?, Some((request, sent)), None);
        driver.step(&mut |engine| {
            made = request.take().map(|(request, sent)| engine.request_client(now, request).map(sent));
        });
        made
    }

    /// Ends the connection that a call's messages travel on, if it has one of its own; the client comes back.
    pub fn detach(&self, call: CallId) {
        if let Some(driver) = self.driver() {
            driver.detach(call);
        }
    }

    /// Looks at the engine; `None` when the connection is over.
    pub fn inspect<T>(&self, look: impl FnOnce(&ServerEngine) -> T) -> Option<T> {
        let (driver, mut look, mut seen) = (self.driver()?, Some(look), None);
        driver.step(&mut |engine| seen = look.take().map(|look| look(engine)));
        seen
    }

    /// A call that ran as a task has ended. It does not wait for a slow peer: memory is reserved for what is in the queue,
    /// and not for what waits.
    pub(crate) fn finish(&self, call: CallId, outcome: HandlerOutcome) {
        if let Some(driver) = self.driver() {
            driver.finish(call, outcome);
        }
    }

    /// Calls the engine, and yields now and then: a call that does nothing else could never be cancelled otherwise.
    async fn send(&self, act: impl FnOnce(&mut ServerEngine) + Send) {
        self.has_room().await;
        let mut act = Some(act);
        let yields = self.driver().is_some_and(|driver| {
            driver.step(&mut |engine| {
                if let Some(act) = act.take() {
                    act(engine);
                }
            });
            driver.yields()
        });
        if yields { yield_now().await } else { consume_budget().await }
    }

    /// Waits while the peer is slow to read.
    async fn has_room(&self) {
        while let Some(freed) = self.driver().and_then(|driver| driver.full()) {
            freed.await;
        }
    }
}
