//! Runs the handler of a task: until it needs input, has an outcome, or its task is cancelled or expires.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use refmcp_proto::engine::{
    DetachedCall, DetachedOutcome, LogMessage, Progress, RequestContext, ServerEngine, TaskState,
};
use refmcp_proto::jsonrpc::{ProgressToken, RpcError};
use refmcp_proto::model::{
    JsonObject, LogParams, NotificationMeta, ProgressParams, ServerNotification, keys,
};
use refmcp_proto::revision::{NotificationMethod, Tasks, downgrade};
use refmcp_transport::EngineHandle;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::start::short;
use super::store::{NoRoomForTask, TaskStore};
use crate::backplane::Unavailable;
use crate::method;
use crate::replica_lease::ReplicaLease;
use crate::server::Server;
use crate::session::Session;

/// How often at most the status message of a task changes with the progress of its handler.
const MESSAGE_INTERVAL: Duration = Duration::from_millis(100);

/// In place of a time that clocks cannot count.
const LONG: Duration = Duration::from_secs(365 * 24 * 3600);

/// After which time a backplane that failed is tried again.
const RETRY: Duration = Duration::from_millis(500);
const MAX_RETRY: Duration = Duration::from_secs(10);

/// What a task is told to have come to whose result finds no room.
const TOO_LARGE: &str = "the result is larger than what can be kept of tasks";

/// A run of a task's handler, as its call sees it.
pub(crate) struct RunningTask {
    id: Arc<str>,
    session: Arc<Session>,
    /// In 2025-11-25 progress and log messages of a task are sent like those of other calls.
    sends: bool,
    progress_token: Option<ProgressToken>,
    last: Mutex<Last>,
}

/// What was said last.
struct Last {
    progress: Option<f64>,
    message_at: Option<Instant>,
}

/// Runs a task from its beginning, or from where its input is complete.
pub(super) async fn run(session: Arc<Session>, context: Option<RequestContext>, id: Arc<str>) {
    let _run = session.server().value::<ReplicaLease>().run(session.server());
    if let Err(error) = run_handler(&session, context, &id).await {
        let error = &error as &dyn std::error::Error;
        tracing::warn!(task = %short(&id), error, "a task has stopped without an outcome");
    }
}

/// Runs a task again that has all of its input, in the background.
pub(crate) fn resume_task(session: Arc<Session>, context: Option<RequestContext>, id: Arc<str>) {
    tokio::spawn(run(session, context, id));
}

async fn run_handler(
    session: &Arc<Session>,
    context: Option<RequestContext>,
    id: &Arc<str>,
) -> Result<(), Unavailable> {
    let (server, config) = (session.server(), session.server().config());
    let store = TaskStore::of(server);
    let mut retries = Retries::of(server);
    let call = loop {
        match store.call(id).await {
            Ok(call) => break call,
            Err(error) => retries.pause(error).await?,
        }
    };
    let Some(mut call) = call else { return Ok(()) };
    let Some(dispatch) = call.dispatch(config, context) else { return Ok(()) };
    let running = Arc::new(RunningTask {
        id: id.clone(),
        session: session.clone(),
        sends: dispatch.peer.rules().tasks == Tasks::Experimental,
        progress_token: dispatch.progress_token.clone(),
        last: Mutex::new(Last { progress: None, message_at: None }),
    });
    let work = method::start_task(session, dispatch, &EngineHandle::disconnected(), running.clone()).work;
    let cancellation = work.cancellation().clone();
    let outcome = tokio::select! {
        biased;
        outcome = work => outcome,
        () = wait_until_over(server, id) => {
            cancellation.cancel(server.now());
            return Ok(());
        }
    };
    let outcome = call.finish(config, outcome);
    let mut retries = Retries::of(server);
    let mut is_too_large = false;
    let changed = loop {
        let finish = |state: &mut TaskState, kept: &mut DetachedCall| {
            kept.clone_from(&call);
            let outcome = match is_too_large {
                true => DetachedOutcome::Failed(RpcError::internal(TOO_LARGE)),
                false => outcome.clone(),
            };
            state.finish(server.now(), outcome).then_some(())
        };
        match store.change_call(id, finish).await {
            Ok(changed) => break changed,
            Err(error) if is_no_room(&error) && !is_too_large => is_too_large = true,
            Err(error) => retries.pause(error).await?,
        }
    };
    if let Some((Some(()), state)) = changed {
        running.tell_status(&state).await;
    }
    Ok(())
}

