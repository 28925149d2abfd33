//! `Request`: a request with its options; awaiting it sends it.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use refmcp_proto::engine::CallId;
use refmcp_proto::engine::client::{CallError, CallOptions, CallResult, InputHandling};
use refmcp_proto::jsonrpc::{RpcError, code, without_place};
use refmcp_proto::model::{
    CallToolResult, InputRequest, InputRequiredResult, InputResponses, JsonObject, LogLevel, ProgressParams,
    ServerNotification, Task, TaskSupport, Tool,
};
use refmcp_proto::schema::SchemaError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::client::Client;
use crate::driver::{CallCallbacks, CallOutcome};
use crate::error::Error;
use crate::host::Event;
use crate::list::Pages;
use crate::transport::BoxFuture;

/// A request with a result of type `R`. It is sent when it is awaited; dropping the future cancels it.
#[must_use = "a request is sent when it is awaited"]
pub struct Request<R> {
    pub(crate) client: Client,
    method: Arc<str>,
    pub(crate) name: Option<Arc<str>>,
    /// A JSON object.
    params: Result<Box<str>, Error>,
    pub(crate) options: CallOptions,
    pub(crate) listeners: CallCallbacks,
    cache_use: CacheUse,
    /// The arguments of a tool call.
    pub(crate) arguments: Option<JsonObject>,
    result: PhantomData<fn() -> R>,
}

/// Whether the result may come from the cache, and go there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheUse {
    None,
    Write,
    ReadWrite,
}

/// The outcome of one round of a request, where the caller provides the input that the server requires.
#[derive(Debug, Clone, PartialEq)]
pub enum RoundOutcome<R> {
    /// The result.
    Complete(R),
    /// The server requires input; send the request again with [`Request::input_responses`].
    InputRequired(Box<InputRequiredResult>),
}

