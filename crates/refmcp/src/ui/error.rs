//! Errors that end a command: a line for people, or one JSON document on stderr.

use refmcp_client::RpcError;
use serde_json::{Value, json};

use crate::args::{ExitError, ExitReason};
use crate::ui::output::{print_aside, print_json_aside};
use crate::ui::redact::{masked, masked_json};
use crate::ui::text::multi_line;

/// Says on stderr what went wrong.
pub(crate) fn report(error: &anyhow::Error, as_json: bool) {
    let message = message(error);
    if as_json {
        print_json_aside(&format!("{}\n", document(&message, ExitReason::of(error), rpc_of(error))));
    } else {
        // An error may quote what a server said.
        print_aside(&format!("refmcp: {}\n", multi_line(&masked(&message))));
    }
}

/// What went wrong and why. A cause that is part of what was said before it is not said again.
fn message(error: &anyhow::Error) -> String {
    let causes = error.chain().map(ToString::to_string);
    causes.fold(String::new(), |said, cause| match said.as_str() {
        "" => cause,
        text if text.ends_with(&cause) => said,
        text => format!("{text}: {cause}"),
    })
}

/// The error that the server answered with, if that is what went wrong.
pub(crate) fn rpc_of(error: &anyhow::Error) -> Option<&RpcError> {
    error.chain().find_map(|cause| cause.downcast_ref::<ExitError>()?.rpc.as_deref())
}

/// The same error in other words.
pub(crate) fn reworded(error: &anyhow::Error, what: String) -> anyhow::Error {
    ExitError::new(ExitReason::of(error), what).answered(rpc_of(error)).into()
}

/// An error as JSON, on one line: what went wrong, why in one word, the exit code that says the same, and the server's
/// own error where it answered with one, all without the secrets of targets.
pub(crate) fn document(message: &str, reason: ExitReason, rpc: Option<&RpcError>) -> Value {
    let mut error =
        json!({ "message": masked(message), "reason": reason.as_str(), "exitCode": reason.code() });
    if let (Some(members), Some(rpc)) = (error.as_object_mut(), rpc) {
        members.insert("rpc".to_owned(), masked_json(json!(rpc)));
    }
    json!({ "error": error })
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        let error = anyhow!("no such file").context("cannot open x: no such file").context("outer");
        assert_eq!(message(&error), "outer: cannot open x: no such file");
        let error = Err::<(), _>(anyhow!("inner")).context("outer").unwrap_err();
        assert_eq!(message(&error), "outer: inner");
    }
}
