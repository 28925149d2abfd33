//! One call, as its handler sees it.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use refmcp_proto::engine::{
    self, CallId, Change, Dispatch, HandlerOutcome, InputOutcome, LogMessage, Progress, ServerEngine,
};
use refmcp_proto::jsonrpc::{RequestId, RpcError};
use refmcp_proto::model::{
    CreateMessageParams, CreateMessageResult, ElicitFormParams, ElicitUrlParams, FormSchema, InputRequest,
    LogLevel, Root, SamplingMessage, ServerNotification,
};
use refmcp_proto::peer::Peer;
use refmcp_proto::revision::{Lifecycle, Method};
use refmcp_proto::time::Timestamp;
use refmcp_transport::{Cancellation, EngineHandle};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::task::coop::consume_budget;

use crate::error::{CallError, ServerRequestError};
use crate::server::Server;
use crate::server_request::{ElicitOutcome, ServerRequest};
use crate::session::{Connection, Session};
use crate::tasks::{self, RunningTask};
use crate::trace_context::TraceContext;

/// One call: the client, results of earlier rounds, requests to the client, progress, logs and cancellation.
///
/// Cheap to clone; handlers may hand it to whatever they start.
#[derive(Clone)]
pub struct Call {
    inner: Arc<Inner>,
}

struct Inner {
    dispatch: Dispatch,
    session: Arc<Session>,
    handle: EngineHandle,
    /// The task, where it is a run of one.
    task: Option<Arc<RunningTask>>,
    /// Made for a call that is not done at once, or whose handler waits for it.
    cancellation: OnceLock<Cancellation>,
    /// None until there is something to note.
    notes: Mutex<Option<Box<Notes>>>,
}

/// What this run of the handler has found.
#[derive(Default)]
struct Notes {
    /// Every server request of this run, with whether its result was there.
    asked: BTreeMap<String, (InputRequest, bool)>,
    conflict: Option<String>,
    once: BTreeMap<String, Value>,
}

impl Call {
    pub(crate) fn new(
        dispatch: Dispatch,
        session: Arc<Session>,
        handle: EngineHandle,
        task: Option<Arc<RunningTask>>,
    ) -> Self {
        let (cancellation, notes) = (OnceLock::new(), Mutex::default());
        Self { inner: Arc::new(Inner { dispatch, session, handle, task, cancellation, notes }) }
    }

    /// Elicits values from the user with a form, under a key as in [`request`](Self::request).
    ///
    /// ```
    /// # use refmcp_server::{Call, CallError, ElicitOutcome, model::{FormSchema, StringSchema}};
    /// # async fn handler(call: Call) -> Result<String, CallError> {
    /// let form = FormSchema::new().required("name", StringSchema::new());
    /// let ElicitOutcome::Accepted(values) = call.elicit("name", "Who are you?", form)? else {
    ///     return Ok("Hello, stranger!".to_owned());
    /// };
    /// # Ok(format!("Hello, {}!", values["name"])) }
    /// ```
    #[doc(alias = "elicitation")]
    #[doc(alias = "elicit_input")]
    #[doc(alias = "form")]
    pub fn elicit(
        &self,
        key: &str,
        message: impl Into<String>,
        schema: FormSchema,
    ) -> Result<ElicitOutcome, ServerRequestError> {
        self.request(key, ElicitFormParams::new(message, schema))
    }

    /// Asks the user to visit a URL, for what must not pass through the client.
    #[doc(alias = "elicitation")]
    #[doc(alias = "visit")]
    pub fn elicit_url(
        &self,
        key: &str,
        message: impl Into<String>,
        url: impl Into<String>,
    ) -> Result<ElicitOutcome<()>, ServerRequestError> {
        self.request(key, ElicitUrlParams::new(message, url))
    }

    /// Asks the user for a yes; declining and dismissing the form are a no.
    #[doc(alias = "elicitation")]
    pub fn confirm(&self, key: &str, message: impl Into<String>) -> Result<bool, ServerRequestError> {
        self.request(key, ServerRequest::confirm(message))
    }

