//! What goes into a client engine and what comes out.

use std::sync::Arc;

use super::server_facts::ServerFacts;
use crate::engine::CallId;
use crate::finding::Finding;
use crate::jsonrpc::RpcError;
use crate::model::{InputRequest, InputRequiredResult, ServerNotification};
use crate::revision::Rules;

/// One message of ours on its way, and whatever comes back for it. A call may take several, one for each round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Exchange(pub u64);

/// A question of the server that the host has to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuestionId(pub u64);

/// Something for the driver of a client to do.
#[derive(Debug)]
pub enum ClientOutput {
    /// Write a message.
    Send(Outgoing),
    /// Nobody wants what may still come for this exchange: where it has a connection of its own, end that.
    Abandon(Exchange),
    /// The conversation is open; calls are on their way.
    Opened(Arc<ServerFacts>),
    /// The conversation cannot be opened, or has come to its end.
    Closed(OpenError),
    /// A call has ended.
    Done(CallId, Result<Answered, CallError>),
    /// The server asks something; report with [`ClientEngine::answer`](super::ClientEngine::answer).
    Ask(Ask),
    /// The answer to a question is no longer wanted.
    Withdrawn(QuestionId),
    /// The server told something; with the call that it belongs to, where it does.
    Heard(Option<CallId>, Box<ServerNotification>),
    /// The server broke a rule that it had not broken before.
    Note(Finding),
    /// Something came that is no message, or an answer to nothing, or a request for what was not offered; what it was, for
    /// a person.
    Ignored(String),
}

/// A message on its way out.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// Its number; no two messages have the same.
    pub exchange: Exchange,
    /// What it is.
    pub kind: OutgoingKind,
    /// The message: JSON without line breaks.
    pub json: Vec<u8>,
    /// What holds in the revision that is spoken; nothing while that is not agreed.
    pub rules: Option<&'static Rules>,
}

/// What kind of message leaves, and what headers say of it where there are headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutgoingKind {
    /// A request: an answer comes back.
    Request {
        /// What is asked for.
        method: Arc<str>,
        /// The name of the tool or prompt, or the address of the resource.
        name: Option<Arc<str>>,
        /// Arguments that headers repeat: the name of the header without its prefix, and the value.
        mirrored: Vec<(String, String)>,
    },
    /// A notification.
    Notification {
        /// What it tells.
        method: Arc<str>,
    },
    /// The answer to a question of the server.
    Answer,
}

/// A question of the server.
#[derive(Debug)]
pub struct Ask {
    /// The number to answer with.
    pub question: QuestionId,
    /// The call it belongs to, where that is known.
    pub call: Option<CallId>,
    /// What is asked.
    pub request: InputRequest,
}

/// What a call ended with.
#[derive(Debug)]
pub enum Answered {
    /// The text of the result, an object, unread.
    Result(Box<str>),
    /// The server needs something first, and whoever called wants to bring it by hand.
    InputRequired(Box<InputRequiredResult>),
}

/// Why a call has no result; says who is to blame.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The server answered with an error.
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// No answer came in time; the server was told that none is wanted any more.
    #[error("no answer within {}", Spell(*.after_millis))]
    TimedOut {
        /// How long it was waited for.
        after_millis: u64,
    },
    /// Whoever called wanted the answer no more.
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
    /// The host did not bring what the server needed.
    #[error("what the server asked for was refused: {0}")]
    Refused(RpcError),
    /// The revision that is spoken has no such request.
    #[error("{method} does not exist in revision {revision}")]
    NotInRevision {
        /// What was asked for.
        method: String,
        /// What is spoken.
        revision: &'static str,
    },
    /// The way to the server failed; whether the call was carried out is unknown.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// There is no conversation.
    #[error("the conversation is not open: {0}")]
    NotOpen(#[from] OpenError),
}

/// What went wrong on the way to the server.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// Nobody answers there.
    #[error("cannot reach the server: {0}")]
    Unreachable(String),
    /// The connection ended before the answer came.
    #[error("the connection ended before the answer came: {0}")]
    Broken(String),
    /// The server refused, by a status of HTTP.
    #[error("the server refused with status {status}{}", .error.as_ref().map_or_else(|| body_of(.body), |error| format!(": {error}")))]
    Refused {
        /// The status.
        status: u16,
        /// The error of the protocol that came with it.
        error: Option<RpcError>,
        /// The beginning of what came with it otherwise.
        body: String,
    },
    /// The server wants to know who asks.
    #[error("the server wants authorization (status {status})")]
    Unauthorized {
        /// 401 or 403.
        status: u16,
        /// What the server says about how to get it.
        challenge: Option<String>,
    },
    /// The server wants to know who asks, and getting what proves it has failed.
    #[error("not authorized: {why}")]
    NotAuthorized {
        /// At which step, and who is to blame.
        why: String,
    },
    /// The server no longer knows the session; calls in flight may or may not have been carried out.
    #[error("the server no longer knows the session")]
    SessionLost,
    /// The server does not keep to what its transport demands.
    #[error("the server broke the rules of its transport: {0}")]
    Misbehaved(String),
    /// We have closed it.
    #[error("the connection is closed")]
    Closed,
}

impl WireError {
    /// Whether the server wants to know who asks.
    pub fn needs_authorization(&self) -> bool {
        matches!(self, Self::Unauthorized { .. } | Self::NotAuthorized { .. })
    }
}

/// Why there is no conversation.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The two sides have no revision in common.
    #[error("no common revision: we speak {}, the server {}", .ours.join(", "), spoken(.theirs))]
    NoCommonRevision {
        /// What we were willing to speak.
        ours: Vec<&'static str>,
        /// What the server said it speaks.
        theirs: Vec<String>,
    },
    /// The server answered the opening with an error.
    #[error("the server refuses to open a session: {0}")]
    Refused(RpcError),
    /// The server's opening makes no sense.
    #[error("the server broke the protocol: {0}")]
    Protocol(String),
    /// Nothing came in time.
    #[error("the server did not answer within {}", Spell(*.after_millis))]
    TimedOut {
        /// How long it was waited for.
        after_millis: u64,
    },
    /// The way to the server failed.
    #[error(transparent)]
    Wire(#[from] WireError),
}

fn body_of(body: &str) -> String {
    if body.is_empty() { String::new() } else { format!(": {body}") }
}

fn spoken(theirs: &[String]) -> String {
    if theirs.is_empty() { "none that it names".to_owned() } else { theirs.join(", ") }
}

/// A duration for people.
struct Spell(u64);

impl std::fmt::Display for Spell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            millis if millis < 1000 => write!(f, "{millis} ms"),
            // Timers ring a little late; nobody cares for that millisecond.
            millis if millis % 1000 < 100 => write!(f, "{} s", millis / 1000),
            millis => write!(f, "{}.{} s", millis / 1000, millis % 1000 / 100),
        }
    }
}
