//! `prompts/list` and `prompts/get`.

use std::sync::Arc;

use refmcp_proto::jsonrpc::{RpcError, excerpt};
use refmcp_proto::model::{GetPromptParams, ListPromptsResult};

use super::page::page;
use super::{Plan, params};
use crate::call::Call;
use crate::catalog::{Prompt, PromptArguments};

pub(super) fn list(call: &Call) -> Plan {
    let call = call.clone();
    Plan::now(async move {
        let page = page(&call, |catalog| &catalog.prompts)?;
        let prompts = page.items.iter().map(|prompt| prompt.definition.clone()).collect();
        Ok(ListPromptsResult { next_cursor: page.next, ..ListPromptsResult::new(prompts) }.into())
    })
}

pub(super) fn get(call: &Call) -> Plan {
    let GetPromptParams { name, arguments, .. } = match params(call) {
        Ok(params) => params,
        Err(error) => return Plan::refuse(error),
    };
    let Some(prompt) = find(call, &name) else {
        return Plan::refuse(RpcError::invalid_params(format!("unknown prompt: {}", excerpt(&name))));
    };
    let arguments = arguments.unwrap_or_default();
    if let Err(error) = check(&prompt, &arguments) {
        return Plan::refuse(error);
    }
    let filling = call.clone();
    Plan::later(async move { Ok(prompt.fill(filling, arguments).await?.into()) }).about(call, &name)
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
