//! Errors that end a command: a line for people, or one JSON document on stderr.

use refmcp_client::RpcError;
use serde_json::{Value, json};

use crate::args::{ExitError, ExitReason};
use crate::ui::output::{print_aside, print_json_aside};
use crate::ui::redact::{masked, masked_json};
use crate::ui::text::multi_line;

/// Says on stderr what went wrong.
pub(crate) fn report(fault: &anyhow::Error, as_json: bool) {
    let message = message(fault);
    if as_json {
        print_json_aside(&format!("{}\n", document(&message, ExitReason::of(fault), rpc_of(fault))));
    } else {
        // An error may quote what a server said.
        print_aside(&format!("refmcp: {}\n", multi_line(&masked(&message))));
    }
}

/// What went wrong and why. A cause that is part of what was said before it is not said again.
fn message(fault: &anyhow::Error) -> String {
    let causes = fault.chain().map(ToString::to_string);
    causes.fold(String::new(), |said, cause| match said.as_str() {
        "" => cause,
        text if text.ends_with(&cause) => said,
        text => format!("{text}: {cause}"),
    })
}

/// The error that the server answered with, if that is what went wrong.
pub(crate) fn rpc_of(fault: &anyhow::Error) -> Option<&RpcError> {
    fault.chain().find_map(|cause| cause.downcast_ref::<ExitError>()?.rpc.as_deref())
}

/// The same error in other words.
pub(crate) fn reworded(fault: &anyhow::Error, what: String) -> anyhow::Error {
    ExitError::new(ExitReason::of(fault), what).answered(rpc_of(fault)).into()
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
        let fault = anyhow!("no such file").context("cannot open x: no such file").context("outer");
        assert_eq!(message(&fault), "outer: cannot open x: no such file");
        let fault = Err::<(), _>(anyhow!("inner")).context("outer").unwrap_err();
        assert_eq!(message(&fault), "outer: inner");
    }
}