    /// Samples the client's model with one message of the user; [`CreateMessageParams`] in
    /// [`request`](Self::request) can say more.
    #[doc(alias = "create_message")]
    #[doc(alias = "sampling")]
    #[doc(alias = "model")]
    pub fn sample(
        &self,
        key: &str,
        prompt: impl Into<String>,
        max_tokens: u64,
    ) -> Result<CreateMessageResult, ServerRequestError> {
        self.request(key, CreateMessageParams::new(vec![SamplingMessage::user(prompt)], max_tokens))
    }

    /// Lists the client's roots.
    #[doc(alias = "roots")]
    pub fn list_roots(&self, key: &str) -> Result<Vec<Root>, ServerRequestError> {
        self.request(key, ServerRequest::list_roots())
    }

    /// Sends the client a request, under a key that is the same every time the handler runs.
    ///
    /// This never waits. The first time it notes the request and fails with [`ServerRequestError::Pending`]; passed on
    /// with `?` that ends this run, the client gets the request, and the handler runs again from its beginning, where
    /// the same call gives the result. So everything above the last request runs more than once: keep side effects
    /// below it, or wrap them in [`once`](Self::once). Requests that do not depend on each other travel together when
    /// all are made before the first `?`:
    ///
    /// ```
    /// # use refmcp_server::{Call, CallError};
    /// # async fn handler(call: Call) -> Result<String, CallError> {
    /// let colour = call.sample("colour", "Name a colour.", 20);
    /// let sure = call.confirm("sure", "Paint the house?");
    /// let (colour, sure) = (colour?, sure?);
    /// # Ok(format!("{colour:?} {sure}")) }
    /// ```
    #[doc(alias = "ask")]
    pub fn request<A>(
        &self,
        key: &str,
        request: impl Into<ServerRequest<A>>,
    ) -> Result<A, ServerRequestError> {
        let request = request.into();
        let answer = self.inner.dispatch.replay.responses.get(key);
        {
            let mut notes = self.inner.notes.lock();
            let notes = notes.get_or_insert_default();
            if notes.asked.get(key).is_some_and(|(known, _)| *known != request.request) {
                notes.conflict = Some(key.to_owned());
                return Err(ServerRequestError::Conflict(key.to_owned()));
            }
            self.peer().check_support(&request.request).map_err(ServerRequestError::Unsupported)?;
            notes.asked.insert(key.to_owned(), (request.request.clone(), answer.is_some()));
        }
        match answer {
            None => Err(ServerRequestError::Pending),
            Some(InputOutcome::TimedOut) => Err(ServerRequestError::TimedOut),
            Some(InputOutcome::Error(error)) => Err(ServerRequestError::Refused(error.clone())),
            Some(InputOutcome::Response(value)) => request
                .read(value.clone())
                .map_err(|why| ServerRequestError::InvalidResult { key: key.to_owned(), why }),
        }
    }

    /// Does a costly or visible step only the first time: when the handler runs again, the value is still there.
    pub async fn once<T, F>(&self, key: &str, work: F) -> Result<T, CallError>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<T, CallError>>,
    {
        let kept = self.inner.dispatch.replay.once.get(key).cloned();
        let kept = kept.or_else(|| self.inner.notes.lock().as_ref()?.once.get(key).cloned());
        if let Some(value) = kept {
            return Ok(serde_json::from_value(value)?);
        }
        let value = work.await?;
        let kept = serde_json::to_value(&value)?;
        self.inner.notes.lock().get_or_insert_default().once.insert(key.to_owned(), kept);
        Ok(value)
    }

    /// Makes the call a task from here on, if it is none and its client takes tasks of the extension; elsewhere this does
    /// nothing. Passed on with `?` it ends this run, the client is told of the task, and the handler runs again from its
    /// beginning, as the task: what was answered above is known then, and what is requested below goes through the task. The
    /// tool says that it [starts its task itself](crate::Tool::starts_task_itself).
    ///
    /// ```
    /// # use refmcp_server::{Call, CallError};
    /// # async fn handler(call: Call) -> Result<String, CallError> {
    /// let sure = call.confirm("sure", "Index all files?")?;
    /// call.start_task()?;
    /// # Ok(sure.to_string()) }
    /// ```
    #[doc(alias = "task")]
    pub fn start_task(&self) -> Result<(), CallError> {
        if tasks::can_start(self) { Err(CallError::start_task()) } else { Ok(()) }
    }

