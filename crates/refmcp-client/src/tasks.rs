//! Tasks: calls that go on after their first response, with a handle that any process can take up again by the id.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use refmcp_proto::engine::CallId;
use refmcp_proto::engine::client::{CallError, CallOptions, CallResult};
use refmcp_proto::jsonrpc::{RpcError, code};
use refmcp_proto::model::{
    InputRequest, InputResponses, ResultType, Task, TaskMetadata, TaskParams, TaskSupport, Tool,
    UpdateTaskParams,
};
use refmcp_proto::revision::{Method, Tasks};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::client::Client;
use crate::driver::{CallCallbacks, CallOutcome};
use crate::error::Error;
use crate::list::Pages;
use crate::request::{Request, read_result};
use crate::transport::BoxFuture;

/// A call that is to become a task; it is sent when it is awaited.
#[must_use = "a call is sent when it is awaited"]
pub struct TaskCall<R>(Request<R>);

/// What a call has become that was to become a task.
#[derive(Debug)]
pub enum StartedCall<R> {
    /// A task.
    Task(Box<TaskHandle<R>>),
    /// A result at once: the server has made it no task.
    Complete(R),
}

/// A task of a server. It goes on when the handle is dropped; [`Client::task`] gives another one for its id.
///
/// ```no_run
/// # async fn run(client: refmcp_client::Client) -> Result<(), refmcp_client::Error> {
/// use refmcp_client::StartedCall;
/// use serde_json::json;
///
/// if let StartedCall::Task(task) = client.call_tool("research", json!({ "topic": "tides" })).as_task().await? {
///     println!("begun: {}", task.id());
///     let result = task.on_status(|task| println!("{:?}", task.status_message)).result().await?;
///     println!("{:?}", result.content);
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "a task goes on without its handle"]
pub struct TaskHandle<R> {
    client: Client,
    id: Arc<str>,
    /// The call of this connection that has created it, and what the server said then.
    created: Option<(CallId, Box<Task>)>,
    /// The tool whose output schema the result has to fit.
    tool: Option<Arc<str>>,
    options: CallOptions,
    listeners: CallCallbacks,
    result: PhantomData<fn() -> R>,
}

/// The statuses of a task, until it ends.
pub struct TaskStatuses<R> {
    client: Client,
    tool: Option<Arc<str>>,
    statuses: watch::Receiver<Option<Task>>,
    outcome: AbortOnDropHandle<CallOutcome>,
    result: PhantomData<fn() -> R>,
}

impl<R> fmt::Debug for TaskCall<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TaskCall").field(&self.0).finish()
    }
}

impl<R> fmt::Debug for TaskHandle<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskHandle").field("id", &self.id).finish_non_exhaustive()
    }
}

impl<R> fmt::Debug for TaskStatuses<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskStatuses").finish_non_exhaustive()
    }
}

impl<R: DeserializeOwned + Send + 'static> Request<R> {
    /// Lets a call of a tool become a task, and gives its handle as soon as there is one. In 2025-11-25 a tool that supports
    /// tasks is asked for one; in 2026-07-28 the server decides.
    pub fn as_task(self) -> TaskCall<R> {
        TaskCall(self)
    }

    /// Asks for a task where the tool demands one, as its list entry says.
    pub(crate) fn request_required_task(&mut self) {
        let task = &self.options.task;
        if task.is_manual || task.requested.is_some() || !self.client.server().makes_tasks() {
            return;
        }
        if self.task_support() == Some(TaskSupport::Required) {
            self.options.task.requested = Some(TaskMetadata::default());
        }
    }

    /// The tool, where this is a call of one.
    fn called_tool(&self) -> Option<&str> {
        self.name.as_deref().filter(|_| self.arguments.is_some())
    }

    /// What is known of the tool: `None` where it was not listed.
    fn task_support(&self) -> Option<TaskSupport> {
        let tool = self.client.driver.cache.lock().tool(self.called_tool()?)?;
        Some(tool.task_support().cloned().unwrap_or(TaskSupport::Forbidden))
    }

    /// Whether a call may have been refused because its tool, which was not listed, demands a task. Such a call is not carried
    /// out, so it can be repeated. Some servers refuse by a tool result.
    pub(crate) fn is_refused_without_task(&self, ended: &CallOutcome) -> bool {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Result {
            #[serde(default)]
            is_error: bool,
        }
        let is_refused = match ended {
            Err(CallError::Rpc(error)) => error.code == code::METHOD_NOT_FOUND,
            Ok(CallResult::Complete(text)) => {
                self.called_tool().is_some()
                    && serde_json::from_str::<Result>(text).is_ok_and(|result| result.is_error)
            }
            _ => false,
        };
        is_refused
            && !self.options.task.is_manual
            && self.called_tool().is_some()
            && self.client.server().makes_tasks()
            && self.task_support().is_none()
    }

    /// Lists the tools if this one was not listed.
    pub(crate) async fn learn_task_support(&self) -> Option<TaskSupport> {
        if self.task_support().is_none() {
            // Without a list the call goes as it would have.
            let _ = Box::pin(Pages::<Tool>::new(&self.client, true).all()).await;
        }
        self.task_support()
    }
}

