//! Rules about what servers offer: tools, resources, prompts, their lists, and logging.

pub(super) mod lists;
pub(super) mod logging;
pub(super) mod prompts;
pub(super) mod resources;
pub(super) mod tools;
