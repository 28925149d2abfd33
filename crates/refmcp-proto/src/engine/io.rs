//! Inputs and outputs of a server engine.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{FactsChange, ParkedCall};
use crate::finding::Finding;
use crate::jsonrpc::{ParamSpans, ProgressToken, RequestId, RpcError};
use crate::model::{
    ClientCapabilities, InputRequest, JsonObject, LogLevel, ServerResult, SubscriptionFilter, TASKS_EXTENSION,
};
use crate::peer::Peer;
use crate::revision::Method;
use crate::time::Timestamp;

/// The engine's own number for a call. Clients repeat their request ids, so those never identify one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

impl CallId {
    /// A call that no engine has: a [detached](super::DetachedCall) one.
    pub const DETACHED: Self = Self(u64::MAX);
}

/// An exchange: a message and all that is sent back for it. Over HTTP it is one POST with its response; a pipe is a single
/// exchange for a server. For a client each message that it sends opens one, so a call has one for each round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ExchangeId(pub u64);

/// What a transport knows of a request beside its message, such as HTTP headers. Engines hand it on to the handler unread.
pub type RequestContext = Arc<dyn Any + Send + Sync>;

/// Something for the driver of a server to do.
#[derive(Debug)]
pub enum Output {
    /// Write a message.
    Send(OutgoingMessage),
    /// Run a handler, and report with [`ServerEngine::finish`](super::ServerEngine::finish).
    Run(Dispatch),
    /// Stop the work on a call, or drop what is kept for one that waits for input; its outcome is not used.
    Cancel(CallId),
    /// Nothing more follows on this exchange, though not every request on it gets a response: they were cancelled.
    NoResponse(ExchangeId),
    /// The session is open: the client has sent `initialized`.
    Ready,
    /// What became of a request that belongs to no call
    /// ([`ServerEngine::request_client`](super::ServerEngine::request_client)).
    ClientResponded {
        /// The request's id.
        request: RequestId,
        /// The response, or that none came.
        outcome: InputOutcome,
    },
    /// The client's roots have changed.
    RootsChanged,
    /// The changes that the open `subscriptions/listen` streams want, all together; reported by engines whose calls are
    /// forwarded.
    Listening(Box<SubscriptionFilter>),
    /// A `subscriptions/listen` stream was opened that names tasks: tell it of them
    /// ([`ServerEngine::task_changed`](super::ServerEngine::task_changed)).
    ListensForTasks {
        /// The stream.
        listener: Box<TaskListener>,
        /// What the transport knows of its request.
        context: Option<RequestContext>,
    },
    /// The peer broke a rule that it had not broken before.
    Finding(Finding),
    /// The engine has responded to a request without a handler; for statistics and logs.
    Responded(Responded),
    /// Something for the other processes that serve the session, where there are any
    /// ([`EngineConfig::max_facts_bytes`](super::EngineConfig::max_facts_bytes)).
    Shared(SharedOutput),
    /// End the connection.
    Close(CloseReason),
}

impl From<Finding> for Output {
    fn from(finding: Finding) -> Self {
        Self::Finding(finding)
    }
}

/// What an engine has for the other processes that serve its session.
#[derive(Debug, Clone, PartialEq)]
pub enum SharedOutput {
    /// The session's facts have changed. What follows from that comes later.
    Facts(FactsChange),
    /// Requests to the client follow. Their responses may arrive at any process; the one that gets one as a [`Response`]
    /// hands it to this engine ([`ServerEngine::deliver`](super::ServerEngine::deliver)).
    ///
    /// [`Response`]: Self::Response
    Expect {
        /// The ids of the requests, one after another.
        ids: Vec<RequestId>,
        /// How long the responses may take.
        within: Duration,
        /// The call that waits for them; a ping is for none.
        call: Option<WaitingCall>,
    },
    /// A parked call has all of its responses. The process that claims it first goes on with it: this one
    /// ([`ServerEngine::run_claimed`](super::ServerEngine::run_claimed)), or another
    /// ([`ServerEngine::abandon`](super::ServerEngine::abandon)).
    Claim(CallId),
    /// The response to this request is not expected any more.
    Withdraw(RequestId),
    /// The client has responded to a request of whichever process.
    Response {
        /// The request's id.
        id: RequestId,
        /// The response.
        outcome: InputOutcome,
    },
    /// The client has cancelled its requests with this id; other processes may run some
    /// ([`ServerEngine::cancel_request`](super::ServerEngine::cancel_request)).
    Cancel(RequestId),
}

