//! `prompts/list` and `prompts/get`.

use std::sync::Arc;

use refmcp_proto::jsonrpc::{RpcError, excerpt};
use refmcp_proto::model::{GetPromptParams, ListPromptsResult};

use super::{PreparedCall, pagination, params};
use crate::call::Call;
use crate::catalog::{Prompt, PromptArguments};
use crate::error::CallError;

pub(super) fn list(call: &Call) -> Result<PreparedCall, CallError> {
    pagination::list(
        call,
        |catalog| &catalog.prompts,
        |prompt| prompt.definition.clone(),
        |prompts, next_cursor| ListPromptsResult { next_cursor, ..ListPromptsResult::new(prompts) }.into(),
    )
}

pub(super) fn get(call: &Call) -> Result<PreparedCall, CallError> {
    let GetPromptParams { name, arguments, .. } = params(call)?;
    let prompt = find(call, &name)
        .ok_or_else(|| RpcError::invalid_params(format!("unknown prompt: {}", excerpt(&name))))?;
    let arguments = arguments.unwrap_or_default();
    check(&prompt, &arguments)?;
    let filling = call.clone();
    Ok(PreparedCall::spawned(async move { Ok(prompt.fill(filling, arguments).await?.into()) })
        .about(call, &name))
}

/// A prompt's arguments are all strings; the required ones must be there, unknown ones must not.
fn check(prompt: &Prompt, arguments: &PromptArguments) -> Result<(), RpcError> {
    let known = || prompt.definition.arguments.iter().flatten();
    let missing = known().find(|known| known.required == Some(true) && !arguments.contains_key(&known.name));
    if let Some(missing) = missing {
        return Err(RpcError::invalid_params(format!("missing argument: {}", missing.name)));
    }
    match arguments.keys().find(|name| !known().any(|known| known.name == **name)) {
        Some(unknown) => Err(RpcError::invalid_params(format!("unknown argument: {}", excerpt(unknown)))),
        None => Ok(()),
    }
}

/// The prompt of this name, the session's own first.
pub(super) fn find(call: &Call, name: &str) -> Option<Arc<Prompt>> {
    let own = call.session().and_then(|session| session.catalog()?.prompts.get(name).cloned());
    own.or_else(|| call.server().catalog().prompts.get(name).cloned())
}
