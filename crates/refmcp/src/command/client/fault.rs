//! What went wrong, and what the process exits with for it.

use anyhow::Error as Fault;
use refmcp_auth::Scopes;
use refmcp_auth::challenge::Challenge;
use refmcp_client::wire::WireError;
use refmcp_client::{CallError, ConnectError, Error, OpenError};

use super::server_stderr::LastLines;
use crate::args::{Exit, ExitReason};
use crate::ui::text::one_line;

/// There is no connection.
pub(crate) fn of_connecting(fault: &ConnectError, last_lines: &LastLines) -> Fault {
    let reason = match fault.why() {
        _ if fault.needs_authorization() => ExitReason::Authorization,
        OpenError::Wire(_) | OpenError::TimedOut { .. } => ExitReason::Unreachable,
        _ => ExitReason::Failed,
    };
    let wanted = match fault.why() {
        OpenError::Wire(why) => wanted(why),
        _ => String::new(),
    };
    let what = last_lines.added_to(&format!("{fault}{wanted}"));
    Exit::new(reason, one_line(&what)).into()
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
    let more = match fault {
        Error::Call(CallError::Wire(why) | CallError::NotOpen(OpenError::Wire(why))) => wanted(why),
        _ => {
            let data = fault.rpc().and_then(|error| error.data.as_ref());
            data.map(|data| format!(" {data}")).unwrap_or_default()
        }
    };
    Exit::new(reason, one_line(&format!("{fault}{more}"))).answered(fault.rpc()).into()
}

/// The scopes that a server wants which said that a token is not enough.
fn wanted(why: &WireError) -> String {
    let WireError::Unauthorized { challenge: Some(challenge), .. } = why else { return String::new() };
    let challenges = Challenge::parse_all(challenge);
    let mut about_scopes = challenges.iter().filter(|one| one.get("error") == Some("insufficient_scope"));
    let named = about_scopes.find_map(|one| one.get("scope"));
    match Scopes::parse_leniently(named.unwrap_or_default()) {
        scopes if scopes.is_empty() => String::new(),
        scopes => format!(": it wants a token for {scopes}"),
    }
}

/// Somebody pressed ctrl-c, or wants the process to end.
pub(crate) fn interrupted() -> Fault {
    Exit::new(ExitReason::Failed, "interrupted").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_is_not_enough_says_for_what_it_should_be() {
        let unauthorized = |challenge: &str| {
            let challenge = Some(challenge.to_owned());
            CallError::Wire(WireError::Unauthorized { status: 403, challenge })
        };
        let said = |challenge: &str| of_request(&unauthorized(challenge).into()).to_string();
        let fault = said("Basic, Bearer error=\"insufficient_scope\", scope=\"a b\"");
        assert_eq!(fault, "the server wants authorization (status 403): it wants a token for a b");
        for other in ["Bearer scope=\"a\"", "Bearer error=\"insufficient_scope\"", "Bearer", ""] {
            assert_eq!(said(other), "the server wants authorization (status 403)", "{other}");
        }
    }
}