/// A call that waits for responses of the client.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitingCall {
    /// The engine's number for it.
    pub number: CallId,
    /// The exchange that its messages go to.
    pub exchange: ExchangeId,
    /// The client's id of the request.
    pub id: RequestId,
    /// The call as data; `None` where only this process can go on with it.
    pub parked: Option<Box<ParkedCall>>,
}

/// A `subscriptions/listen` stream that names tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskListener {
    /// The exchange that the stream is.
    pub exchange: ExchangeId,
    /// The client's id of the request.
    pub id: RequestId,
    /// The tasks.
    pub ids: Vec<String>,
}

/// A request that the engine has responded to.
#[derive(Debug, Clone)]
pub struct Responded {
    /// The method; `None` when the server does not know it.
    pub method: Option<Method>,
    /// The client, as far as it has described itself.
    pub peer: Option<Arc<Peer>>,
    /// Whether the response is an error.
    pub failed: bool,
}

/// A message of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingMessage {
    /// Where it goes.
    pub to: MessageTarget,
    /// What it is.
    pub kind: MessageKind,
    /// The message: JSON without line breaks.
    pub json: Vec<u8>,
}

/// Where a message of the server goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageTarget {
    /// The exchange that a request came in by.
    Exchange(ExchangeId),
    /// The session, on whichever stream it listens.
    Session,
}

/// What a message of the server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// The last message for a request.
    Response {
        /// The code of the error, if it is one.
        error: Option<i64>,
    },
    /// A notification.
    Notification,
    /// A request to the client.
    Request,
}

/// Why the engine ends a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// The peer did not answer a ping in time.
    PingTimeout,
}

/// A call for a handler: the request, and how far its handling has come.
#[derive(Debug, Clone)]
pub struct Dispatch {
    /// The number to report back with.
    pub call: CallId,
    /// The request; a dispatch has its members too.
    pub request: Arc<CallRequest>,
    /// What earlier rounds of this call brought.
    pub replay: Replay,
    /// How often the handler has run before for this call.
    pub round: u32,
    /// The `requestState` that the client sent back, if it did.
    pub state: Option<RequestStateUse>,
}

impl Deref for Dispatch {
    type Target = CallRequest;

    fn deref(&self) -> &CallRequest {
        &self.request
    }
}

/// The request of a call, which the engine and all runs of the handler share.
#[derive(Debug)]
pub struct CallRequest {
    /// The client's id of the request, for logs.
    pub id: RequestId,
    /// The method.
    pub method: Method,
    /// The parameters: the JSON text of an object.
    pub params: Arc<str>,
    /// Where some members stand in that text.
    pub spans: ParamSpans,
    /// The client.
    pub peer: Arc<Peer>,
    /// The exchange that the request came in by.
    pub exchange: ExchangeId,
    /// The token for progress notifications, if the client wants any.
    pub progress_token: Option<ProgressToken>,
    /// The least level of log messages for this call, where the request names one.
    pub log_level: Option<LogLevel>,
    /// What the transport knows of the request, where it has said so.
    pub context: Option<RequestContext>,
}

impl CallRequest {
    /// The text of the parameters' `_meta`, if there is one.
    pub fn meta(&self) -> Option<&str> {
        self.params.get(self.spans.meta.clone()?)
    }
}

/// A `requestState` that came back: enough to see that it comes back only once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestStateUse {
    /// The sealed text; each is unique.
    pub sealed: Box<str>,
    /// When it expires.
    pub expires: Timestamp,
}