    /// Whether the handler runs as a task.
    pub fn is_task(&self) -> bool {
        self.inner.task.is_some()
    }

    /// Tells the client how far the work has come. Values that do not grow are not sent, nor is anything when the
    /// client did not ask for progress.
    pub async fn progress(&self, progress: f64, total: Option<f64>, message: impl Into<String>) {
        if self.inner.dispatch.progress_token.is_none() && self.inner.task.is_none() {
            // A loop that does nothing but report must yield, to be cancelled.
            return consume_budget().await;
        }
        let message = Some(message.into()).filter(|message| !message.is_empty());
        let progress = Progress { progress, total, message };
        if let Some(task) = &self.inner.task {
            task.progress(progress).await;
            return consume_budget().await;
        }
        self.inner.handle.progress(self.inner.dispatch.call, progress).await;
    }

    /// Whether the client wants to hear of progress.
    pub fn wants_progress(&self) -> bool {
        self.inner.dispatch.progress_token.is_some()
    }

    /// Sends the client a log message, if it wants messages of this level. Never put secrets into one.
    pub async fn log(&self, level: LogLevel, logger: &str, data: impl Into<Value>) {
        let logger = Some(logger.to_owned()).filter(|logger| !logger.is_empty());
        let note = LogMessage { level, logger, data: data.into() };
        if let Some(task) = &self.inner.task {
            return task.log(note).await;
        }
        self.inner.handle.log(Some(self.inner.dispatch.call), note).await;
    }

    /// Waits until the call is cancelled. The handler is dropped at its next await anyway; this is for work that it has
    /// started.
    pub async fn cancelled(&self) {
        self.cancellation().cancelled().await;
    }

    /// When the call was cancelled, if it was.
    pub fn cancelled_at(&self) -> Option<Timestamp> {
        self.inner.cancellation.get()?.at()
    }

    /// The client, as this request or its session describes it.
    pub fn peer(&self) -> &Peer {
        &self.inner.dispatch.peer
    }

    /// The authenticated principal.
    pub fn principal(&self) -> Option<&str> {
        self.connection().principal.as_deref()
    }

    /// What the client's token is good for, where the connection is one token's.
    pub fn scopes(&self) -> Option<&[Box<str>]> {
        self.connection().scopes.as_deref()
    }

    /// How the client is connected. Over HTTP the headers, the token and the address are those of this request, also in a
    /// session.
    pub fn connection(&self) -> &Connection {
        let own = self.inner.dispatch.context.as_ref().and_then(|context| context.downcast_ref());
        own.unwrap_or_else(|| self.inner.session.connection())
    }

    /// The session; `None` for requests of a revision that has none, whatever else came over the same connection.
    pub fn session(&self) -> Option<&Arc<Session>> {
        (self.peer().rules().lifecycle == Lifecycle::Handshake).then_some(&self.inner.session)
    }

    /// The connection that the call came by, whether or not its revision has sessions. Over HTTP, a request without a
    /// session has one of its own.
    pub fn connection_session(&self) -> &Arc<Session> {
        &self.inner.session
    }

    /// The server that the call came to.
    pub fn server(&self) -> &Server {
        self.inner.session.server()
    }

    /// The client's id of the request.
    pub fn request_id(&self) -> &RequestId {
        &self.inner.dispatch.id
    }

    /// The trace that the request belongs to, if the client says so.
    pub fn trace_context(&self) -> Option<TraceContext> {
        // Most requests have none, and `_meta` need not be read to see that.
        self.inner.dispatch.meta().filter(|meta| meta.contains("traceparent"))?;
        TraceContext::parse(self.meta("traceparent")?.as_str()?)
    }

    /// A member of the request's `_meta`.
    pub fn meta(&self, key: &str) -> Option<Value> {
        let meta: serde_json::Map<String, Value> = serde_json::from_str(self.inner.dispatch.meta()?).ok()?;
        meta.get(key).cloned()
    }

    /// The number of the call, which stays the same when it runs again in a session.
    pub fn id(&self) -> CallId {
        self.inner.dispatch.call
    }

    /// The method.
    pub fn method(&self) -> &Method {
        &self.inner.dispatch.method
    }

