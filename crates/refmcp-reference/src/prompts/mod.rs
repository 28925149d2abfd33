//! Prompts: the built-in ones, and those of a directory.

mod body;
mod builtin;
pub(crate) mod directory;
mod front_matter;
mod template;

use refmcp_server::{Prompt, ServerBuilder};

/// Reads the text of a prompt file, as those of [`Options::prompts_dir`](crate::Options::prompts_dir) are read.
///
/// # Errors
/// The line that is wrong, and what to write instead.
pub fn parse_prompt_file(name: &str, text: &str) -> Result<Prompt, String> {
    template::Template::parse(text).map(|template| template.prompt(name)).map_err(|error| error.to_string())
}

/// Adds the built-in prompts.
pub(crate) fn add(builder: ServerBuilder) -> ServerBuilder {
    builtin::prompts().into_iter().fold(builder, ServerBuilder::prompt)
}