/// What a handler ended with.
#[derive(Debug)]
pub enum HandlerOutcome {
    /// A result in the newest shape.
    Done(Box<ServerResult>),
    /// A result in the shape of the client's revision, sent as it is: that of another server of the same revision.
    Raw(Box<RawValue>),
    /// No result.
    Failed(CallFailure),
    /// The handler needs input from the client, and runs again with it.
    InputRequired {
        /// What it asks for, each under its own key.
        requests: Vec<KeyedInputRequest>,
        /// The keys of the responses that it has used; the others are dropped. `None` keeps all.
        used: Option<BTreeSet<String>>,
        /// Values of costly steps, kept for the next run.
        once: BTreeMap<String, Value>,
    },
}

/// An input request of a handler.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyedInputRequest {
    /// The handler's key for it; the same in every run.
    pub key: String,
    /// The request.
    pub request: InputRequest,
}

/// Why a call has no result; each revision has its own error or result for it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CallFailure {
    /// An error that is the same in every revision.
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// There is no such resource.
    #[error("resource not found: {uri}")]
    ResourceNotFound {
        /// The requested one.
        uri: String,
    },
    /// The arguments of a tool do not fit its schema.
    #[error("{0}")]
    BadArguments(String),
    /// The client does not support an input request that the call needs.
    #[error("the client does not support {what}")]
    MissingCapability {
        /// What it would have to declare.
        needs: Box<ClientCapabilities>,
        /// The same for people.
        what: String,
    },
}

impl CallFailure {
    /// The failure of a request about tasks of a client that has not declared the extension in it.
    pub fn undeclared_tasks() -> Self {
        let extensions =
            JsonObject::from_iter([(TASKS_EXTENSION.to_owned(), Value::Object(JsonObject::new()))]);
        let needs = ClientCapabilities { extensions: Some(extensions), ..Default::default() };
        Self::MissingCapability { needs: Box::new(needs), what: format!("tasks ({TASKS_EXTENSION})") }
    }
}

/// What earlier rounds of a call brought: a handler that runs again gets it instead of asking again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReplayState {
    /// Responses by the keys of their input requests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub responses: BTreeMap<String, InputOutcome>,
    /// Values of steps that need not be repeated.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub once: BTreeMap<String, Value>,
}

impl ReplayState {
    /// Keeps the responses that the handler has used, and its values for the next run.
    pub(super) fn update(&mut self, used: Option<&BTreeSet<String>>, once: BTreeMap<String, Value>) {
        self.once.extend(once);
        if let Some(used) = used {
            self.responses.retain(|key, _| used.contains(key));
        }
    }
}

/// The [`ReplayState`] of a call, which its runs share. Nearly all calls run once and have none, which costs no allocation.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(from = "ReplayState")]
pub struct Replay(Option<Arc<ReplayState>>);

impl Replay {
    /// The state, to be changed for the next run.
    pub(super) fn make_mut(&mut self) -> &mut ReplayState {
        Arc::make_mut(self.0.get_or_insert_default())
    }
}

impl Deref for Replay {
    type Target = ReplayState;

    fn deref(&self) -> &ReplayState {
        static NOTHING: ReplayState = ReplayState { responses: BTreeMap::new(), once: BTreeMap::new() };
        self.0.as_deref().unwrap_or(&NOTHING)
    }
}

impl From<ReplayState> for Replay {
    fn from(state: ReplayState) -> Self {
        Self((state != ReplayState::default()).then(|| Arc::new(state)))
    }
}

impl Serialize for Replay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

/// A request to the client that belongs to no call.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionRequest {
    /// Whether the client is there.
    Ping,
    /// A request for input.
    Input(InputRequest),
}

/// What became of an input request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InputOutcome {
    /// The client's response, unread.
    Response(Value),
    /// The client responded with an error.
    Error(RpcError),
    /// The client did not respond in time.
    TimedOut,
}

/// Progress of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Grows from one notification to the next.
    pub progress: f64,
    /// Its final value, if that is known.
    pub total: Option<f64>,
    /// What the server is doing.
    pub message: Option<String>,
}

/// A log message for the client.
#[derive(Debug, Clone, PartialEq)]
pub struct LogMessage {
    /// The severity.
    pub level: LogLevel,
    /// The part of the server that logs.
    pub logger: Option<String>,
    /// What happened: any JSON.
    pub data: Value,
}

/// A change that clients can be notified of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// The content of one resource.
    Resource(String),
}
