//! Resources: the built-in ones, families of them, and the files of a directory.

pub(crate) mod directory;
mod families;
mod kinds;
pub(crate) mod notes;

use refmcp_server::{ServerBuilder, UriTemplateError};

/// Adds the built-in resources and templates.
pub(crate) fn add(builder: ServerBuilder) -> Result<ServerBuilder, UriTemplateError> {
    let builder = notes::resources().into_iter().fold(builder, ServerBuilder::resource);
    Ok(builder.template(families::memos()?))
}
