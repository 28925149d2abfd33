//! The log of JSON-RPC errors that clients are answered with over HTTP. It is for those who look for a fault, so it is
//! written at debug, and nothing is read or copied unless it is.

use refmcp_proto::jsonrpc::{RpcError, excerpt};
use serde::Deserialize;
use tracing::Level;

const TARGET: &str = "refmcp::http";

/// Logs an error that was found before any engine saw the message.
pub(crate) fn found(error: &RpcError) {
    if tracing::enabled!(target: TARGET, Level::DEBUG) {
        write(None, error.code, &error.message);
    }
}

/// Logs an error that the engine of a session gave as an answer.
pub(crate) fn answered(session: u64, code: i64, json: &[u8]) {
    if tracing::enabled!(target: TARGET, Level::DEBUG)
        && let Some(message) = message_of(json)
    {
        write(Some(session), code, &message);
    }
}

/// What an answer says that is an error.
pub(crate) fn message_of(json: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Answer {
        error: Fault,
    }
    #[derive(Deserialize)]
    struct Fault {
        message: String,
    }
    serde_json::from_slice::<Answer>(json).ok().map(|answer| answer.error.message)
}

fn write(session: Option<u64>, code: i64, why: &str) {
    tracing::debug!(target: TARGET, session, code, why = excerpt(why), "answered with an error");
}
