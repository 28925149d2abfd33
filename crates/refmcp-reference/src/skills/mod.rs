//! Skills: the built-in ones, and those of a directory.

mod builtin;
pub(crate) mod directory;

use refmcp_server::ServerBuilder;

/// Adds the built-in skills.
pub(crate) fn add(builder: ServerBuilder) -> ServerBuilder {
    builtin::skills().into_iter().fold(builder, ServerBuilder::skill)
}