impl<R: DeserializeOwned + Send + 'static> TaskCall<R> {
    /// For how long the task is to be kept, from its creation (2025-11-25); the server may decide otherwise.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        let millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        self.0.options.task.requested = Some(TaskMetadata::default().ttl(millis));
        self
    }

    async fn start(self) -> Result<StartedCall<R>, Error> {
        let mut request = self.0;
        request.options.task.is_manual = true;
        let supported = request.client.server().makes_tasks()
            && matches!(
                request.learn_task_support().await,
                Some(TaskSupport::Optional | TaskSupport::Required)
            );
        request.options.task.requested =
            supported.then(|| request.options.task.requested.take().unwrap_or_default());
        let (call, task) = match request.send().await? {
            (call, CallResult::Task(task, _)) => (call, task),
            (_, CallResult::Complete(text)) => return request.parse(&text).map(StartedCall::Complete),
            (_, CallResult::InputRequired(_)) => {
                return Err(Error::Misuse("the server requires input".to_owned()));
            }
        };
        Ok(StartedCall::Task(Box::new(TaskHandle {
            id: task.task_id.as_str().into(),
            created: Some((call, task)),
            tool: request.checked_tool().map(Arc::from),
            options: CallOptions { total: Duration::MAX, ..request.options },
            listeners: request.listeners,
            client: request.client,
            result: PhantomData,
        })))
    }
}

impl<R: DeserializeOwned + Send + 'static> IntoFuture for TaskCall<R> {
    type Output = Result<StartedCall<R>, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.start())
    }
}

