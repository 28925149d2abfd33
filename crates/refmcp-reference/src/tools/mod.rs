//! The reference tools: one file for each family.

mod about_me;
mod cancellations;
pub(crate) mod content;
mod errors;
pub(crate) mod forms;
mod lists;
mod research;
mod resources;
mod server_requests;
mod streams;
mod structured;
mod text;
mod time;

use refmcp_server::{Call, NoArguments, ServerBuilder, Tool, ToolOutput};

use crate::VerdictSource;

/// Adds every reference tool. Clients that try the first one of a list call it without arguments.
pub(crate) fn add(builder: ServerBuilder, verdicts: Option<&VerdictSource>) -> ServerBuilder {
    let families = [
        about_me::tools(verdicts),
        text::tools(),
        structured::tools(),
        time::tools(),
        research::tools(),
        content::tools(),
        errors::tools(),
        streams::tools(),
        server_requests::tools(),
        lists::tools(),
        resources::tools(),
        cancellations::tools(),
    ];
    families.into_iter().flatten().fold(builder, |builder, tool| builder.tool(offline_unless_said(tool)))
}

/// A tool without arguments that always returns the same.
pub(crate) fn fixed<O: ToolOutput>(name: &str, title: &str, description: &str, output: fn() -> O) -> Tool {
    Tool::new(name, description, move |_: Call, _: NoArguments| async move { Ok(output()) }).title(title)
}

/// Tools reach nothing beyond the server, except where they say so themselves.
fn offline_unless_said(tool: Tool) -> Tool {
    tool.annotate(|hints| if hints.open_world_hint.is_none() { hints.open_world(false) } else { hints })
}
