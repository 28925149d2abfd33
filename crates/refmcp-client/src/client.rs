//! `Client`: the methods of the specification, for one connected server.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use refmcp_proto::engine::client::{CallOptions, OpenError, ServerFacts, TransportError, TransportKind};
use refmcp_proto::finding::Finding;
use refmcp_proto::model::{
    CallToolResult, CompleteResult, CompletionArgument, CompletionRef, DiscoverResult, EmptyResult,
    GetPromptResult, JsonObject, LogLevel, Prompt, ReadResourceResult, RequestParams, Resource,
    ResourceTemplate, Root, SubscriptionFilter, SubscriptionsListenResult, Task, Tool,
};
use refmcp_proto::revision::{Lifecycle, Method, NotificationMethod};
use refmcp_proto::rule;
use serde::Serialize;
use serde_json::{Value, json};

use crate::builder::ClientBuilder;
use crate::driver::{ClientDriver, OpenState};
use crate::error::Error;
use crate::host::Event;
use crate::list::{Listable, Pages};
use crate::request::Request;
use crate::tasks::TaskHandle;

/// A client that is connected to a server. Clones share the connection, which ends when the last one is dropped.
#[derive(Clone)]
pub struct Client {
    pub(crate) driver: Arc<ClientDriver>,
    shared: Arc<Shared>,
}

struct Shared {
    server: Arc<ServerFacts>,
    name: String,
    transport: TransportKind,
    options: Mutex<CallOptions>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("server", &self.shared.name).finish_non_exhaustive()
    }
}

