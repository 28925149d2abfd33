//! Exit codes, and the errors that decide them.

use std::process::ExitCode;

use refmcp_client::RpcError;

/// Why the process ends; scripts tell these apart by their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitReason {
    /// It did what was asked.
    Done,
    /// The arguments were not understood, or do not fit what the server offers.
    Usage,
    /// Something else went wrong: an error of this machine, or of the server.
    Failed,
    /// The server needs authorization.
    Authorization,
    /// The server cannot be reached or started, or does not speak the protocol.
    Unreachable,
    /// The tool ran and said that it failed.
    ToolError,
    /// A rule that the specification demands was broken.
    RulesBroken,
    /// What came back is not what the recording has.
    Different,
    /// There was nothing to judge.
    NothingJudged,
    /// A relay ends with the exit code of its server.
    Server(u8),
    /// The process got SIGHUP.
    HungUp,
    /// The process got SIGINT: ctrl-c.
    Interrupted,
    /// The process got SIGTERM.
    Terminated,
}

impl ExitReason {
    /// The exit code, and its name for scripts.
    fn code_and_name(self) -> (u8, &'static str) {
        match self {
            Self::Done => (0, "done"),
            Self::Usage => (1, "usage"),
            Self::Failed => (1, "failed"),
            Self::Authorization => (3, "authorization"),
            Self::Unreachable => (4, "unreachable"),
            Self::ToolError => (5, "tool_error"),
            Self::RulesBroken => (6, "rules_broken"),
            Self::Different => (6, "different"),
            Self::NothingJudged => (7, "nothing_judged"),
            Self::Server(code) => (code, "server"),
            // As in shells: 128 and the number of the signal.
            Self::HungUp => (129, "hung_up"),
            Self::Interrupted => (130, "interrupted"),
            Self::Terminated => (143, "terminated"),
        }
    }

    pub(crate) fn code(self) -> u8 {
        self.code_and_name().0
    }

    pub(crate) fn as_str(self) -> &'static str {
        self.code_and_name().1
    }

    /// The reason that an [`ExitError`] among the causes of an error gives.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        let mut reasons = error.chain().filter_map(|cause| match cause.downcast_ref::<ExitError>() {
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
    pub(crate) fn new(reason: ExitReason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), rpc: None }
    }

    /// The same error, with the one that the server answered with.
    pub(crate) fn answered(mut self, rpc: Option<&RpcError>) -> Self {
        self.rpc = rpc.cloned().map(Box::new);
        self
    }
}

/// Arguments that cannot be understood, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(String);

impl UsageError {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

/// A [`UsageError`] whose text is formatted.
macro_rules! usage {
    ($($text:tt)*) => {
        $crate::args::UsageError::new(format!($($text)*))
    };
}
pub(crate) use usage;

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn the_reason_is_found_below_the_context() {
        let unreachable =
            Err::<(), _>(ExitError::new(ExitReason::Unreachable, "no answer")).context("listing");
        assert_eq!(ExitReason::of(&unreachable.unwrap_err()).code(), 4);
        let usage = Err::<(), _>(UsageError::new("no such key")).context("calling");
        assert_eq!(ExitReason::of(&usage.unwrap_err()), ExitReason::Usage);
        assert_eq!(ExitReason::of(&anyhow::anyhow!("disk full")).code(), 1);
    }
}
