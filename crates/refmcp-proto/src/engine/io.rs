//! What goes into an engine and what comes out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::finding::Finding;
use crate::jsonrpc::{ProgressToken, RequestId, RpcError};
use crate::model::{ClientCapabilities, InputRequest, LogLevel, ServerResult};
use crate::peer::Peer;
use crate::revision::Method;
use crate::time::Timestamp;

/// The engine's own number for a call. A client's id is never enough to find one: clients repeat them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// Where a message came from and its answer goes: the one pipe, or one of many HTTP exchanges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Channel(pub u64);

/// Something for the driver to do.
#[derive(Debug)]
pub enum Output {
    /// Write a message.
    Send(Sending),
    /// Run a handler, and report with [`ServerEngine::finish`](super::ServerEngine::finish).
    Run(Box<Dispatch>),
    /// Stop the work on a call; nobody wants its outcome any more.
    Cancel(CallId),
    /// Nothing more is going to be said on this channel, though not every request on it was answered: nobody wants to
    /// know any more.
    Silent(Channel),
    /// The client's roots are no longer what they were.
    RootsChanged,
    /// The peer broke a rule that it had not broken before.
    Note(Finding),
    /// End the conversation.
    Close(CloseReason),
}

/// A message on its way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sending {
    /// Whom it is for.
    pub to: To,
    /// What it is.
    pub kind: Kind,
    /// The message: JSON without line breaks.
    pub json: Vec<u8>,
}

/// Whom a message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// The exchange that a request came in by.
    Channel(Channel),
    /// The session, wherever it listens.
    Session,
}

/// What kind of message leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The last message for a request; with its code when it is an error.
    Answer {
        /// The code of the error, if it is one.
        error: Option<i64>,
    },
    /// A notification.
    Notification,
    /// A request to the client.
    Request,
}

/// Why the engine wants to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// The peer did not answer a ping in time.
    Stale,
}

/// A call for a handler.
#[derive(Debug, Clone)]
pub struct Dispatch {
    /// The number to report back with.
    pub call: CallId,
    /// The client's own name for the request, for people who read logs.
    pub id: RequestId,
    /// What is asked for.
    pub method: Method,
    /// The parameters: the JSON text of an object.
    pub params: Arc<str>,
    /// The text of the parameters' `_meta`, if there is one.
    pub meta: Option<Arc<str>>,
    /// Who asks.
    pub peer: Arc<Peer>,
    /// Where the request came in.
    pub channel: Channel,
    /// What progress notifications refer to, if the client wants any.
    pub progress_token: Option<ProgressToken>,
    /// From which level on the client wants log messages for this call, when it said so with the request.
    pub log_level: Option<LogLevel>,
    /// What earlier rounds of this call brought.
    pub answers: Arc<Answers>,
    /// How often the handler has run before for this call.
    pub round: u32,
    /// The state that the client sent back, if it did.
    pub state: Option<StateUse>,
}

/// A sealed state that came back: enough to see that it comes back only once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateUse {
    /// The sealed text; no two are alike.
    pub sealed: Box<str>,
    /// Until when it is good for anything.
    pub expires: Timestamp,
}

/// What a handler ended with.
#[derive(Debug)]
pub enum Outcome {
    /// A result in the newest shape.
    Done(Box<ServerResult>),
    /// No result.
    Failed(Failure),
    /// It cannot go on without answers from the client.
    NeedsInput {
        /// What it asks, each under its own key.
        questions: Vec<Question>,
        /// The keys of those questions whose answers it has used; the other answers are of no use to anybody. `None`
        /// keeps all there are.
        answered: Option<BTreeSet<String>>,
        /// Values of costly steps, kept for the next run.
        once: BTreeMap<String, Value>,
    },
}

/// A question of a handler.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// What the handler calls it; the same in every run.
    pub key: String,
    /// What is asked.
    pub request: InputRequest,
}

/// Why there is no result, in terms that each revision puts into words of its own.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Failure {
    /// An error that is the same in every revision.
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// There is no such resource.
    #[error("resource not found: {uri}")]
    ResourceNotFound {
        /// The one asked for.
        uri: String,
    },
    /// The arguments of a tool do not fit its schema.
    #[error("{0}")]
    BadArguments(String),
    /// The client cannot be asked what must be asked.
    #[error("the client does not support {what}")]
    MissingCapability {
        /// What it would have to declare.
        needs: Box<ClientCapabilities>,
        /// The same in words.
        what: String,
    },
}

/// What earlier rounds of a call brought.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Answers {
    /// Answers by the keys of their questions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub given: BTreeMap<String, Answer>,
    /// Values of steps that need not be repeated.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub once: BTreeMap<String, Value>,
}

/// What became of a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// The client's answer, unread.
    Given(Value),
    /// The client answered with an error.
    Refused(RpcError),
    /// The client did not answer in time.
    TimedOut,
}

/// How far a call has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Grows from one to the next.
    pub progress: f64,
    /// What it grows to, if that is known.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<String>,
}

/// A log message for the client.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// How bad it is.
    pub level: LogLevel,
    /// Which part of the server speaks.
    pub logger: Option<String>,
    /// What happened: any JSON.
    pub data: Value,
}

/// Something that clients may want to know of.
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
