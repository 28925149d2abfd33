//! Inputs, outputs and errors of a client engine.

use std::sync::Arc;

use crate::engine::{CallId, ExchangeId};
use crate::finding::Finding;
use crate::jsonrpc::{RpcError, excerpt};
use crate::model::{
    Implementation, InputRequest, InputRequiredResult, ServerCapabilities, ServerNotification, Task,
};
use crate::revision::{Revision, Rules, Tasks};

/// A request of the server, or one of the input requests of its result, that the host has to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerRequestId(pub u64);

/// Something for the driver of a client to do.
#[derive(Debug)]
pub enum ClientOutput {
    /// Write a message.
    Send(ClientMessage),
    /// What may still come for this exchange is not used: where it has a connection of its own, close that.
    Abandon(ExchangeId),
    /// The connection is open, and calls that waited for it are sent.
    Opened(Arc<ServerFacts>),
    /// The connection cannot be opened, or has ended.
    Closed(OpenError),
    /// A call has ended.
    Done(CallId, Result<CallResult, CallError>),
    /// The server needs input; report with [`ClientEngine::respond`](super::ClientEngine::respond).
    Request(ServerRequest),
    /// The server no longer needs the response to a request.
    RequestCancelled(ServerRequestId),
    /// The task that a call has become, or that is followed, has another status or message.
    Task(CallId, Box<Task>),
    /// A notification, with the call that it belongs to, if any.
    Notification(Option<CallId>, Box<ServerNotification>),
    /// The server broke a rule that it had not broken before.
    Finding(Finding),
    /// Something was ignored: input that is no message, a response to no request, a request for what was not offered.
    /// The text is for people.
    Ignored(String),
}

impl From<Finding> for ClientOutput {
    fn from(finding: Finding) -> Self {
        Self::Finding(finding)
    }
}

/// A message of the client.
#[derive(Debug, Clone)]
pub struct ClientMessage {
    /// Its number; each message has its own.
    pub exchange: ExchangeId,
    /// What it is.
    pub kind: ClientMessageKind,
    /// The message: JSON without line breaks.
    pub json: Vec<u8>,
    /// The rules of the negotiated revision; none before that.
    pub rules: Option<&'static Rules>,
}

/// What a message of the client is, and what its HTTP headers repeat of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientMessageKind {
    /// A request.
    Request {
        /// The method.
        method: Arc<str>,
        /// The name of the tool or prompt, or the URI of the resource.
        name: Option<Arc<str>>,
        /// Parameters mirrored in `Mcp-Param-*` headers: the name without the prefix, and the value.
        param_headers: Vec<(String, String)>,
    },
    /// A notification.
    Notification {
        /// The method.
        method: Arc<str>,
    },
    /// The response to a request of the server.
    Response,
}

/// Input that the server needs: by a request of its own, or by a result that requires input.
#[derive(Debug)]
pub struct ServerRequest {
    /// The number to respond with.
    pub id: ServerRequestId,
    /// The call it belongs to, where that is known.
    pub call: Option<CallId>,
    /// The request.
    pub request: InputRequest,
}

/// What a call ended with.
#[derive(Debug)]
pub enum CallResult {
    /// The text of the result, an object, unread.
    Complete(Box<str>),
    /// The server requires input, and [`InputHandling::Manual`](super::InputHandling::Manual) leaves it to the caller.
    InputRequired(Box<InputRequiredResult>),
    /// The server has made the call a task, and [`TaskHandling`](super::TaskHandling) leaves it to the caller; with the text
    /// of the result.
    Task(Box<Task>, Box<str>),
}

/// The server of an open connection.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerFacts {
    /// The negotiated revision.
    pub revision: Revision,
    /// Its name and version; never a reason to trust it.
    pub info: Option<Implementation>,
    /// What it offers.
    pub capabilities: ServerCapabilities,
    /// How to use the server, for the model.
    pub instructions: Option<String>,
    /// The revisions that it names; only the negotiated one where a session was opened.
    pub versions: Vec<String>,
    /// The result of `server/discover` or `initialize`, as the server wrote it.
    pub result: Box<str>,
}

impl ServerFacts {
    /// The rules of the negotiated revision.
    pub fn rules(&self) -> &'static Rules {
        self.revision.rules()
    }

    /// Whether calls of tools become tasks where the client asks for it (2025-11-25).
    pub fn makes_tasks(&self) -> bool {
        let tasks = self.capabilities.tasks.as_ref().and_then(|tasks| tasks.requests.as_ref());
        let tools = tasks.and_then(|requests| requests.tools.as_ref());
        self.rules().tasks == Tasks::Experimental && tools.is_some_and(|tools| tools.call.is_some())
    }
}

