//! Errors that end a command: a line for people, or one JSON document on stderr.

use refmcp_client::RpcError;
use serde_json::{Value, json};

use crate::args::{Exit, ExitReason};
use crate::ui::text::multi_line;

/// Says on stderr what went wrong.
pub(crate) fn report(fault: &anyhow::Error, as_json: bool) {
    let message = format!("{fault:#}");
    if as_json {
        eprintln!("{}", document(&message, ExitReason::of(fault), rpc_of(fault)));
    } else {
        // An error may quote what a server said.
        eprintln!("refmcp: {}", multi_line(&message));
    }
}

/// The error that the server answered with, if that is what went wrong.
pub(crate) fn rpc_of(fault: &anyhow::Error) -> Option<&RpcError> {
    fault.chain().find_map(|cause| cause.downcast_ref::<Exit>()?.rpc.as_deref())
}

/// An error as JSON, on one line: what went wrong, why in one word, the exit code that says the same, and the server's
/// own error where it answered with one.
pub(crate) fn document(message: &str, reason: ExitReason, rpc: Option<&RpcError>) -> Value {
    let mut error = json!({ "message": message, "reason": reason.as_str(), "exitCode": reason.code() });
    if let (Some(members), Some(rpc)) = (error.as_object_mut(), rpc) {
        members.insert("rpc".to_owned(), json!(rpc));
    }
    json!({ "error": error })
}
