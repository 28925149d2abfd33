//! `Host`: the handlers of the application for sampling, elicitation, roots and events.
//!
//! One set of handlers serves every revision, whether a server sends requests or results that require input. The handlers
//! that are set decide the capabilities of the client.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use parking_lot::RwLock;
use refmcp_proto::engine::client::{OpenError, ServerFacts, TransportError};
use refmcp_proto::finding::Finding;
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::model::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitAction, ElicitFormParams,
    ElicitParams, ElicitResult, ElicitUrlParams, InputRequest, JsonObject, ListRootsResult, Root,
    ServerNotification, TASKS_EXTENSION,
};
use serde::Serialize;
use serde_json::Value;

use crate::transport::BoxFuture;

type Handler<P, R> = Arc<dyn Fn(P) -> BoxFuture<'static, Result<R, RpcError>> + Send + Sync>;
type EventListener = Arc<dyn Fn(&Event) + Send + Sync>;
pub(crate) type RequestHandler = Handler<InputRequest, Value>;

/// Something that happened outside of a request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// A notification of the server: a log message, progress, a change.
    Notification(ServerNotification),
    /// The server broke a rule, for the first time.
    Finding(Finding),
    /// Input that was ignored, shortened: no message, an answer to no request, or a request for a capability that the
    /// client does not have.
    Ignored(String),
    /// The session was lost and opened anew; what was subscribed to is not any more.
    Reopened(Arc<ServerFacts>),
    /// The GET stream of a session cannot be opened, or opened again: over HTTP the first sign that the server is gone.
    /// Calls may still succeed, unless the reason is `TransportError::SessionLost`: the session has ended (404).
    StreamLost(TransportError),
    /// That stream is open again.
    StreamRestored,
    /// The session is over.
    Closed(OpenError),
}

/// The handlers of an application, for requests and events of servers.
#[doc(alias = "ClientHandler")]
#[derive(Clone, Default)]
#[must_use]
pub struct Host {
    takes_no_tasks: bool,
    sampling: Option<Handler<CreateMessageParams, CreateMessageResult>>,
    sampling_with_tools: bool,
    elicitation: Option<Handler<ElicitFormParams, ElicitResult>>,
    url_elicitation: Option<Handler<ElicitUrlParams, ElicitResult>>,
    roots: Option<Arc<RwLock<Vec<Root>>>>,
    shows_apps: bool,
    /// Handles all requests, with these capabilities.
    requests: Option<(ClientCapabilities, RequestHandler)>,
    listeners: Vec<EventListener>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("capabilities", &self.capabilities()).finish_non_exhaustive()
    }
}