/// Why a call has no result, and by which side's fault.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The server responded with an error.
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// No response came in time; the request was cancelled.
    #[error("no answer within {}", HumanMillis(*.after_millis))]
    TimedOut {
        /// How long it was waited for.
        after_millis: u64,
    },
    /// The caller cancelled it.
    #[error("cancelled")]
    Cancelled,
    /// The server broke the protocol.
    #[error("the server broke the protocol: {0}")]
    Protocol(String),
    /// The server needed more rounds of input than are allowed.
    #[error("the server asked for input {rounds} times without coming to an end")]
    TooManyRounds {
        /// How many there were.
        rounds: u32,
    },
    /// The host refused the input that the server required.
    #[error("what the server asked for was refused: {0}")]
    Refused(RpcError),
    /// The server does not know a task, or does not keep it any longer.
    #[error("the server knows no task {} (any more): {error}", excerpt(.task))]
    UnknownTask {
        /// Its id.
        task: String,
        /// What the server said.
        error: RpcError,
    },
    /// A task did not end as long as the server keeps it.
    #[error("the task {} did not end in the time for which the server keeps it", excerpt(.task))]
    TaskExpired {
        /// Its id.
        task: String,
    },
    /// A task was cancelled, and has no result.
    #[error("the task was cancelled{}", .message.as_deref().map_or_else(String::new, |why| format!(": {}", excerpt(why))))]
    TaskCancelled {
        /// What the server says of it.
        message: Option<String>,
    },
    /// The negotiated revision has no such method.
    #[error("{method} does not exist in revision {revision}")]
    NotInRevision {
        /// The method.
        method: String,
        /// The negotiated revision.
        revision: &'static str,
    },
    /// The transport failed; whether the call was carried out is unknown.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The connection is not open.
    #[error("the conversation is not open: {0}")]
    NotOpen(#[from] OpenError),
}

/// An error of the transport.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// No connection could be made.
    #[error("cannot reach the server: {0}")]
    Unreachable(String),
    /// The connection ended before the response came.
    #[error("the connection ended before the answer came: {0}")]
    Broken(String),
    /// The server refused with an HTTP status.
    #[error("the server refused with status {status}{}{}",
        .error.as_ref().map_or_else(|| body_of(.body), |error| format!(": {error}")), retry_of(.retry_after.as_deref()))]
    Refused {
        /// The status.
        status: u16,
        /// The JSON-RPC error that came with it.
        error: Option<RpcError>,
        /// The beginning of any other body.
        body: String,
        /// When the server can be asked again, from `Retry-After`: a number of seconds, or a date.
        retry_after: Option<Box<str>>,
    },
    /// The server requires authorization.
    #[error("the server wants authorization (status {status})")]
    Unauthorized {
        /// 401 or 403.
        status: u16,
        /// The challenge, from `WWW-Authenticate`.
        challenge: Option<String>,
        /// The reason that the body tells, in short; the challenge may have a better one.
        reason: Option<Box<str>>,
    },
    /// The server requires authorization, and getting a token has failed.
    #[error("not authorized: {why}")]
    NotAuthorized {
        /// At which step, and by which side's fault.
        why: String,
    },
    /// The server no longer knows the session (over HTTP: 404); calls in flight may or may not have been carried out.
    #[error("the server no longer knows the session")]
    SessionLost,
    /// The server broke the rules of its transport.
    #[error("the server broke the rules of its transport: {0}")]
    Misbehaved(String),
    /// This side has closed it.
    #[error("the connection is closed")]
    Closed,
}

impl TransportError {
    /// Whether the server requires authorization.
    pub fn needs_authorization(&self) -> bool {
        matches!(self, Self::Unauthorized { .. } | Self::NotAuthorized { .. })
    }
}

/// Why a connection is not open.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The two sides have no revision in common.
    #[error("no common revision: we speak {}, the server {}", .ours.join(", "), spoken(.theirs))]
    NoCommonRevision {
        /// The revisions that this client allows.
        ours: Vec<&'static str>,
        /// The revisions that the server names.
        theirs: Vec<String>,
    },
    /// The server responded to `initialize` or `server/discover` with an error.
    #[error("the server refuses to open a session: {0}")]
    Refused(RpcError),
    /// The server broke the protocol while opening.
    #[error("the server broke the protocol: {0}")]
    Protocol(String),
    /// Nothing came in time.
    #[error("the server did not answer within {}", HumanMillis(*.after_millis))]
    TimedOut {
        /// How long it was waited for.
        after_millis: u64,
    },
    /// The transport failed.
    #[error(transparent)]
    Transport(#[from] TransportError),
}

fn body_of(body: &str) -> String {
    if body.is_empty() { String::new() } else { format!(": {body}") }
}

/// When to try again: a number of seconds, or a date.
fn retry_of(retry_after: Option<&str>) -> String {
    retry_after.map_or_else(String::new, |when| match when.parse::<u64>() {
        Ok(seconds) => format!("; try again in {seconds} s"),
        Err(_) => format!("; try again after {when}"),
    })
}

fn spoken(theirs: &[String]) -> String {
    if theirs.is_empty() { "none that it names".to_owned() } else { theirs.join(", ") }
}

/// A duration for people.
struct HumanMillis(u64);

impl std::fmt::Display for HumanMillis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            millis if millis < 1000 => write!(f, "{millis} ms"),
            // Timers fire a little late; that millisecond is not shown.
            millis if millis % 1000 < 100 => write!(f, "{} s", millis / 1000),
            millis => write!(f, "{}.{} s", millis / 1000, millis % 1000 / 100),
        }
    }
}
