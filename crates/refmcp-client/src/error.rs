//! Errors of connecting and of requests.

use refmcp_proto::engine::client::{CallError, OpenError, TransportError};
use refmcp_proto::jsonrpc::RpcError;

/// Why a server is not connected.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The server cannot be reached, or the session cannot be opened.
    #[error("{server}: {why}")]
    Failed {
        /// The URL or command line of the server.
        server: String,
        /// What went wrong.
        why: OpenError,
    },
    /// Both the transport and its older fallback failed.
    #[error("{server}: {why}{}", by_older(why, older))]
    BothFailed {
        /// The URL or command line of the server.
        server: String,
        /// The first error.
        why: OpenError,
        /// The error of the fallback.
        older: OpenError,
    },
}

/// What the older transport failed with, where that is something else.
fn by_older(why: &OpenError, older: &OpenError) -> String {
    let (why, older) = (why.to_string(), older.to_string());
    if why == older { String::new() } else { format!("; and by the older transport: {older}") }
}

impl ConnectError {
    /// The error, of the first attempt if there were two.
    pub fn why(&self) -> &OpenError {
        match self {
            Self::Failed { why, .. } | Self::BothFailed { why, .. } => why,
        }
    }

    /// The JSON-RPC error with which the server refused to open the session.
    pub fn rpc(&self) -> Option<&RpcError> {
        match self.why() {
            OpenError::Refused(error) => Some(error),
            OpenError::Transport(TransportError::Refused { error, .. }) => error.as_ref(),
            _ => None,
        }
    }

    /// True if the server wants authorization.
    pub fn needs_authorization(&self) -> bool {
        matches!(self.why(), OpenError::Transport(why) if why.needs_authorization())
    }
}

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server answered with an error, or did not answer.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The server's result is not what the method promises.
    #[error("the server's result of {method} makes no sense: {why}")]
    Unreadable {
        /// What was asked for.
        method: String,
        /// What is wrong with the result.
        why: String,
    },
    /// The structured output does not match the tool's output schema.
    #[error("the output of {tool} does not fit the schema that the server gave for it: {why}")]
    Output {
        /// The tool.
        tool: String,
        /// What is wrong with its output.
        why: String,
    },
    /// The server's pages never end, or repeat.
    #[error("the server's list never ends: {0}")]
    EndlessList(String),
    /// The request cannot be sent: the caller's mistake.
    #[error("this cannot be sent: {0}")]
    Misuse(String),
}

impl Error {
    /// The JSON-RPC error that the server answered with.
    pub fn rpc(&self) -> Option<&RpcError> {
        match self {
            Self::Call(CallError::Rpc(error) | CallError::UnknownTask { error, .. }) => Some(error),
            Self::Call(CallError::Transport(TransportError::Refused { error, .. })) => error.as_ref(),
            _ => None,
        }
    }

    /// True if the server wants authorization.
    pub fn needs_authorization(&self) -> bool {
        let (Self::Call(CallError::Transport(why))
        | Self::Call(CallError::NotOpen(OpenError::Transport(why)))) = self
        else {
            return false;
        };
        why.needs_authorization()
    }
}
