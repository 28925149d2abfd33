//! What the application around a client does for servers: samples, asks people, knows folders, listens.
//!
//! One set of functions serves every revision: servers that ask by requests of their own and servers that ask by their
//! results reach the same ones. What is given decides which capabilities servers are told of.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use parking_lot::RwLock;
use refmcp_proto::engine::client::{OpenError, ServerFacts};
use refmcp_proto::finding::Finding;
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::model::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitAction, ElicitFormParams,
    ElicitParams, ElicitResult, ElicitUrlParams, InputRequest, ListRootsResult, Root, ServerNotification,
};
use serde::Serialize;
use serde_json::Value;

use crate::transport::BoxFuture;

type Answering<P, R> = Arc<dyn Fn(P) -> BoxFuture<'static, Result<R, RpcError>> + Send + Sync>;
type Listening = Arc<dyn Fn(&Event) + Send + Sync>;

/// Something that happened without being asked for.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// The server told something: a log message, progress, a change.
    Notification(ServerNotification),
    /// The server broke a rule, for the first time.
    Finding(Finding),
    /// The server sent something over a pipe that is no message, or an answer to nothing, or it made a request for what
    /// the client did not offer: what it was, shortened. Each is told of.
    Ignored(String),
    /// The session was lost and opened anew; what was subscribed to is not any more.
    Reopened(Arc<ServerFacts>),
    /// The conversation is over.
    Closed(OpenError),
}

/// What an application does for servers.
#[derive(Clone, Default)]
pub struct Host {
    sample: Option<Answering<CreateMessageParams, CreateMessageResult>>,
    sample_with_tools: bool,
    form: Option<Answering<ElicitFormParams, ElicitResult>>,
    url: Option<Answering<ElicitUrlParams, ElicitResult>>,
    roots: Option<Arc<RwLock<Vec<Root>>>>,
    listeners: Vec<Listening>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("capabilities", &self.capabilities()).finish_non_exhaustive()
    }
}

impl Host {
    /// An application that does nothing for servers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets servers use the application's model.
    #[must_use]
    pub fn sampling<F>(mut self, answer: impl Fn(CreateMessageParams) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<CreateMessageResult, RpcError>> + Send + 'static,
    {
        self.sample = Some(Arc::new(move |params| Box::pin(answer(params))));
        self
    }

    /// Says that the model may be given tools; see [`sampling`](Self::sampling).
    #[must_use]
    pub fn sampling_with_tools(mut self) -> Self {
        self.sample_with_tools = true;
        self
    }

    /// Lets servers ask a person to fill in forms.
    #[must_use]
    pub fn elicitation<F>(mut self, answer: impl Fn(ElicitFormParams) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<ElicitResult, RpcError>> + Send + 'static,
    {
        self.form = Some(Arc::new(move |params| Box::pin(answer(params))));
        self
    }

    /// Accepts every form with the defaults of its fields, and declines those that need more.
    #[must_use]
    pub fn elicitation_defaults(self) -> Self {
        self.elicitation(|params| async move {
            let content = params.requested_schema.defaults();
            Ok(match params.requested_schema.check(&content) {
                Ok(()) => ElicitResult::accept(content),
                Err(_) => ElicitResult::new(ElicitAction::Decline),
            })
        })
    }

    /// Lets servers send a person to a web page. Whoever answers has to ask for consent first.
    #[must_use]
    pub fn url_elicitation<F>(mut self, answer: impl Fn(ElicitUrlParams) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<ElicitResult, RpcError>> + Send + 'static,
    {
        self.url = Some(Arc::new(move |params| Box::pin(answer(params))));
        self
    }

    /// Tells servers of these folders; see [`Client::set_roots`](crate::Client::set_roots) for when they change.
    #[must_use]
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> Self {
        self.roots = Some(Arc::new(RwLock::new(roots.into_iter().collect())));
        self
    }

    /// Listens to what happens. Called where messages are read: it must not block, and may be called often.
    #[must_use]
    pub fn on_event(mut self, listen: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.listeners.push(Arc::new(listen));
        self
    }

    /// What servers are told that the application can do.
    pub fn capabilities(&self) -> ClientCapabilities {
        let mut all = ClientCapabilities::default();
        if self.sample.is_some() {
            let sampling = all.sampling.get_or_insert_default();
            sampling.tools = self.sample_with_tools.then(Default::default);
        }
        if self.form.is_some() {
            all.elicitation.get_or_insert_default().form = Some(Default::default());
        }
        if self.url.is_some() {
            all.elicitation.get_or_insert_default().url = Some(Default::default());
        }
        if self.roots.is_some() {
            all.roots.get_or_insert_default().list_changed = Some(true);
        }
        all
    }

    pub(crate) fn tell(&self, event: &Event) {
        for listen in &self.listeners {
            listen(event);
        }
    }

    /// Takes new folders; whether servers know of folders at all.
    pub(crate) fn set_roots(&self, roots: Vec<Root>) -> bool {
        let Some(known) = &self.roots else { return false };
        *known.write() = roots;
        true
    }

    /// Answers what a server asks.
    pub(crate) async fn answer(&self, request: InputRequest) -> Result<Value, RpcError> {
        match request {
            InputRequest::Roots => {
                let known = self.roots.as_ref().ok_or_else(|| cannot("roots/list"))?;
                let roots = known.read().clone();
                value(&ListRootsResult { roots, ..ListRootsResult::default() })
            }
            InputRequest::Sample(params) => {
                let sample = self.sample.as_ref().ok_or_else(|| cannot("sampling/createMessage"))?;
                value(&sample(*params).await?)
            }
            InputRequest::Elicit(ElicitParams::Form(params)) => {
                let fill_in = self.form.as_ref().ok_or_else(|| cannot("elicitation/create"))?;
                let form = params.requested_schema.clone();
                let result = fill_in(params).await?;
                // Nothing is sent that the server could not use.
                if let (ElicitAction::Accept, Some(content)) = (&result.action, &result.content) {
                    form.check(content).map_err(RpcError::internal)?;
                }
                value(&result)
            }
            InputRequest::Elicit(ElicitParams::Url(params)) => {
                let visit = self.url.as_ref().ok_or_else(|| cannot("elicitation/create"))?;
                value(&visit(params).await?)
            }
        }
    }
}

fn cannot(method: &str) -> RpcError {
    RpcError::method_not_found(method)
}

fn value(result: &impl Serialize) -> Result<Value, RpcError> {
    serde_json::to_value(result).map_err(|fault| RpcError::internal(fault.to_string()))
}
