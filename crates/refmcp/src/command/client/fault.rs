//! What went wrong, and what the process exits with for it.

use anyhow::Error as Fault;
use refmcp_client::{CallError, ConnectError, Error, OpenError};

use crate::args::{Exit, ExitReason};
use crate::ui::text::one_line;

/// There is no connection.
pub(crate) fn of_connecting(fault: &ConnectError) -> Fault {
    let reason = match fault.why() {
        _ if fault.needs_authorization() => ExitReason::Authorization,
        OpenError::Wire(_) | OpenError::TimedOut { .. } => ExitReason::Unreachable,
        _ => ExitReason::Failed,
    };
    Exit::new(reason, one_line(&fault.to_string())).into()
}

/// A request brought no result.
pub(crate) fn of_request(fault: &Error) -> Fault {
    let reason = match fault {
        _ if fault.needs_authorization() => ExitReason::Authorization,
        Error::Call(CallError::Wire(_) | CallError::NotOpen(_) | CallError::TimedOut { .. }) => {
            ExitReason::Unreachable
        }
        _ => ExitReason::Failed,
    };
    let data = fault.rpc().and_then(|error| error.data.as_ref()).map(|data| format!(" {data}"));
    Exit::new(reason, one_line(&format!("{fault}{}", data.unwrap_or_default()))).into()
}

/// Somebody pressed ctrl-c, or wants the process to end.
pub(crate) fn interrupted() -> Fault {
    Exit::new(ExitReason::Failed, "interrupted").into()
}
