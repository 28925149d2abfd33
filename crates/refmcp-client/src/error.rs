//! What can go wrong, and who is to blame.

use refmcp_proto::engine::client::{CallError, OpenError};
use refmcp_proto::jsonrpc::RpcError;

/// Why there is no connection to a server.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The server cannot be reached, or no conversation can be opened with it.
    #[error("{server}: {why}")]
    Failed {
        /// Where the server is.
        server: String,
        /// What went wrong.
        why: OpenError,
    },
    /// Neither the transport that the server should speak nor the older one led anywhere.
    #[error("{server}: {why}; and by the older transport: {older}")]
    BothFailed {
        /// Where the server is.
        server: String,
        /// What went wrong first.
        why: OpenError,
        /// What went wrong then.
        older: OpenError,
    },
}

impl ConnectError {
    /// What went wrong, at the first attempt where there were two.
    pub fn why(&self) -> &OpenError {
        match self {
            Self::Failed { why, .. } | Self::BothFailed { why, .. } => why,
        }
    }

    /// Whether the server wants authorization.
    pub fn needs_authorization(&self) -> bool {
        matches!(self.why(), OpenError::Transport(why) if why.needs_authorization())
    }
}

/// Why a request brought no result.
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
    /// The server's structured output does not keep to the schema that the server itself gave.
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
    /// Our own caller gave something that cannot be sent.
    #[error("this cannot be sent: {0}")]
    Misuse(String),
}

impl Error {
    /// The error that the server answered with, if that is what happened.
    pub fn rpc(&self) -> Option<&RpcError> {
        match self {
            Self::Call(CallError::Rpc(error)) => Some(error),
            _ => None,
        }
    }

    /// Whether the server wants authorization.
    pub fn needs_authorization(&self) -> bool {
        let (Self::Call(CallError::Transport(why))
        | Self::Call(CallError::NotOpen(OpenError::Transport(why)))) = self
        else {
            return false;
        };
        why.needs_authorization()
    }
}