impl<R: DeserializeOwned + Send + 'static> TaskHandle<R> {
    pub(crate) fn of_id(client: &Client, id: String) -> Self {
        let options = CallOptions { total: Duration::MAX, ..client.options() };
        let listeners = CallCallbacks::default();
        let (client, id) = (client.clone(), id.into());
        Self { client, id, created: None, tool: None, options, listeners, result: PhantomData }
    }

    /// Its id. On servers that do not know their clients it is a secret: who has it, has the task.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What the server said of the task when this client created it.
    pub fn created(&self) -> Option<&Task> {
        self.created.as_ref().map(|(_, task)| &**task)
    }

    /// The same task with another type of result.
    pub fn read_as<S>(self) -> TaskHandle<S> {
        let Self { client, id, created, tool, options, listeners, result: _ } = self;
        TaskHandle { client, id, created, tool, options, listeners, result: PhantomData }
    }

    /// Calls this with the task each time its status or its message changes. It is called where messages are read and must
    /// not block.
    pub fn on_status(mut self, listen: impl Fn(&Task) + Send + Sync + 'static) -> Self {
        self.listeners.task = Some(Arc::new(listen));
        self
    }

    /// Handles the input that the task needs, in place of the [`Host`](crate::Host).
    pub fn on_request<F>(mut self, answer: impl Fn(InputRequest) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Value, RpcError>> + Send + 'static,
    {
        self.listeners.request = Some(Arc::new(move |request| Box::pin(answer(request))));
        self
    }

    /// How long each request about the task may take.
    pub fn timeout(mut self, idle: Duration) -> Self {
        self.options.idle = idle;
        self
    }

    /// How long the task is followed at the most; without it, for as long as the server keeps it.
    pub fn total_timeout(mut self, total: Duration) -> Self {
        self.options.total = total;
        self
    }

    /// Asks for the status.
    ///
    /// # Errors
    /// As any request; and when the server does not know the task.
    #[doc(alias = "tasks/get")]
    pub async fn get(&self) -> Result<Task, Error> {
        let params = TaskParams::new(&*self.id);
        let task: Task = self.request(&Method::GetTask, &params).await.map_err(|error| self.error(error))?;
        if *task.task_id != *self.id {
            let why = "it tells of another task".to_owned();
            return Err(Error::Unreadable { method: Method::GetTask.name().to_owned(), why });
        }
        Ok(task)
    }

    /// Cancels the task. In 2026-07-28 that is a wish: the server may go on.
    ///
    /// # Errors
    /// As any request; in 2025-11-25 also when the task has ended.
    #[doc(alias = "tasks/cancel")]
    pub async fn cancel(&self) -> Result<(), Error> {
        let params = TaskParams::new(&*self.id);
        let done = self.request::<Box<RawValue>>(&Method::CancelTask, &params).await;
        // In 2025-11-25 the same error is that of a task which has ended.
        let is_of_unknown = self.client.server().rules().tasks == Tasks::Extension;
        done.map(drop).map_err(|error| if is_of_unknown { self.error(error) } else { error })
    }

    /// Responds to input requests of the task by their keys (2026-07-28), where [`follow`](Self::follow) is not to do it.
    ///
    /// # Errors
    /// As any request.
    #[doc(alias = "tasks/update")]
    pub async fn respond(&self, responses: InputResponses) -> Result<(), Error> {
        let params = UpdateTaskParams::new(&*self.id, responses);
        let done = self.request::<Box<RawValue>>(&Method::UpdateTask, &params).await;
        done.map(drop).map_err(|error| self.error(error))
    }

    /// Follows the task until it ends, and gives its result; the host responds to what it asks. Dropping the future leaves
    /// the task alone.
    ///
    /// # Errors
    /// The task has failed, was cancelled or is not known; or as any request.
    #[doc(alias = "tasks/result")]
    pub async fn result(&self) -> Result<R, Error> {
        let created_by = self.created.as_ref().map(|(call, _)| *call);
        let (options, listeners) = (self.options.clone(), self.listeners.clone());
        let ended = self.client.driver.follow(&self.id, created_by, options, listeners).await;
        read_outcome(&self.client, self.tool.as_deref(), ended)
    }

    /// Follows the task, and gives its statuses one after the other.
    #[doc(alias = "stream")]
    pub fn follow(self) -> TaskStatuses<R> {
        let (sender, statuses) = watch::channel(None);
        let (client, tool) = (self.client.clone(), self.tool.clone());
        let outcome = tokio::spawn(async move {
            let told = self.listeners.task.clone();
            let listen = move |task: &Task| {
                if let Some(told) = &told {
                    told(task);
                }
                sender.send_replace(Some(task.clone()));
            };
            let listeners = CallCallbacks { task: Some(Arc::new(listen)), ..self.listeners };
            let created_by = self.created.map(|(call, _)| call);
            self.client.driver.follow(&self.id, created_by, self.options, listeners).await
        });
        let outcome = AbortOnDropHandle::new(outcome);
        TaskStatuses { client, tool, statuses, outcome, result: PhantomData }
    }

    fn request<S: DeserializeOwned + Send + 'static>(
        &self,
        method: &Method,
        params: &impl serde::Serialize,
    ) -> Request<S> {
        Request::new(&self.client, method.name(), params).named(&self.id).timeout(self.options.idle)
    }

    /// An error that says whether the task is known.
    fn error(&self, error: Error) -> Error {
        match error {
            Error::Call(CallError::Rpc(error)) if error.code == code::INVALID_PARAMS => {
                Error::Call(CallError::UnknownTask { task: self.id.to_string(), error })
            }
            error => error,
        }
    }
}

impl<R: DeserializeOwned + Send + 'static> TaskStatuses<R> {
    /// The next status, or message of it; `None` once the task has ended. Of several that came meanwhile it is the last one.
    pub async fn next(&mut self) -> Option<Task> {
        // The sender is dropped at the end.
        self.statuses.changed().await.ok()?;
        self.statuses.borrow_and_update().clone()
    }

    /// The result of the task.
    ///
    /// # Errors
    /// As [`TaskHandle::result`].
    pub async fn result(self) -> Result<R, Error> {
        let ended = self.outcome.await;
        // The task that follows it has no reason to panic.
        let ended = ended.map_err(|error| Error::Misuse(error.to_string()))?;
        read_outcome(&self.client, self.tool.as_deref(), ended)
    }
}

fn read_outcome<R: DeserializeOwned>(
    client: &Client,
    tool: Option<&str>,
    ended: CallOutcome,
) -> Result<R, Error> {
    match ended? {
        CallResult::Complete(text) => read_result(client, Method::GetTaskResult.name(), tool, &text),
        // The engine ends what it follows with a result or an error.
        CallResult::InputRequired(_) | CallResult::Task(..) => Err(Error::Unreadable {
            method: Method::GetTaskResult.name().to_owned(),
            why: format!("its type is {}", ResultType::Task.as_str()),
        }),
    }
}