impl<R> fmt::Debug for Request<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl<R: DeserializeOwned + Send + 'static> Request<R> {
    pub(crate) fn new(client: &Client, method: impl Into<Arc<str>>, params: &impl Serialize) -> Self {
        let params = serde_json::to_string(params).map_err(|error| Error::Misuse(error.to_string()));
        Self {
            client: client.clone(),
            method: method.into(),
            name: None,
            params: params.map(Into::into),
            options: client.options(),
            listeners: CallCallbacks::default(),
            cache_use: CacheUse::None,
            arguments: None,
            result: PhantomData,
        }
    }

    /// A request whose parameters are the text of a JSON object.
    pub(crate) fn of_text(client: &Client, method: &str, params: &str) -> Self {
        Self { params: Ok(params.into()), ..Self::new(client, method, &()) }
    }

    /// A request that cannot be sent: awaiting it returns this error.
    pub(crate) fn invalid(client: &Client, method: &str, why: String) -> Self {
        Self { params: Err(Error::Misuse(why)), ..Self::new(client, method, &()) }
    }

    /// Sets the name of the tool or prompt, or the URI of the resource.
    pub(crate) fn named(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Lets the result come from the cache, as its server allows.
    pub(crate) fn cached(mut self) -> Self {
        self.cache_use = CacheUse::ReadWrite;
        self
    }

    /// Sets the arguments of a tool, which headers may have to repeat.
    pub(crate) fn arguments(mut self, arguments: JsonObject) -> Self {
        self.arguments = Some(arguments);
        self
    }

    /// How long the request may go without progress, which restarts the time.
    pub fn timeout(mut self, idle: Duration) -> Self {
        self.options.idle = idle;
        self
    }

    /// How long it may take in all.
    pub fn total_timeout(mut self, total: Duration) -> Self {
        self.options.total = total;
        self
    }

    /// Asks the server for progress, with a listener. It is called where messages are read and must not block.
    pub fn on_progress(mut self, listen: impl Fn(&ProgressParams) + Send + Sync + 'static) -> Self {
        self.options.progress = true;
        self.listeners.progress = Some(Arc::new(listen));
        self
    }

    /// Calls this with the task that the server makes of the call, each time its status or its message changes. It is called
    /// where messages are read and must not block.
    pub fn on_task_status(mut self, listen: impl Fn(&Task) + Send + Sync + 'static) -> Self {
        self.listeners.task = Some(Arc::new(listen));
        self
    }

    /// Gives a task that the server makes of the call as the result that it is.
    pub(crate) fn task_as_result(mut self) -> Self {
        self.options.task.is_manual = true;
        self
    }

    /// Gives what comes of a task that the server makes of the call, where [`Client::forward`] would give the task itself.
    pub fn task_outcome(mut self) -> Self {
        self.options.task.is_manual = false;
        self
    }

    /// Calls this with notifications that belong to this request, as far as the transport tells which do; they are then no
    /// event of the [`Host`](crate::Host). Progress is for [`on_progress`](Self::on_progress).
    pub fn on_notification(mut self, listen: impl Fn(&ServerNotification) + Send + Sync + 'static) -> Self {
        self.listeners.notification = Some(Arc::new(listen));
        self
    }

    /// Handles requests of the server that belong to this request, as far as the transport tells which do, in place of
    /// the [`Host`](crate::Host).
    pub fn on_request<F>(mut self, answer: impl Fn(InputRequest) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Value, RpcError>> + Send + 'static,
    {
        self.listeners.request = Some(Arc::new(move |request| Box::pin(answer(request))));
        self
    }

    /// The least level of log messages, in revisions where each request has one.
    pub fn log_level(mut self, level: LogLevel) -> Self {
        self.options.log_level = Some(level);
        self
    }

    /// Adds members to `_meta`, such as a trace context.
    pub fn meta(mut self, members: JsonObject) -> Self {
        self.options.meta.extend(members);
        self
    }

    /// Sends the request even if its result is cached.
    pub fn fresh(mut self) -> Self {
        if self.cache_use == CacheUse::ReadWrite {
            self.cache_use = CacheUse::Write;
        }
        self
    }

    /// Sends the request even if the revision does not have its method.
    pub fn unchecked(mut self) -> Self {
        self.options.unchecked = true;
        self
    }

    /// The same request with another type of result: [`Box<RawValue>`](serde_json::value::RawValue) is the text of the
    /// server.
    pub fn read_as<S>(self) -> Request<S> {
        let Self { client, method, name, params, options, listeners, cache_use, arguments, result: _ } = self;
        let result = PhantomData;
        Request { client, method, name, params, options, listeners, cache_use, arguments, result }
    }

    /// The input that the server required in an earlier round, with its `requestState`; see
    /// [`send_round`](Self::send_round).
    #[doc(alias = "inputResponses")]
    pub fn input_responses(mut self, responses: InputResponses, state: Option<String>) -> Self {
        self.params = self.params.and_then(|params| {
            let misuse = |error: serde_json::Error| Error::Misuse(error.to_string());
            let mut params: JsonObject = serde_json::from_str(&params).map_err(misuse)?;
            if !responses.is_empty() {
                params.insert("inputResponses".to_owned(), Value::Object(responses.into_iter().collect()));
            }
            params.extend(state.map(|state| ("requestState".to_owned(), Value::from(state))));
            serde_json::to_string(&params).map(Into::into).map_err(misuse)
        });
        // A result that depends on a person's answers is not cached.
        self.cache_use = CacheUse::None;
        self
    }

    /// Sends one round of the request: the caller provides the input that the server requires, in place of the
    /// [`Host`](crate::Host).
    ///
    /// # Errors
    /// As when it is awaited.
    pub async fn send_round(mut self) -> Result<RoundOutcome<R>, Error> {
        self.options.input = InputHandling::Manual;
        match self.send().await?.1 {
            CallResult::Complete(text) | CallResult::Task(_, text) => {
                self.parse(&text).map(RoundOutcome::Complete)
            }
            CallResult::InputRequired(input) => Ok(RoundOutcome::InputRequired(input)),
        }
    }

    async fn run(mut self) -> Result<R, Error> {
        if self.cache_use == CacheUse::ReadWrite
            && let Ok(params) = &self.params
        {
            let cached = self.client.driver.cache.lock().get(self.client.driver.now(), &self.method, params);
            if let Some(text) = cached {
                return self.parse(&text);
            }
        }
        match self.send().await?.1 {
            CallResult::Complete(text) | CallResult::Task(_, text) => self.parse(&text),
            // Only `send_round` leaves input to the caller.
            CallResult::InputRequired(_) => Err(Error::Misuse("the server requires input".to_owned())),
        }
    }

    pub(crate) async fn send(&mut self) -> Result<(CallId, CallResult), Error> {
        let params = self.params.clone()?;
        self.add_param_headers();
        self.request_required_task();
        let (mut id, mut ended) = self.call(&params).await;
        if let Err(CallError::Rpc(error)) = &ended
            && error.code == code::HEADER_MISMATCH
            && self.refresh_param_headers().await
        {
            (id, ended) = self.call(&params).await;
        }
        if self.is_refused_without_task(&ended)
            && self.learn_task_support().await == Some(TaskSupport::Required)
        {
            self.request_required_task();
            (id, ended) = self.call(&params).await;
        }
        let answered = ended?;
        if let CallResult::Complete(text) = &answered
            && self.cache_use != CacheUse::None
        {
            self.client.driver.cache.lock().insert(self.client.driver.now(), &self.method, &params, text);
        }
        Ok((id, answered))
    }

    async fn call(&self, params: &str) -> (CallId, CallOutcome) {
        let (method, name, listeners) = (self.method.clone(), self.name.clone(), self.listeners.clone());
        self.client.driver.call(method, name, params.into(), self.options.clone(), listeners).await
    }

    /// Repeats arguments in headers, if the schema of the tool is known.
    fn add_param_headers(&mut self) {
        let (Some(arguments), Some(name)) = (&self.arguments, &self.name) else { return };
        let known = self.client.driver.cache.lock().tool(name);
        if let Some(tool) = known {
            self.options.param_headers = tool.mirrored(arguments);
        }
    }

    /// Lists the tools after the server missed headers; true if the headers are others now. A request that is refused for
    /// its headers was not carried out, so it can be repeated.
    async fn refresh_param_headers(&mut self) -> bool {
        let Some(name) = self.name.clone().filter(|_| self.arguments.is_some()) else { return false };
        let before = std::mem::take(&mut self.options.param_headers);
        if Box::pin(Pages::<Tool>::new(&self.client, true).all()).await.is_err()
            || self.client.driver.cache.lock().tool(&name).is_none()
        {
            return false;
        }
        self.add_param_headers();
        self.options.param_headers != before
    }

    pub(crate) fn parse(&self, text: &str) -> Result<R, Error> {
        read_result(&self.client, &self.method, self.checked_tool(), text)
    }

    /// The tool whose output schema the result has to fit.
    pub(crate) fn checked_tool(&self) -> Option<&str> {
        self.name.as_deref().filter(|_| self.arguments.is_some() && !self.options.unchecked)
    }
}

/// Reads the result of a request; that of a tool has to fit its output schema.
pub(crate) fn read_result<R: DeserializeOwned>(
    client: &Client,
    method: &str,
    tool: Option<&str>,
    text: &str,
) -> Result<R, Error> {
    if let Some(tool) = tool {
        check_output(client, tool, text)?;
    }
    serde_json::from_str(text)
        .map_err(|error| Error::Unreadable { method: method.to_owned(), why: without_place(&error) })
}

fn check_output(client: &Client, tool: &str, text: &str) -> Result<(), Error> {
    let Some(notes) = client.driver.cache.lock().tool(tool).filter(|notes| notes.has_output()) else {
        return Ok(());
    };
    // A result that cannot be parsed fails where it is read.
    let Ok(result) = serde_json::from_str::<CallToolResult>(text) else { return Ok(()) };
    match notes.check_output(result.structured_content.as_ref(), result.is_error == Some(true)) {
        Ok(()) => Ok(()),
        Err(SchemaError::Invalid(why)) => Err(Error::Output { tool: tool.to_owned(), why }),
        // The result may be right, and the application can still use it.
        Err(SchemaError::TooMuchWork(why)) => {
            let what = format!("the output schema of {tool}, and its output is not checked: {why}");
            client.driver.emit(&Event::Ignored(what));
            Ok(())
        }
    }
}

impl<R: DeserializeOwned + Send + 'static> IntoFuture for Request<R> {
    type Output = Result<R, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}
