//! The few messages that a bridge writes itself.

use refmcp_proto::jsonrpc::encode::{self, ResponseId};
use refmcp_proto::jsonrpc::{RequestId, RpcError};
use refmcp_proto::model::CancelledParams;
use serde_json::Error;

/// An error in answer to something.
pub(super) fn error(to: ResponseId<'_>, error: &RpcError) -> String {
    written(|out| encode::error(out, to, error))
}

/// A `notifications/cancelled` message.
pub(super) fn cancelled(id: &RequestId, reason: &str) -> String {
    let params = CancelledParams::new(id.clone()).reason(reason);
    written(|out| encode::notification(out, "notifications/cancelled", Some(&params)))
}

fn written(write: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>) -> String {
    let mut out = Vec::new();
    // Neither has anything in it that JSON could not say.
    let written = write(&mut out);
    debug_assert!(written.is_ok());
    String::from_utf8_lossy(&out).into_owned()
}
