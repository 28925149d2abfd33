//! What went wrong, and what the process exits with for it.

use anyhow::Error as AnyError;
use refmcp_auth::Scopes;
use refmcp_auth::challenge::Challenge;
use refmcp_client::model::ServerCapabilities;
use refmcp_client::transport::TransportError;
use refmcp_client::{CallError, ConnectError, Error, OpenError};
use refmcp_proto::jsonrpc::code;
use refmcp_proto::revision::Method;

use super::server_stderr::LastLines;
use crate::args::{ExitError, ExitReason};
use crate::signals::Signal;
use crate::ui::error::reworded;
use crate::ui::text::{multi_line, one_line};

/// There is no connection.
pub(crate) fn of_connecting(error: &ConnectError, last_lines: &LastLines) -> AnyError {
    let reason = match error.why() {
        _ if error.needs_authorization() => ExitReason::Authorization,
        // A server that knows no way to open a session speaks something else.
        OpenError::Refused(error) if error.code != code::METHOD_NOT_FOUND => ExitReason::Failed,
        _ => ExitReason::Unreachable,
    };
    let wanted = match error.why() {
        OpenError::Transport(why) => wanted(why),
        _ => String::new(),
    };
    let what = last_lines.added_to(&format!("{error}{wanted}"));
    let is_of_wire = matches!(error.why(), OpenError::Transport(_)) || !last_lines.is_empty();
    let message = if is_of_wire { multi_line(&what) } else { one_line(&what) };
    ExitError::new(reason, message).answered(error.rpc()).into()
}

/// A request brought no result.
pub(crate) fn of_request(error: &Error) -> AnyError {
    let reason = match error {
        _ if error.needs_authorization() => ExitReason::Authorization,
        Error::Call(
            CallError::Transport(_)
            | CallError::NotOpen(_)
            | CallError::TimedOut { .. }
            | CallError::Protocol(_)
            | CallError::TooManyRounds { .. },
        )
        | Error::Unreadable { .. }
        | Error::Output { .. }
        | Error::EndlessList(_) => ExitReason::Unreachable,
        _ => ExitReason::Failed,
    };
    let more = match error {
        Error::Call(CallError::Transport(why) | CallError::NotOpen(OpenError::Transport(why))) => {
            // What a program last wrote may be several lines.
            let what = format!("{error}{}", wanted(why));
            return ExitError::new(reason, multi_line(&what)).answered(error.rpc()).into();
        }
        _ => {
            let data = error.rpc().and_then(|error| error.data.as_ref());
            data.map(|data| format!(" {data}")).unwrap_or_default()
        }
    };
    ExitError::new(reason, one_line(&format!("{error}{more}"))).answered(error.rpc()).into()
}

/// A request of this method brought no result from a server that declares these capabilities: a server that does not
/// know what it never declared is said to declare it not.
pub(crate) fn of_method(method: &str, declared: &ServerCapabilities, error: &Error) -> AnyError {
    let said = of_request(error);
    let Some(error) = error.rpc() else { return said };
    let Some((capability, is_declared)) = capability(method, declared) else { return said };
    if !is_declared {
        return reworded(&said, format!("the server declares no {capability}: {said}"));
    }
    if error.code == code::METHOD_NOT_FOUND {
        return reworded(
            &said,
            format!("the server declares {capability}, but does not know {method}: {said}"),
        );
    }
    said
}

/// What a server has to declare before a method can be expected of it, and whether it does.
fn capability(method: &str, declared: &ServerCapabilities) -> Option<(&'static str, bool)> {
    let resources = declared.resources.as_ref();
    Some(match method.split_once('/')? {
        ("tools", _) => ("tools", declared.tools.is_some()),
        ("resources", "subscribe") => (
            "subscriptions to resources",
            resources.is_some_and(|resources| resources.subscribe == Some(true)),
        ),
        ("resources", _) => ("resources", resources.is_some()),
        ("prompts", _) => ("prompts", declared.prompts.is_some()),
        ("completion", _) => ("completions", declared.completions.is_some()),
        ("tasks", "list") => {
            ("list of tasks", declared.tasks.as_ref().is_some_and(|tasks| tasks.list.is_some()))
        }
        ("tasks", _) => ("tasks", Method::GetTask.is_offered(declared)),
        ("logging", _) => ("logging", declared.logging.is_some()),
        _ => return None,
    })
}

/// What a server says is wrong with a token, or the scopes that it wants where a token is not enough.
fn wanted(why: &TransportError) -> String {
    let TransportError::Unauthorized { challenge, reason, .. } = why else { return String::new() };
    let challenges = Challenge::parse_all(challenge.as_deref().unwrap_or_default());
    let named = |name| challenges.iter().find_map(|one| one.get(name));
    let mut about_scopes = challenges.iter().filter(|one| one.get("error") == Some("insufficient_scope"));
    let scopes = about_scopes.find_map(|one| one.get("scope")).unwrap_or_default();
    match Scopes::parse_leniently(scopes) {
        scopes if scopes.is_empty() => {
            let told = named("error_description").or(reason.as_deref()).or(named("error"));
            told.map(|told| format!(": {told}")).unwrap_or_default()
        }
        scopes => format!(": it wants a token for {scopes}"),
    }
}

/// A signal ended the command.
pub(crate) fn interrupted() -> AnyError {
    stopped(Signal::Interrupt)
}

/// A signal ends the process.
pub(crate) fn stopped(signal: Signal) -> AnyError {
    ExitError::new(signal.reason(), signal.what()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_token_says_why_or_for_what_it_should_be() {
        let unauthorized = |challenge: &str, reason: Option<&str>| {
            let (challenge, reason) = (Some(challenge.to_owned()), reason.map(Into::into));
            CallError::Transport(TransportError::Unauthorized { status: 403, challenge, reason })
        };
        let said = |challenge: &str| of_request(&unauthorized(challenge, None).into()).to_string();
        let error = said("Basic, Bearer error=\"insufficient_scope\", scope=\"a b\"");
        assert_eq!(error, "the server wants authorization (status 403): it wants a token for a b");
        let error = said("Basic, Bearer error=\"invalid_token\", error_description=\"it is over\"");
        assert_eq!(error, "the server wants authorization (status 403): it is over");
        let error = said("Bearer error=\"insufficient_scope\"");
        assert_eq!(error, "the server wants authorization (status 403): insufficient_scope");
        for other in ["Bearer scope=\"a\"", "Bearer", ""] {
            assert_eq!(said(other), "the server wants authorization (status 403)", "{other}");
        }
        for (challenge, told) in [
            ("Bearer", "in the body"),
            ("Bearer error=\"invalid_token\"", "in the body"),
            ("Bearer error_description=\"in the head\"", "in the head"),
        ] {
            let error = of_request(&unauthorized(challenge, Some("in the body")).into()).to_string();
            assert_eq!(error, format!("the server wants authorization (status 403): {told}"));
        }
    }
}
