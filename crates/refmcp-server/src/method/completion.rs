//! `completion/complete`.

use refmcp_proto::jsonrpc::{RpcError, excerpt};
use refmcp_proto::model::{CompleteParams, CompleteResult, Completion, CompletionRef};

use super::{PreparedCall, params, prompts};
use crate::call::Call;
use crate::catalog::{Completer, CompletionRequest};
use crate::error::CallError;

pub(super) fn complete(call: &Call) -> Result<PreparedCall, CallError> {
    let CompleteParams { reference, argument, context, .. } = params(call)?;
    let completer = find(call, &reference, &argument.name)?;
    let known = context.and_then(|context| context.arguments).unwrap_or_default();
    let call = call.clone();
    Ok(PreparedCall::spawned(async move {
        let suggested = match completer {
            Some(suggest) => suggest(call, CompletionRequest { value: argument.value, known }).await,
            None => Vec::new(),
        };
        Ok(CompleteResult::new(Completion::new(suggested)).into())
    }))
}

/// The completer of an argument, if it has one.
fn find(call: &Call, reference: &CompletionRef, argument: &str) -> Result<Option<Completer>, RpcError> {
    let unknown =
        |what: &str, name: &str| RpcError::invalid_params(format!("unknown {what}: {}", excerpt(name)));
    match reference {
        CompletionRef::Prompt(reference) => {
            let prompt =
                prompts::find(call, &reference.name).ok_or_else(|| unknown("prompt", &reference.name))?;
            let mut arguments = prompt.definition.arguments.iter().flatten();
            if !arguments.any(|known| known.name == argument) {
                return Err(unknown("argument", argument));
            }
            Ok(prompt.completers.get(argument).cloned())
        }
        CompletionRef::Resource(reference) => {
            let own = call.session().and_then(|session| session.catalog());
            let shared = call.server().catalog();
            let catalogs = || own.as_deref().into_iter().chain([&*shared]);
            let template =
                catalogs().find_map(|catalog| catalog.templates.get(&reference.uri)).or_else(|| {
                    let mut templates = catalogs().flat_map(|catalog| catalog.templates.iter());
                    templates.find(|template| template.pattern.matches(&reference.uri).is_some())
                });
            let template = template.ok_or_else(|| unknown("resource template", &reference.uri))?;
            if !template.pattern.names().any(|known| known == argument) {
                return Err(unknown("argument", argument));
            }
            Ok(template.completers.get(argument).cloned())
        }
    }
}
