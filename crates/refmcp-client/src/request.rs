//! A request that is being put together; awaiting it sends it.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use refmcp_proto::engine::client::{CallError, CallOptions, CallResult, InputHandling};
use refmcp_proto::jsonrpc::{code, without_place};
use refmcp_proto::model::{
    CallToolResult, InputRequiredResult, InputResponses, JsonObject, LogLevel, ProgressParams,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::client::Client;
use crate::driver::{Ended, OnProgress};
use crate::error::Error;
use crate::transport::BoxFuture;

/// A request that brings an `R`. Nothing is sent before it is awaited; dropping the future cancels it.
#[must_use = "a request is sent when it is awaited"]
pub struct Request<R> {
    client: Client,
    method: Arc<str>,
    name: Option<Arc<str>>,
    /// The text of an object.
    params: Result<Box<str>, Error>,
    options: CallOptions,
    progress: Option<OnProgress>,
    cache_use: CacheUse,
    /// The arguments of a tool.
    arguments: Option<JsonObject>,
    result: PhantomData<fn() -> R>,
}

/// Whether a result may come from memory, and go there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheUse {
    None,
    Write,
    ReadWrite,
}

/// What a request came to, where whoever asked brings what the server needs by hand.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply<R> {
    /// The result.
    Done(R),
    /// The server needs something first; ask again with [`Request::responses`].
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
        let params = serde_json::to_string(params).map_err(|fault| Error::Misuse(fault.to_string()));
        Self {
            client: client.clone(),
            method: method.into(),
            name: None,
            params: params.map(Into::into),
            options: client.options(),
            progress: None,
            cache_use: CacheUse::None,
            arguments: None,
            result: PhantomData,
        }
    }

    /// A request that cannot be made; whoever awaits it is told why.
    pub(crate) fn impossible(client: &Client, method: &'static str, why: String) -> Self {
        Self { params: Err(Error::Misuse(why)), ..Self::new(client, method, &()) }
    }

    /// Says which tool, prompt or resource is meant.
    pub(crate) fn named(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Lets the result come from memory, as its server allows.
    pub(crate) fn remembered(mut self) -> Self {
        self.cache_use = CacheUse::ReadWrite;
        self
    }

    /// Gives the arguments of a tool, which headers may have to repeat.
    pub(crate) fn arguments(mut self, arguments: JsonObject) -> Self {
        self.arguments = Some(arguments);
        self
    }

    /// How long the server may be silent about it; progress begins the time anew.
    pub fn timeout(mut self, idle: Duration) -> Self {
        self.options.idle = idle;
        self
    }

    /// How long it may take in all.
    pub fn total_timeout(mut self, total: Duration) -> Self {
        self.options.total = total;
        self
    }

    /// Asks the server to report progress, and hears of it. Called where messages are read: it must not block.
    pub fn on_progress(mut self, listen: impl Fn(&ProgressParams) + Send + Sync + 'static) -> Self {
        self.options.progress = true;
        self.progress = Some(Arc::new(listen));
        self
    }

    /// From which level on log messages are wanted, where that is said with each request.
    pub fn log_level(mut self, level: LogLevel) -> Self {
        self.options.log_level = Some(level);
        self
    }

    /// Adds members to `_meta`, such as a trace context.
    pub fn meta(mut self, members: JsonObject) -> Self {
        self.options.meta.extend(members);
        self
    }

    /// Asks the server even where a result that was kept would do.
    pub fn fresh(mut self) -> Self {
        if self.cache_use == CacheUse::ReadWrite {
            self.cache_use = CacheUse::Write;
        }
        self
    }

    /// Sends it even where the revision that is spoken does not have it.
    pub fn unchecked(mut self) -> Self {
        self.options.unchecked = true;
        self
    }

    /// The same request, with its result read as something else: [`Box<RawValue>`](serde_json::value::RawValue) has
    /// it as the server wrote it.
    pub fn read_as<S>(self) -> Request<S> {
        let Self { client, method, name, params, options, progress, cache_use, arguments, result: _ } = self;
        let result = PhantomData;
        Request { client, method, name, params, options, progress, cache_use, arguments, result }
    }

    /// Brings what the server asked for in an earlier round, with the state that it gave; see
    /// [`reply`](Self::reply).
    pub fn responses(mut self, responses: InputResponses, state: Option<String>) -> Self {
        self.params = self.params.and_then(|params| {
            let misuse = |fault: serde_json::Error| Error::Misuse(fault.to_string());
            let mut params: JsonObject = serde_json::from_str(&params).map_err(misuse)?;
            if !responses.is_empty() {
                params.insert("inputResponses".to_owned(), Value::Object(responses.into_iter().collect()));
            }
            params.extend(state.map(|state| ("requestState".to_owned(), Value::from(state))));
            serde_json::to_string(&params).map(Into::into).map_err(misuse)
        });
        // What was asked for with somebody's answers is for nobody else.
        self.cache_use = CacheUse::None;
        self
    }

    /// Sends it, and leaves it to the caller to bring what the server asks for.
    ///
    /// # Errors
    /// As when it is awaited.
    pub async fn reply(mut self) -> Result<Reply<R>, Error> {
        self.options.input = InputHandling::Manual;
        match self.send().await? {
            CallResult::Complete(text) => self.read(&text).map(Reply::Done),
            CallResult::InputRequired(input) => Ok(Reply::InputRequired(input)),
        }
    }

    async fn run(mut self) -> Result<R, Error> {
        if self.cache_use == CacheUse::ReadWrite
            && let Ok(params) = &self.params
        {
            let kept = self.client.driver.cache.lock().find(self.client.driver.now(), &self.method, params);
            if let Some(kept) = kept {
                return self.read(&kept);
            }
        }
        match self.send().await? {
            CallResult::Complete(text) => self.read(&text),
            // Input is brought by hand only where that was asked for.
            CallResult::InputRequired(_) => Err(Error::Misuse("nobody brings the input".to_owned())),
        }
    }

    async fn send(&mut self) -> Result<CallResult, Error> {
        let params = self.params.clone()?;
        self.mirror();
        let mut ended = self.call(&params).await;
        if let Err(CallError::Rpc(error)) = &ended
            && error.code == code::HEADER_MISMATCH
            && self.learn_tool().await
        {
            ended = self.call(&params).await;
        }
        let answered = ended?;
        if let CallResult::Complete(text) = &answered
            && self.cache_use != CacheUse::None
        {
            self.client.driver.cache.lock().keep(self.client.driver.now(), &self.method, &params, text);
        }
        Ok(answered)
    }

    async fn call(&self, params: &str) -> Ended {
        let (method, name, progress) = (self.method.clone(), self.name.clone(), self.progress.clone());
        self.client.driver.call(method, name, params.into(), self.options.clone(), progress).await
    }

    /// Repeats arguments in headers, as far as it is known which.
    fn mirror(&mut self) {
        let (Some(arguments), Some(name)) = (&self.arguments, &self.name) else { return };
        let known = self.client.driver.cache.lock().tool(name);
        if let Some(tool) = known {
            self.options.param_headers = tool.mirrored(arguments);
        }
    }

    /// Lists tools when the server missed headers that nobody knew of; whether that may have helped. A request that is
    /// refused for its headers was not carried out.
    async fn learn_tool(&mut self) -> bool {
        let Some(name) = self.name.clone().filter(|_| self.arguments.is_some()) else { return false };
        let before = std::mem::take(&mut self.options.param_headers);
        if Box::pin(self.client.list_tools_afresh()).await.is_err()
            || self.client.driver.cache.lock().tool(&name).is_none()
        {
            return false;
        }
        self.mirror();
        self.options.param_headers != before
    }

    fn read(&self, text: &str) -> Result<R, Error> {
        if let Some(name) = self.name.as_deref().filter(|_| self.arguments.is_some()) {
            self.check_output(name, text)?;
        }
        serde_json::from_str(text).map_err(|fault| Error::Unreadable {
            method: self.method.to_string(),
            why: without_place(&fault),
        })
    }

    fn check_output(&self, tool: &str, text: &str) -> Result<(), Error> {
        let Some(notes) = self.client.driver.cache.lock().tool(tool).filter(|notes| notes.has_output())
        else {
            return Ok(());
        };
        // A result that cannot be read is complained about where it is read.
        let Ok(result) = serde_json::from_str::<CallToolResult>(text) else { return Ok(()) };
        notes
            .check_output(result.structured_content.as_ref(), result.is_error == Some(true))
            .map_err(|why| Error::Output { tool: tool.to_owned(), why })
    }
}

impl<R: DeserializeOwned + Send + 'static> IntoFuture for Request<R> {
    type Output = Result<R, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}
