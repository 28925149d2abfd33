//! What the process exits with.

use std::process::ExitCode;

use refmcp_client::RpcError;

/// Why the process ends; scripts tell these apart by their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitReason {
    /// It did what was asked.
    Done,
    /// The words were not understood, or do not fit what the server offers.
    Usage,
    /// Something else went wrong: a fault of this machine, or an error from the server.
    Failed,
    /// The server wants to know who is asking.
    Authorization,
    /// The server cannot be reached or started, or does not speak the protocol.
    Unreachable,
    /// The tool ran and said that it failed.
    ToolError,
    /// The process got SIGHUP.
    HungUp,
    /// The process got SIGINT: ctrl-c.
    Interrupted,
    /// The process got SIGTERM.
    Terminated,
}

impl ExitReason {
    /// The process's exit code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Usage | Self::Failed => 1,
            Self::Authorization => 3,
            Self::Unreachable => 4,
            Self::ToolError => 5,
            // As shells have it: 128 and the number of the signal.
            Self::HungUp => 129,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }

    /// The same in one word, for scripts.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Usage => "usage",
            Self::Failed => "failed",
            Self::Authorization => "authorization",
            Self::Unreachable => "unreachable",
            Self::ToolError => "tool_error",
            Self::HungUp => "hung_up",
            Self::Interrupted => "interrupted",
            Self::Terminated => "terminated",
        }
    }

    /// Why an error ends the process: as an [`ExitError`] among its causes says.
    pub(crate) fn of(fault: &anyhow::Error) -> Self {
        let mut reasons = fault.chain().filter_map(|cause| match cause.downcast_ref::<ExitError>() {
            Some(exit) => Some(exit.reason),
            None => cause.downcast_ref::<UsageError>().map(|_| Self::Usage),
        });
        reasons.next().unwrap_or(Self::Failed)
    }
}

impl From<ExitReason> for ExitCode {
    fn from(reason: ExitReason) -> Self {
        Self::from(reason.code())
    }
}

/// An error that says what to exit with.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ExitError {
    pub(crate) reason: ExitReason,
    pub(crate) message: String,
    /// The error that the server answered with.
    pub(crate) rpc: Option<Box<RpcError>>,
}

impl ExitError {
    /// An error with its reason.
    pub(crate) fn new(reason: ExitReason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), rpc: None }
    }

    /// The same error, which the server answered with.
    pub(crate) fn answered(mut self, rpc: Option<&RpcError>) -> Self {
        self.rpc = rpc.cloned().map(Box::new);
        self
    }
}

/// Words that cannot be understood, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(String);

impl UsageError {
    /// A sentence that says what is wrong with the words.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn the_reason_is_found_below_what_was_said_about_it() {
        let unreachable =
            Err::<(), _>(ExitError::new(ExitReason::Unreachable, "no answer")).context("listing");
        assert_eq!(ExitReason::of(&unreachable.unwrap_err()).code(), 4);
        let usage = Err::<(), _>(UsageError::new("no such key")).context("calling");
        assert_eq!(ExitReason::of(&usage.unwrap_err()), ExitReason::Usage);
        assert_eq!(ExitReason::of(&anyhow::anyhow!("disk full")).code(), 1);
    }
}
