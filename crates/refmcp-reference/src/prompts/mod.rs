//! Prompts: the built-in ones, and those of a directory.

mod body;
mod builtin;
pub(crate) mod directory;
mod front_matter;
mod template;

use refmcp_server::ServerBuilder;

/// Adds the built-in prompts.
pub(crate) fn add(builder: ServerBuilder) -> ServerBuilder {
    builtin::prompts().into_iter().fold(builder, ServerBuilder::prompt)
}
