//! Resources: the built-in ones, families of them, and the files of a directory.

pub(crate) mod builtin;
pub(crate) mod directory;
mod file_type;
mod memos;

pub(crate) use file_type::FileType;

use refmcp_server::{ServerBuilder, UriTemplateError};

/// Adds the built-in resources and templates.
pub(crate) fn add(builder: ServerBuilder) -> Result<ServerBuilder, UriTemplateError> {
    let builder = builtin::resources().into_iter().fold(builder, ServerBuilder::resource);
    Ok(builder.template(memos::memos()?))
}
