//! Errors of handlers and of server requests.

use std::error::Error;
use std::fmt;

use refmcp_proto::engine::{CallFailure, HandlerOutcome};
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::model::CallToolResult;
use refmcp_proto::revision::{InputMode, Method, Rules};

/// Why a server request has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ServerRequestError {
    /// The client has not answered yet. Pass this on with `?`: the handler runs again with the result.
    #[error("the question has not been answered yet")]
    Pending,
    /// The client does not support the request.
    #[error(transparent)]
    Unsupported(CallFailure),
    /// The client answered with an error.
    #[error("the client refused: {0}")]
    Refused(RpcError),
    /// The client did not answer in time.
    #[error("the client did not answer in time")]
    TimedOut,
    /// The session ended before the client answered.
    #[error("the session has ended")]
    Closed,
    /// The result does not fit the request.
    #[error("the answer to \"{key}\" does not fit: {why}")]
    InvalidResult {
        /// The request's key.
        key: String,
        /// What does not fit.
        why: String,
    },
    /// The handler used one key for two different requests.
    #[error("two different questions were asked as \"{0}\"")]
    Conflict(String),
}

/// Why a handler gives no result; every [`Error`] becomes one with `?`.
///
/// For a tool, a message becomes a result that says `isError`, so that the model on the other side can react; for
/// resources and prompts it becomes a JSON-RPC error. A [`RpcError`] stays what it is. Messages reach the client:
/// they should say what it can do about it, and nothing about the inside of the server.
pub struct CallError(ErrorKind);

enum ErrorKind {
    Message(String),
    Failure(CallFailure),
    Ask(ServerRequestError),
    StartTask,
}

impl CallError {
    /// A failure to tell the client about.
    #[cold]
    pub fn new(message: impl Into<String>) -> Self {
        Self(ErrorKind::Message(message.into()))
    }

    /// The resource does not exist.
    #[cold]
    pub fn resource_not_found(uri: impl Into<String>) -> Self {
        Self(ErrorKind::Failure(CallFailure::ResourceNotFound { uri: uri.into() }))
    }

    /// The arguments do not fit, in a way that the schema could not say.
    #[cold]
    pub fn bad_arguments(message: impl Into<String>) -> Self {
        Self(ErrorKind::Failure(CallFailure::BadArguments(message.into())))
    }

    /// Whether the handler ends only because the client has not answered yet.
    pub(crate) fn is_pending(&self) -> bool {
        matches!(self.0, ErrorKind::Ask(ServerRequestError::Pending))
    }

    /// Ends a run of a handler whose call becomes a task here.
    pub(crate) fn start_task() -> Self {
        Self(ErrorKind::StartTask)
    }

    /// Whether the handler ends only because its call becomes a task.
    pub(crate) fn starts_task(&self) -> bool {
        matches!(self.0, ErrorKind::StartTask)
    }

    /// What the client is told.
    pub(crate) fn into_outcome(self, method: &Method, rules: &Rules) -> HandlerOutcome {
        match self.0 {
            ErrorKind::Failure(failure) | ErrorKind::Ask(ServerRequestError::Unsupported(failure)) => {
                HandlerOutcome::Failed(failure)
            }
            ErrorKind::Ask(error @ ServerRequestError::InvalidResult { .. })
                if rules.input_mode == InputMode::InputRequired =>
            {
                HandlerOutcome::Failed(RpcError::invalid_params(error.to_string()).into())
            }
            ErrorKind::Ask(error @ ServerRequestError::Conflict(_)) => {
                HandlerOutcome::Failed(RpcError::internal(error.to_string()).into())
            }
            ErrorKind::Ask(error) => Self::message_outcome(error.to_string(), method),
            ErrorKind::Message(message) => Self::message_outcome(message, method),
            // The error was kept from the server, or comes from no tool.
            ErrorKind::StartTask => {
                HandlerOutcome::Failed(RpcError::internal("no task can start here").into())
            }
        }
    }

    /// A tool result with `isError`, or the internal error of any other method.
    fn message_outcome(message: String, method: &Method) -> HandlerOutcome {
        if *method == Method::CallTool {
            HandlerOutcome::Done(Box::new(CallToolResult::error(message).into()))
        } else {
            HandlerOutcome::Failed(RpcError::internal(message).into())
        }
    }
}

impl fmt::Debug for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallError({self})")
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ErrorKind::Message(message) => f.write_str(message),
            ErrorKind::Failure(failure) => failure.fmt(f),
            ErrorKind::Ask(error) => error.fmt(f),
            ErrorKind::StartTask => f.write_str("the call becomes a task"),
        }
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for CallError {
    fn from(error: E) -> Self {
        let error: Box<dyn Error + Send + Sync> = Box::new(error);
        let error = match error.downcast::<ServerRequestError>() {
            Ok(ask) => return Self(ErrorKind::Ask(*ask)),
            Err(other) => other,
        };
        let error = match error.downcast::<RpcError>() {
            Ok(rpc) => return Self(ErrorKind::Failure(CallFailure::Rpc(*rpc))),
            Err(other) => other,
        };
        match error.downcast::<CallFailure>() {
            Ok(failure) => Self(ErrorKind::Failure(*failure)),
            Err(other) => Self(ErrorKind::Message(other.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use refmcp_proto::model::ServerResult;
    use refmcp_proto::revision::Revision;

    use super::*;

    fn outcome(error: CallError, method: &Method) -> HandlerOutcome {
        error.into_outcome(method, Revision::LATEST.rules())
    }

    #[test]
    fn a_tool_tells_the_model_and_others_the_client() {
        let failed = || CallError::from(std::io::Error::other("no disk"));
        let HandlerOutcome::Done(result) = outcome(failed(), &Method::CallTool) else { panic!("no result") };
        assert!(matches!(*result, ServerResult::CallTool(CallToolResult { is_error: Some(true), .. })));
        assert!(matches!(outcome(failed(), &Method::GetPrompt), HandlerOutcome::Failed(CallFailure::Rpc(_))));
    }

    #[test]
    fn protocol_errors_stay_what_they_are() {
        let error = CallError::from(RpcError::invalid_params("no"));
        let HandlerOutcome::Failed(CallFailure::Rpc(error)) = outcome(error, &Method::CallTool) else {
            panic!("changed")
        };
        assert_eq!(error.code, -32602);
        assert!(CallError::from(ServerRequestError::Pending).is_pending());
    }
}
