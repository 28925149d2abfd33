//! The fixtures of the official conformance suite: names, texts and schemas are the ones it asks for.

mod content;
mod input_required;
mod lists;
mod prompts;
mod resources;
mod schemas;
mod server_requests;
mod tasks;

use refmcp_server::{ServerBuilder, UriTemplateError};

pub(crate) use resources::WATCHED;

/// Adds every fixture.
pub(crate) fn add(builder: ServerBuilder) -> Result<ServerBuilder, UriTemplateError> {
    let families = [
        content::tools(),
        server_requests::tools(),
        schemas::tools(),
        input_required::tools(),
        lists::tools(),
        tasks::tools(),
    ];
    let builder = families.into_iter().flatten().fold(builder, ServerBuilder::tool);
    let builder = resources::resources().into_iter().fold(builder, ServerBuilder::resource);
    let builder = prompts::prompts().into_iter().fold(builder, ServerBuilder::prompt);
    Ok(builder.template(resources::template()?))
}
