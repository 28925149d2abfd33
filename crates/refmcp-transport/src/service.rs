//! What runs the calls that an engine hands out, and how running calls speak to the engine.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use refmcp_proto::engine::{CallId, Change, Dispatch, Note, Outcome, Progress, ServerEngine};
use refmcp_proto::finding::Finding;
use tokio::sync::{mpsc, oneshot};
use tokio::task::coop::consume_budget;

use crate::cancel::Cancel;

/// Runs the calls of one conversation.
pub trait Service: Send + Sync + 'static {
    /// Makes the work for a call; it starts when it is first polled.
    fn start(&self, call: Box<Dispatch>, link: &Link) -> Running;

    /// The client's roots have changed.
    fn roots_changed(&self) {}

    /// The client broke a rule for the first time.
    fn noted(&self, _finding: &Finding) {}
}

/// Work on a call.
pub struct Running {
    /// Whether it is likely done at once: then it is first polled where the request was read, with no task and no
    /// channel in between. Work that blocks must not say so.
    pub inline: bool,
    /// Tells the work that nobody wants its outcome any more; it is dropped right after.
    pub cancel: Cancel,
    /// The work.
    pub work: Pin<Box<dyn Future<Output = Outcome> + Send>>,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("inline", &self.inline).finish_non_exhaustive()
    }
}

/// What a running call, or anybody else beside the driver, can tell an engine.
pub enum Command {
    /// A call has ended.
    Finished(CallId, Outcome),
    /// A call has come further.
    Progress(CallId, Progress),
    /// A log message, for a call or for the session.
    Log(Option<CallId>, Note),
    /// Something has changed, for this session alone.
    Changed(Change),
    /// Whoever asks wants to look at the engine.
    Inspect(Box<dyn FnOnce(&ServerEngine) + Send>),
    /// End the connection that the call's messages travel on, if it has one of its own; the client comes back.
    Detach(CallId),
}

impl fmt::Debug for Command {
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

/// Whoever takes commands for an engine. Telling waits while the peer is slow to read; once the conversation is over
/// it does nothing.
pub trait Uplink: Send + Sync {
    /// Tells the engine.
    fn tell(&self, command: Command) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

impl Uplink for mpsc::Sender<Command> {
    fn tell(&self, command: Command) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            // The only failure is that the conversation is over, and then there is nobody to tell.
            let _ = self.send(command).await;
        })
    }
}

/// A way to the engine of one conversation, for running calls.
#[derive(Clone)]
pub struct Link {
    uplink: Arc<dyn Uplink>,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

/// How many things running calls may have to say before they wait.
const QUEUE: usize = 256;

impl Link {
    /// A way that leads here.
    pub fn to(uplink: Arc<dyn Uplink>) -> Self {
        Self { uplink }
    }

    pub(crate) fn queue() -> (Self, mpsc::Receiver<Command>) {
        let (commands, receiver) = mpsc::channel(QUEUE);
        (Self::to(Arc::new(commands)), receiver)
    }

    /// Tells the engine. Whoever does nothing but talk gives way now and then, also where nothing makes it wait and
    /// where nobody listens any more: it could never be cancelled otherwise.
    async fn tell(&self, command: Command) {
        self.uplink.tell(command).await;
        consume_budget().await;
    }

    /// Reports progress of a call.
    pub async fn progress(&self, call: CallId, progress: Progress) {
        self.tell(Command::Progress(call, progress)).await;
    }

    /// Sends a log message, for a call or for the session.
    pub async fn log(&self, call: Option<CallId>, note: Note) {
        self.tell(Command::Log(call, note)).await;
    }

    /// Tells this session alone that something has changed.
    pub async fn changed(&self, change: Change) {
        self.tell(Command::Changed(change)).await;
    }

    /// Ends the connection that a call's messages travel on, if it has one of its own.
    pub async fn detach(&self, call: CallId) {
        self.tell(Command::Detach(call)).await;
    }

    /// Looks at the engine; `None` when the conversation is over.
    pub async fn inspect<T: Send + 'static>(
        &self,
        look: impl FnOnce(&ServerEngine) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, seen) = oneshot::channel();
        let look = move |engine: &ServerEngine| {
            // Whoever asked may have been cancelled meanwhile.
            let _ = answer.send(look(engine));
        };
        self.tell(Command::Inspect(Box::new(look))).await;
        seen.await.ok()
    }

    /// A call has ended.
    pub async fn finished(&self, call: CallId, outcome: Outcome) {
        self.uplink.tell(Command::Finished(call, outcome)).await;
    }
}