/// Repeats what the backplane could not do, until no task is kept any more that it would be for: an outcome that was lost
/// would leave its requestor waiting.
struct Retries {
    deadline: Instant,
    pause: Duration,
}

impl Retries {
    fn of(server: &Server) -> Self {
        let now = Instant::now();
        let deadline = now.checked_add(server.settings().tasks.max_ttl);
        Self { deadline: deadline.unwrap_or(now + LONG), pause: RETRY }
    }

    /// Waits until it can be tried again, if that helps.
    async fn pause(&mut self, error: Unavailable) -> Result<(), Unavailable> {
        if Instant::now() >= self.deadline || is_no_room(&error) {
            return Err(error);
        }
        tracing::debug!(error = &error as &dyn std::error::Error, "a change of a task is tried again");
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(MAX_RETRY);
        Ok(())
    }
}

fn is_no_room(error: &Unavailable) -> bool {
    error.source().is_some_and(<dyn Error>::is::<NoRoomForTask>)
}

/// Waits until a task is over, or gone.
async fn wait_until_over(server: &Server, id: &str) {
    let store = TaskStore::of(server);
    loop {
        let waited = match store.read(id).await {
            Ok(None) => return,
            Ok(Some(task)) if task.state.is_over() => return,
            Ok(Some(task)) => store.changed(&task).await,
            Err(error) => Err(error),
        };
        if waited.is_err() {
            sleep(RETRY).await;
        }
    }
}

impl RunningTask {
    /// Takes progress of the handler: as what the task is doing, and for a requestor that hears of it.
    pub(crate) async fn progress(&self, progress: Progress) {
        if let Some(message) = self.due_message(&progress) {
            let server = self.session.server();
            let told = TaskStore::of(server)
                .change(&self.id, |state| state.set_message(server.now(), &message).then_some(()))
                .await;
            if let Err(error) = told {
                tracing::debug!(%error, "a status message is lost");
            }
        }
        let grows = {
            let mut last = self.last.lock();
            let grows = last.progress.is_none_or(|last| progress.progress > last);
            last.progress = if grows { Some(progress.progress) } else { last.progress };
            grows
        };
        if let Some(token) = self.progress_token.as_ref().filter(|_| self.sends && grows) {
            let mut params = ProgressParams::new(token.clone(), progress.progress);
            if let Some(total) = progress.total {
                params = params.total(total);
            }
            (params.message, params.meta) = (progress.message, Some(self.related()));
            self.session.notify(ServerNotification::Progress(params)).await;
        }
    }

    /// The message to show, unless there was one a moment ago.
    fn due_message(&self, progress: &Progress) -> Option<String> {
        let message = progress.message.clone()?;
        let mut last = self.last.lock();
        let now = Instant::now();
        if last.message_at.is_some_and(|at| now - at < MESSAGE_INTERVAL) {
            return None;
        }
        last.message_at = Some(now);
        Some(message)
    }

    /// Sends a log message of the handler.
    pub(crate) async fn log(&self, note: LogMessage) {
        let level = self.session.inspect(ServerEngine::log_level);
        if self.sends && level.is_some_and(|level| note.level >= level) {
            let mut params = LogParams::new(note.level, note.data);
            (params.logger, params.meta) = (note.logger, Some(self.related()));
            self.session.notify(ServerNotification::Log(params)).await;
        }
    }

    /// Tells the requestor what the task has come to, where its revision has that.
    async fn tell_status(&self, state: &TaskState) {
        if self.sends {
            let method = NotificationMethod::TaskStatus.name().to_owned();
            let params = downgrade::experimental_task(&state.without_outcome());
            self.session.notify(ServerNotification::Custom { method, params }).await;
        }
    }

    fn related(&self) -> NotificationMeta {
        let mut extra = JsonObject::new();
        extra.insert(keys::RELATED_TASK.to_owned(), related_task(&self.id));
        NotificationMeta { extra, ..Default::default() }
    }
}

/// The value in `_meta` that says which task a message belongs to.
pub(crate) fn related_task(id: &str) -> Value {
    json!({ "taskId": id })
}