impl Client {
    /// A client of this name, to be connected.
    #[doc(alias = "new")]
    #[doc(alias = "initialize")]
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(name, version)
    }

    pub(crate) fn new(
        driver: Arc<ClientDriver>,
        server: Arc<ServerFacts>,
        name: String,
        transport: TransportKind,
        options: CallOptions,
    ) -> Self {
        Self { driver, shared: Arc::new(Shared { server, name, transport, options: Mutex::new(options) }) }
    }

    /// What the server said of itself: its name, revision, capabilities and instructions.
    #[doc(alias = "server_info")]
    #[doc(alias = "capabilities")]
    pub fn server(&self) -> Arc<ServerFacts> {
        match self.driver.open_state() {
            OpenState::Open(server) => server,
            OpenState::Opening | OpenState::Closed(_) => self.shared.server.clone(),
        }
    }

    /// The URL or command line of the server, for messages and logs.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    pub(crate) fn options(&self) -> CallOptions {
        self.shared.options.lock().clone()
    }

    /// The server's tools, all pages. Tools that cannot be called over this transport are left out, with an
    /// [`Event::Finding`] that says why.
    ///
    /// # Errors
    /// As any request; and when the server's pages never end.
    pub async fn list_tools(&self) -> Result<Vec<Tool>, Error> {
        self.pages().all().await
    }

    /// The server's resources, all pages.
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    pub async fn list_resources(&self) -> Result<Vec<Resource>, Error> {
        self.pages().all().await
    }

    /// The server's resource templates, all pages.
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    pub async fn list_resource_templates(&self) -> Result<Vec<ResourceTemplate>, Error> {
        self.pages().all().await
    }

    /// The server's prompts, all pages.
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    pub async fn list_prompts(&self) -> Result<Vec<Prompt>, Error> {
        self.pages().all().await
    }

    /// A list of the server, to be read page by page or item by item.
    #[doc(alias = "cursor")]
    pub fn pages<T: Listable>(&self) -> Pages<T> {
        Pages::new(self, false)
    }

    /// Calls a tool; the arguments are any value that serializes to a JSON object. A tool that failed has a result with
    /// `is_error`; an [`Error`] means that there is no result. A call that the server makes a task ends with what that comes to;
    /// to go on meanwhile, see [`Request::as_task`].
    #[doc(alias = "tools/call")]
    pub fn call_tool(&self, name: &str, arguments: impl Serialize) -> Request<CallToolResult> {
        #[derive(Serialize)]
        struct Params<'a> {
            name: &'a str,
            arguments: &'a JsonObject,
        }
        let arguments = match serde_json::to_value(arguments) {
            Ok(Value::Object(arguments)) => Ok(arguments),
            Ok(Value::Null) => Ok(JsonObject::new()),
            Ok(_) => Err("the arguments of a tool are an object".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        match arguments {
            Ok(arguments) => {
                Request::new(self, Method::CallTool.name(), &Params { name, arguments: &arguments })
                    .named(name)
                    .arguments(arguments)
            }
            Err(why) => Request::invalid(self, Method::CallTool.name(), why),
        }
    }

    /// A task of the server by its id, such as one that an earlier process has begun; whether it exists is not checked.
    #[doc(alias = "tasks/get")]
    pub fn task(&self, id: impl Into<String>) -> TaskHandle<CallToolResult> {
        TaskHandle::of_id(self, id.into())
    }

    /// The tasks that the server keeps for this client, all pages (2025-11-25).
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    #[doc(alias = "tasks/list")]
    pub async fn list_tasks(&self) -> Result<Vec<Task>, Error> {
        self.pages().all().await
    }

    /// Reads a resource.
    #[doc(alias = "resources/read")]
    pub fn read_resource(&self, uri: &str) -> Request<ReadResourceResult> {
        Request::new(self, Method::ReadResource.name(), &json!({ "uri": uri })).named(uri).cached()
    }

    /// Gets a prompt, filled in with arguments.
    #[doc(alias = "prompts/get")]
    pub fn get_prompt(&self, name: &str, arguments: &BTreeMap<String, String>) -> Request<GetPromptResult> {
        Request::new(self, Method::GetPrompt.name(), &json!({ "name": name, "arguments": arguments }))
            .named(name)
    }

    /// Proposes values for an argument of a prompt or resource template; `context` has the other arguments that are known.
    #[doc(alias = "completion/complete")]
    pub fn complete(
        &self,
        reference: &CompletionRef,
        argument: &CompletionArgument,
        context: &BTreeMap<String, String>,
    ) -> Request<CompleteResult> {
        let mut params = json!({ "ref": reference, "argument": argument });
        if let (false, Value::Object(params)) = (context.is_empty(), &mut params) {
            params.insert("context".to_owned(), json!({ "arguments": context }));
        }
        Request::new(self, Method::Complete.name(), &params)
    }

    /// Subscribes to changes of a resource, in a session; without one, see [`listen`](Self::listen).
    #[doc(alias = "resources/subscribe")]
    pub fn subscribe(&self, uri: &str) -> Request<EmptyResult> {
        Request::new(self, Method::Subscribe.name(), &json!({ "uri": uri }))
    }

    /// Ends a subscription to a resource.
    #[doc(alias = "resources/unsubscribe")]
    pub fn unsubscribe(&self, uri: &str) -> Request<EmptyResult> {
        Request::new(self, Method::Unsubscribe.name(), &json!({ "uri": uri }))
    }

    /// Subscribes to notifications where there is no session, until the server ends it or the future is dropped. They go
    /// to [`Host::on_event`](crate::Host::on_event).
    #[doc(alias = "subscriptions/listen")]
    #[doc(alias = "subscribe")]
    pub fn listen(&self, filter: &SubscriptionFilter) -> Request<SubscriptionsListenResult> {
        Request::new(self, Method::Listen.name(), &json!({ "notifications": filter }))
    }

    /// Sets the least level of log messages: of the session, or of all requests from now on.
    ///
    /// # Errors
    /// As any request.
    #[doc(alias = "logging/setLevel")]
    #[doc(alias = "set_log_level")]
    pub async fn set_level(&self, level: LogLevel) -> Result<(), Error> {
        if self.server().rules().lifecycle == Lifecycle::PerRequest {
            self.shared.options.lock().log_level = Some(level);
            return Ok(());
        }
        let request: Request<EmptyResult> =
            Request::new(self, Method::SetLevel.name(), &json!({ "level": level }));
        request.await.map(drop)
    }

    /// Adds members to the `_meta` of all requests from now on, replacing those of the same names. Requests that were made
    /// before keep theirs.
    pub fn set_meta(&self, members: JsonObject) {
        self.shared.options.lock().meta.extend(members);
    }

    /// Checks that the server answers. Where there is no `ping`, `server/discover` is sent.
    ///
    /// # Errors
    /// As any request.
    pub async fn ping(&self) -> Result<(), Error> {
        if self.server().rules().lifecycle == Lifecycle::PerRequest {
            return Request::<DiscoverResult>::new(self, Method::Discover.name(), &RequestParams::default())
                .await
                .map(drop);
        }
        Request::<EmptyResult>::new(self, Method::Ping.name(), &RequestParams::default()).await.map(drop)
    }

    /// Makes any request. The members of `_meta` that the protocol requires are added.
    #[doc(alias = "send_request")]
    pub fn raw(&self, method: &str, mut params: JsonObject) -> Request<Value> {
        let meta = match params.remove("_meta") {
            Some(Value::Object(meta)) => meta,
            _ => JsonObject::new(),
        };
        let member = Method::known(method).and_then(|method| method.name_member());
        let name = member.and_then(|member| params.get(member)?.as_str().map(str::to_owned));
        let request = Request::new(self, method, &params).meta(meta).unchecked().task_as_result();
        match name {
            Some(name) => request.named(&name),
            None => request,
        }
    }

    /// Waits until the next response to a request of the server is sent, from the moment this is called: a request that has
    /// to come after the response waits for it.
    pub fn response_sent(&self) -> impl Future<Output = ()> + Send + use<> {
        self.driver.responded.clone().notified_owned()
    }

    /// Notifies the server that the roots have changed, where a function of the [`Host`](crate::Host) lists them.
    pub fn roots_changed(&self) {
        self.driver.notify(NotificationMethod::RootsListChanged.name());
    }

    /// Replaces the roots, and notifies the server.
    ///
    /// # Errors
    /// The [`Host`](crate::Host) had no roots when it connected.
    #[doc(alias = "roots/list_changed")]
    pub fn set_roots(&self, roots: Vec<Root>) -> Result<(), Error> {
        if !self.driver.host.set_roots(roots) {
            return Err(Error::Misuse("the host had no roots when it connected".to_owned()));
        }
        self.roots_changed();
        Ok(())
    }

    /// Drops all cached results.
    pub fn clear_cache(&self) {
        self.driver.cache.lock().clear();
    }

    /// Caches the schemas of listed tools, and leaves out tools that cannot be called over this transport.
    pub(crate) fn usable_tools(&self, tools: Vec<Tool>) -> Vec<Tool> {
        let by_header = self.shared.transport == TransportKind::Http
            && self.server().rules().lifecycle == Lifecycle::PerRequest;
        let mut usable = Vec::with_capacity(tools.len());
        for tool in tools {
            let inserted = self.driver.cache.lock().insert_tool(&tool);
            match inserted {
                Err(why) if by_header => {
                    let what =
                        format!("the tool {} is left out: {why}", refmcp_proto::jsonrpc::excerpt(&tool.name));
                    let finding = Finding::new(&rule::MHTTP_14, what, "correct its x-mcp-header");
                    self.driver.host.emit(&Event::Finding(finding));
                }
                _ => usable.push(tool),
            }
        }
        usable
    }

    /// Why the session is over, if it is.
    #[doc(alias = "is_closed")]
    pub fn close_reason(&self) -> Option<OpenError> {
        match self.driver.open_state() {
            OpenState::Closed(why) => Some(why),
            OpenState::Opening | OpenState::Open(_) => None,
        }
    }

    /// Waits until the session is over, and says why. The future does not keep the connection open.
    pub fn closed(&self) -> impl Future<Output = OpenError> + Send + use<> {
        let mut states = self.driver.open_states();
        async move {
            match states.wait_for(|state| matches!(state, OpenState::Closed(_))).await.as_deref() {
                Ok(OpenState::Closed(why)) => why.clone(),
                _ => OpenError::Transport(TransportError::Closed),
            }
        }
    }

    /// Closes the session and the connection in order, within a bounded time. Calls that have not ended fail.
    pub async fn close(&self) {
        self.driver.close().await;
    }
}
