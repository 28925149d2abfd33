//! Why there is no result, in the words of each revision.

use serde_json::json;

use crate::engine::CallFailure;
use crate::jsonrpc::{RpcError, code};
use crate::model::{CallToolResult, MissingCapabilityData, ServerResult};
use crate::revision::{BadArguments, InputMode, Method, Rules};

/// What a failure becomes: a result that tells of it, or an error.
pub fn failure(rules: &Rules, method: &Method, failure: CallFailure) -> Result<ServerResult, RpcError> {
    match failure {
        CallFailure::Rpc(error) => Err(error),
        CallFailure::ResourceNotFound { uri } => {
            Err(RpcError::new(rules.resource_not_found, "resource not found")
                .with_data(json!({ "uri": uri })))
        }
        CallFailure::BadArguments(what) => match rules.bad_arguments {
            BadArguments::ToolResult if *method == Method::CallTool => Ok(CallToolResult::error(what).into()),
            _ => Err(RpcError::invalid_params(what)),
        },
        CallFailure::MissingCapability { needs, what } => {
            let text = format!("the client does not support {what}");
            match rules.input_mode {
                InputMode::InputRequired => {
                    let data = MissingCapabilityData { required_capabilities: *needs, ..Default::default() };
                    let mut error = RpcError::new(code::MISSING_CAPABILITY, text);
                    error.data = serde_json::to_value(data).ok();
                    Err(error)
                }
                InputMode::ServerRequest if *method == Method::CallTool => {
                    Ok(CallToolResult::error(text).into())
                }
                InputMode::ServerRequest => Err(RpcError::invalid_request(text)),
            }
        }
    }
}
