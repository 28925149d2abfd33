//! One server, whatever it speaks and however it is reached.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use refmcp_proto::engine::client::{CallOptions, ServerFacts, TransportKind};
use refmcp_proto::finding::Finding;
use refmcp_proto::model::{
    CallToolResult, CompleteResult, CompletionArgument, CompletionRef, DiscoverResult, EmptyResult,
    GetPromptResult, JsonObject, LogLevel, Prompt, ReadResourceResult, RequestParams, Resource,
    ResourceTemplate, Root, SubscriptionFilter, SubscriptionsListenResult, Tool,
};
use refmcp_proto::revision::Lifecycle;
use serde::Serialize;
use serde_json::{Value, json};

use crate::builder::ClientBuilder;
use crate::driver::{ClientDriver, OpenState};
use crate::error::Error;
use crate::host::Event;
use crate::list::{Listable, Pages};
use crate::request::Request;

/// A conversation with a server. Clones share it; when the last one is dropped, the connection ends.
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

    /// What the server said of itself.
    pub fn server(&self) -> Arc<ServerFacts> {
        match self.driver.open_state() {
            OpenState::Open(server) => server,
            OpenState::Opening | OpenState::Closed(_) => self.shared.server.clone(),
        }
    }

    /// Where the server is, for messages and logs.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    pub(crate) fn options(&self) -> CallOptions {
        self.shared.options.lock().clone()
    }

    /// The server's tools, all pages. Tools that cannot be called over this connection are left out, with a finding
    /// that says why.
    ///
    /// # Errors
    /// As any request; and when the server's pages never end.
    pub async fn list_tools(&self) -> Result<Vec<Tool>, Error> {
        self.pages().all().await
    }

    pub(crate) async fn list_tools_afresh(&self) -> Result<Vec<Tool>, Error> {
        Pages::new(self, true).all().await
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

    /// A list of the server, to be read page by page or one thing after the other.
    pub fn pages<T: Listable>(&self) -> Pages<T> {
        Pages::new(self, false)
    }

    /// Calls a tool; its arguments are anything that becomes a JSON object. A tool that failed has a result that says so
    /// (`is_error`); an error means that there is none.
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
            Err(fault) => Err(fault.to_string()),
        };
        match arguments {
            Ok(arguments) => Request::new(self, "tools/call", &Params { name, arguments: &arguments })
                .named(name)
                .arguments(arguments),
            Err(why) => Request::impossible(self, "tools/call", why),
        }
    }

    /// Reads a resource.
    pub fn read_resource(&self, uri: &str) -> Request<ReadResourceResult> {
        Request::new(self, "resources/read", &json!({ "uri": uri })).named(uri).remembered()
    }

    /// Gets a prompt, filled in.
    pub fn get_prompt(&self, name: &str, arguments: &BTreeMap<String, String>) -> Request<GetPromptResult> {
        Request::new(self, "prompts/get", &json!({ "name": name, "arguments": arguments })).named(name)
    }

    /// Asks how an argument of a prompt or template may go on; `context` has the arguments that are known already.
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
        Request::new(self, "completion/complete", &params)
    }

    /// Wants to hear when a resource changes, in a session; without one, [`listen`](Self::listen).
    pub fn subscribe(&self, uri: &str) -> Request<EmptyResult> {
        Request::new(self, "resources/subscribe", &json!({ "uri": uri }))
    }

    /// Wants to hear of a resource no more.
    pub fn unsubscribe(&self, uri: &str) -> Request<EmptyResult> {
        Request::new(self, "resources/unsubscribe", &json!({ "uri": uri }))
    }

    /// Listens for changes, where there is no session. It goes on until the server ends it or the future is dropped;
    /// what is heard reaches [`Host::on_event`](crate::Host::on_event).
    pub fn listen(&self, filter: &SubscriptionFilter) -> Request<SubscriptionsListenResult> {
        Request::new(self, "subscriptions/listen", &json!({ "notifications": filter }))
    }

    /// From which level on log messages are wanted: of the session, or of every request from now on.
    ///
    /// # Errors
    /// As any request.
    pub async fn set_level(&self, level: LogLevel) -> Result<(), Error> {
        if self.server().rules().lifecycle == Lifecycle::PerRequest {
            self.shared.options.lock().log_level = Some(level);
            return Ok(());
        }
        let request: Request<EmptyResult> =
            Request::new(self, "logging/setLevel", &json!({ "level": level }));
        request.await.map(drop)
    }

    /// Adds members to the `_meta` of every request from now on, in place of those that have the same names. Requests
    /// that were made before keep theirs.
    pub fn set_meta(&self, members: JsonObject) {
        self.shared.options.lock().meta.extend(members);
    }

    /// Asks whether the server is there.
    ///
    /// # Errors
    /// As any request.
    pub async fn ping(&self) -> Result<(), Error> {
        if self.server().rules().lifecycle == Lifecycle::PerRequest {
            return Request::<DiscoverResult>::new(self, "server/discover", &RequestParams::default())
                .await
                .map(drop);
        }
        Request::<EmptyResult>::new(self, "ping", &RequestParams::default()).await.map(drop)
    }

    /// Makes any request. What the protocol puts into `_meta` is added.
    pub fn raw(&self, method: &str, mut params: JsonObject) -> Request<Value> {
        let meta = match params.remove("_meta") {
            Some(Value::Object(meta)) => meta,
            _ => JsonObject::new(),
        };
        let name = ["name", "uri"].iter().find_map(|member| params.get(*member)?.as_str().map(str::to_owned));
        let request = Request::new(self, method, &params).meta(meta).unchecked();
        match name.filter(|_| matches!(method, "tools/call" | "prompts/get" | "resources/read")) {
            Some(name) => request.named(&name),
            None => request,
        }
    }

    /// Tells the server that the application's folders are others now.
    ///
    /// # Errors
    /// When the application has told of no folders when it connected: the server does not know of any.
    pub fn set_roots(&self, roots: Vec<Root>) -> Result<(), Error> {
        if !self.driver.host.set_roots(roots) {
            return Err(Error::Misuse("the server was not told of any folders".to_owned()));
        }
        self.driver.notify("notifications/roots/list_changed");
        Ok(())
    }

    /// Forgets results that were kept.
    pub fn forget(&self) {
        self.driver.cache.lock().forget_all();
    }

    pub(crate) fn forget_list(&self, method: &str) {
        self.driver.cache.lock().forget_list(method);
    }

    /// Takes note of listed tools, and leaves out those that cannot be called here.
    pub(crate) fn take_note(&self, tools: Vec<Tool>) -> Vec<Tool> {
        let by_header = self.shared.transport == TransportKind::Http
            && self.server().rules().lifecycle == Lifecycle::PerRequest;
        let mut usable = Vec::with_capacity(tools.len());
        for tool in tools {
            let noted = self.driver.cache.lock().note(&tool);
            match noted {
                Err(why) if by_header => {
                    let what =
                        format!("the tool {} is left out: {why}", refmcp_proto::jsonrpc::excerpt(&tool.name));
                    self.driver.host.tell(&Event::Finding(Finding { rule: "MHTTP-15", what: what.into() }));
                }
                _ => usable.push(tool),
            }
        }
        usable
    }

    /// Ends the conversation in order: calls that have not ended fail, and whatever the connection needed is gone
    /// afterwards. Takes a bounded time.
    pub async fn close(&self) {
        self.driver.close().await;
    }
}
