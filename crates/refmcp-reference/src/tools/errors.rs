//! Tools that fail: with a result that says `isError`, and with a JSON-RPC error.

use refmcp_server::model::CallToolResult;
use refmcp_server::{Call, CallError, RpcError, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

/// Outside of every range that JSON-RPC and the protocol keep for themselves.
const SERVER_ERROR: i64 = 1001;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("fail", "Fails in the way that a model can see: by a result that tells of an error", fail)
            .title("Fail")
            .read_only()
            .idempotent()
            .inline(),
        Tool::new(
            "protocol_error",
            "Fails in the way that only the client sees: by a JSON-RPC error",
            protocol_error,
        )
        .title("Protocol error")
        .read_only()
        .idempotent()
        .inline(),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Fail {
    /// What the error says
    #[serde(default = "on_purpose")]
    message: String,
}

fn on_purpose() -> String {
    "this failed on purpose".to_owned()
}

async fn fail(_: Call, Fail { message }: Fail) -> Result<CallToolResult, CallError> {
    Ok(CallToolResult::error(message))
}

async fn protocol_error(_: Call, Fail { message }: Fail) -> Result<CallToolResult, CallError> {
    Err(RpcError::new(SERVER_ERROR, message).into())
}