    /// The parameters: the JSON text of an object.
    pub fn params(&self) -> &str {
        &self.inner.dispatch.params
    }

    /// The recorded outcome of a request to the client, unread; [`request`](Self::request) reads and checks it.
    pub fn input_outcome(&self, key: &str) -> Option<&InputOutcome> {
        self.inner.dispatch.replay.responses.get(key)
    }

    /// Runs the call again although the client has not answered: what it was asked for is no longer needed. Only calls of
    /// sessions wait for answers.
    pub async fn withdraw_input(&self) {
        self.inner.handle.withdraw_input(self.inner.dispatch.call).await;
    }

    /// Sends the client a notification that belongs to this call.
    pub async fn notify(&self, notification: ServerNotification) {
        self.inner.handle.notify(Some(self.inner.dispatch.call), notification).await;
    }

    /// How often the handler has run before for this call.
    pub fn round(&self) -> u32 {
        self.inner.dispatch.round
    }

    /// The log level that the client set for this request, where requests have one.
    pub fn log_level(&self) -> Option<LogLevel> {
        self.inner.dispatch.log_level
    }

    /// Tells the call's session alone that something has changed; without a session this does nothing.
    pub async fn changed(&self, change: Change) {
        self.inner.handle.changed(change).await;
    }

    /// Sends the client away from the connection that it waits on, where the revision lets it come back for the rest;
    /// elsewhere this does nothing.
    pub fn close_stream(&self) {
        self.inner.handle.detach(self.inner.dispatch.call);
    }

    /// Looks at the engine; `None` when the session is over.
    pub fn inspect<T>(&self, look: impl FnOnce(&ServerEngine) -> T) -> Option<T> {
        self.inner.handle.inspect(look)
    }

    pub(crate) fn handle(&self) -> &EngineHandle {
        &self.inner.handle
    }

    /// Takes the values that this run has kept for the next one.
    pub(crate) fn take_once(&self) -> BTreeMap<String, Value> {
        self.inner.notes.lock().as_mut().map(|notes| std::mem::take(&mut notes.once)).unwrap_or_default()
    }

    pub(crate) fn dispatch(&self) -> &Dispatch {
        &self.inner.dispatch
    }

    pub(crate) fn cancellation(&self) -> &Cancellation {
        self.inner.cancellation.get_or_init(Cancellation::default)
    }

    /// What the run comes to, given what the handler returned.
    pub(crate) fn conclude(&self, result: Result<HandlerOutcome, CallError>) -> HandlerOutcome {
        let mut notes = self.inner.notes.lock();
        // Most handlers have noted nothing.
        let Some(notes) = notes.as_deref_mut() else { return self.outcome(result) };
        if let Some(key) = notes.conflict.take() {
            let error = CallError::from(ServerRequestError::Conflict(key));
            return error.into_outcome(&self.inner.dispatch.method, self.peer().rules());
        }
        let asked = std::mem::take(&mut notes.asked);
        let used = asked.iter().filter(|(_, (_, answered))| *answered).map(|(key, _)| key.clone()).collect();
        let open = asked.into_iter().filter(|(_, (_, answered))| !answered);
        let open: Vec<engine::KeyedInputRequest> =
            open.map(|(key, (request, _))| engine::KeyedInputRequest { key, request }).collect();
        match (result, open.first()) {
            (Err(error), Some(_)) if error.is_pending() => {
                let once = std::mem::take(&mut notes.once);
                HandlerOutcome::InputRequired { requests: open, used: Some(used), once }
            }
            (Ok(_), Some(request)) => {
                let text = format!("the handler gave a result without the answer to \"{}\"", request.key);
                HandlerOutcome::Failed(RpcError::internal(text).into())
            }
            (result, _) => self.outcome(result),
        }
    }

    fn outcome(&self, result: Result<HandlerOutcome, CallError>) -> HandlerOutcome {
        result.unwrap_or_else(|error| error.into_outcome(&self.inner.dispatch.method, self.peer().rules()))
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dispatch = &self.inner.dispatch;
        f.debug_struct("Call")
            .field("id", &dispatch.id)
            .field("method", &dispatch.method)
            .field("round", &dispatch.round)
            .finish_non_exhaustive()
    }
}