impl Host {
    /// A host without handlers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Handles `sampling/createMessage`: lets servers use the application's model.
    #[doc(alias = "create_message")]
    pub fn sampling<F>(mut self, answer: impl Fn(CreateMessageParams) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<CreateMessageResult, RpcError>> + Send + 'static,
    {
        self.sampling = Some(Arc::new(move |params| Box::pin(answer(params))));
        self
    }

    /// Declares that sampling supports tools; see [`sampling`](Self::sampling).
    pub fn sampling_with_tools(mut self) -> Self {
        self.sampling_with_tools = true;
        self
    }

    /// Handles `elicitation/create` in form mode: lets servers ask the user.
    #[doc(alias = "form")]
    #[doc(alias = "elicit")]
    pub fn elicitation<F>(mut self, answer: impl Fn(ElicitFormParams) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<ElicitResult, RpcError>> + Send + 'static,
    {
        self.elicitation = Some(Arc::new(move |params| Box::pin(answer(params))));
        self
    }

    /// Accepts every elicitation with the defaults of its form, and declines forms that need more.
    pub fn elicitation_defaults(self) -> Self {
        self.elicitation(|params| async move {
            let content = params.requested_schema.defaults();
            Ok(match params.requested_schema.check(&content) {
                Ok(()) => ElicitResult::accept(content),
                Err(_) => ElicitResult::new(ElicitAction::Decline),
            })
        })
    }

    /// Handles `elicitation/create` in URL mode: lets servers send the user to a web page. The handler has to ask the user
    /// for consent first.
    pub fn url_elicitation<F>(mut self, answer: impl Fn(ElicitUrlParams) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<ElicitResult, RpcError>> + Send + 'static,
    {
        self.url_elicitation = Some(Arc::new(move |params| Box::pin(answer(params))));
        self
    }

    /// Handles `roots/list` with these roots; see [`Client::set_roots`](crate::Client::set_roots) for changes.
    #[doc(alias = "list_roots")]
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> Self {
        self.roots = Some(Arc::new(RwLock::new(roots.into_iter().collect())));
        self
    }

    /// Has nothing to do with tasks where servers decide: calls of tools are no tasks (2026-07-28), and neither are requests of
    /// servers (2025-11-25). Otherwise a client declares that it runs sampling and elicitation as tasks wherever it has their
    /// handlers, which need not know: the client answers at once, keeps the outcome, and drops the handler where the server
    /// cancels the task.
    pub fn without_tasks(mut self) -> Self {
        self.takes_no_tasks = true;
        self
    }

    /// Declares that the application shows apps (`io.modelcontextprotocol/ui`); [`app`](crate::app) reads and judges them.
    ///
    /// ```
    /// use refmcp_client::Host;
    ///
    /// assert!(Host::new().shows_apps().capabilities().shows_apps());
    /// ```
    #[doc(alias = "ui")]
    pub fn shows_apps(mut self) -> Self {
        self.shows_apps = true;
        self
    }

    /// Handles every request of servers with one function, and declares these capabilities, tasks among them; the other handlers
    /// are not used. For gateways, which pass requests on.
    pub fn requests<F>(
        mut self,
        capabilities: ClientCapabilities,
        answer: impl Fn(InputRequest) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Value, RpcError>> + Send + 'static,
    {
        self.requests = Some((capabilities, Arc::new(move |request| Box::pin(answer(request)))));
        self
    }

    /// Adds a listener for events. It is called where messages are read and must not block.
    #[doc(alias = "notification")]
    pub fn on_event(mut self, listen: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.listeners.push(Arc::new(listen));
        self
    }

    /// The capabilities of the client, by the handlers that are set.
    pub fn capabilities(&self) -> ClientCapabilities {
        if let Some((capabilities, _)) = &self.requests {
            return capabilities.clone();
        }
        let mut all = ClientCapabilities::default();
        if self.sampling.is_some() {
            let sampling = all.sampling.get_or_insert_default();
            sampling.tools = self.sampling_with_tools.then(Default::default);
        }
        if self.elicitation.is_some() {
            all.elicitation.get_or_insert_default().form = Some(Default::default());
        }
        if self.url_elicitation.is_some() {
            all.elicitation.get_or_insert_default().url = Some(Default::default());
        }
        if self.roots.is_some() {
            all.roots.get_or_insert_default().list_changed = Some(true);
        }
        if !self.takes_no_tasks {
            all.declare_tasks();
            let extensions = all.extensions.get_or_insert_default();
            extensions.insert(TASKS_EXTENSION.to_owned(), Value::Object(JsonObject::new()));
        }
        if self.shows_apps {
            all.declare_apps();
        }
        all
    }

    pub(crate) fn emit(&self, event: &Event) {
        for listen in &self.listeners {
            listen(event);
        }
    }

    /// Replaces the roots; false if the host has none.
    pub(crate) fn set_roots(&self, roots: Vec<Root>) -> bool {
        let Some(known) = &self.roots else { return false };
        *known.write() = roots;
        true
    }

    /// Handles a request of a server.
    pub(crate) async fn handle(&self, request: InputRequest) -> Result<Value, RpcError> {
        if let Some((_, handle)) = &self.requests {
            return handle(request).await;
        }
        let method = request.method();
        let unknown = || RpcError::method_not_found(method);
        match request {
            InputRequest::Roots => {
                let known = self.roots.as_ref().ok_or_else(unknown)?;
                let roots = known.read().clone();
                value(&ListRootsResult { roots, ..ListRootsResult::default() })
            }
            InputRequest::Sample(params) => {
                let handler = self.sampling.as_ref().ok_or_else(unknown)?;
                value(&handler(*params).await?)
            }
            InputRequest::Elicit(ElicitParams::Form(params)) => {
                let handler = self.elicitation.as_ref().ok_or_else(unknown)?;
                let form = params.requested_schema.clone();
                let result = handler(params).await?;
                // Content that does not fit the form is not sent.
                if let (ElicitAction::Accept, Some(content)) = (&result.action, &result.content) {
                    form.check(content).map_err(RpcError::internal)?;
                }
                value(&result)
            }
            InputRequest::Elicit(ElicitParams::Url(params)) => {
                let handler = self.url_elicitation.as_ref().ok_or_else(unknown)?;
                value(&handler(params).await?)
            }
        }
    }
}

fn value(result: &impl Serialize) -> Result<Value, RpcError> {
    serde_json::to_value(result).map_err(|error| RpcError::internal(error.to_string()))
}
