//! The service that runs calls, and the handle of running calls to the engine.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use refmcp_proto::engine::{CallId, Change, Dispatch, HandlerOutcome, LogMessage, Progress, ServerEngine};
use refmcp_proto::finding::Finding;
use refmcp_proto::revision::Method;
use tokio::sync::{mpsc, oneshot};
use tokio::task::coop::consume_budget;

use crate::cancel::Cancellation;

/// Runs the calls of one connection.
pub trait CallService: Send + Sync + 'static {
    /// Makes the work for a call; it starts when it is first polled.
    fn start(&self, call: Box<Dispatch>, handle: &EngineHandle) -> RunningCall;

    /// The client's roots have changed.
    fn roots_changed(&self) {}

    /// The client broke a rule for the first time.
    fn found(&self, _finding: &Finding) {}

    /// The engine answered a request without a handler; `None` is a method that the server does not know.
    fn answered(&self, _method: Option<&Method>, _failed: bool, _took: Duration) {}
}

/// Work on a call.
pub struct RunningCall {
    /// Whether it is likely done at once: then it is first polled where the request was read, with no task and no
    /// channel in between. Work that blocks must not say so.
    pub inline: bool,
    /// Cancels the work, which is dropped right after.
    pub cancel: Cancellation,
    /// The work.
    pub work: Pin<Box<dyn Future<Output = HandlerOutcome> + Send>>,
}

impl fmt::Debug for RunningCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningCall").field("inline", &self.inline).finish_non_exhaustive()
    }
}

/// What running calls, and others beside the driver, tell an engine.
pub enum EngineCommand {
    /// A call has ended.
    Finished(CallId, HandlerOutcome),
    /// A call has come further.
    Progress(CallId, Progress),
    /// A log message, for a call or for the session.
    Log(Option<CallId>, LogMessage),
    /// Something has changed, for this session alone.
    Changed(Change),
    /// Calls a function with the engine.
    Inspect(Box<dyn FnOnce(&ServerEngine) + Send>),
    /// ConnectionEnd the connection that the call's messages travel on, if it has one of its own; the client comes back.
    Detach(CallId),
}

impl fmt::Debug for EngineCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Finished(..) => "Finished",
            Self::Progress(..) => "Progress",
            Self::Log(..) => "Log",
            Self::Changed(_) => "Changed",
            Self::Inspect(_) => "Inspect",
            Self::Detach(_) => "Detach",
        })
    }
}

/// Takes commands for an engine. Sending waits while the peer is slow to read; once the connection is over it does
/// nothing.
pub trait CommandSink: Send + Sync {
    /// Tells the engine.
    fn send_command(&self, command: EngineCommand) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

impl CommandSink for mpsc::Sender<EngineCommand> {
    fn send_command(&self, command: EngineCommand) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            // The only failure is that the connection is over.
            let _ = self.send(command).await;
        })
    }
}

/// A handle to the engine of one connection, for running calls.
#[derive(Clone)]
pub struct EngineHandle {
    sink: Arc<dyn CommandSink>,
}

impl fmt::Debug for EngineHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineHandle").finish_non_exhaustive()
    }
}

/// How many things running calls may have to say before they wait.
const QUEUE: usize = 256;

impl EngineHandle {
    /// A handle that sends to this sink.
    pub fn new(sink: Arc<dyn CommandSink>) -> Self {
        Self { sink }
    }

    pub(crate) fn queue() -> (Self, mpsc::Receiver<EngineCommand>) {
        let (commands, receiver) = mpsc::channel(QUEUE);
        (Self::new(Arc::new(commands)), receiver)
    }

    /// Sends a command, and yields now and then: a call that does nothing else could never be cancelled otherwise.
    async fn send(&self, command: EngineCommand) {
        self.sink.send_command(command).await;
        consume_budget().await;
    }

    /// Reports progress of a call.
    pub async fn progress(&self, call: CallId, progress: Progress) {
        self.send(EngineCommand::Progress(call, progress)).await;
    }

    /// Sends a log message, for a call or for the session.
    pub async fn log(&self, call: Option<CallId>, note: LogMessage) {
        self.send(EngineCommand::Log(call, note)).await;
    }

    /// Tells this session alone that something has changed.
    pub async fn changed(&self, change: Change) {
        self.send(EngineCommand::Changed(change)).await;
    }

    /// Ends the connection that a call's messages travel on, if it has one of its own.
    pub async fn detach(&self, call: CallId) {
        self.send(EngineCommand::Detach(call)).await;
    }

    /// Looks at the engine; `None` when the connection is over.
    pub async fn inspect<T: Send + 'static>(
        &self,
        look: impl FnOnce(&ServerEngine) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, seen) = oneshot::channel();
        let look = move |engine: &ServerEngine| {
            // The caller may have been cancelled meanwhile.
            let _ = answer.send(look(engine));
        };
        self.send(EngineCommand::Inspect(Box::new(look))).await;
        seen.await.ok()
    }

    /// A call has ended.
    pub async fn finished(&self, call: CallId, outcome: HandlerOutcome) {
        self.sink.send_command(EngineCommand::Finished(call, outcome)).await;
    }
}
