//! Rules about what servers offer: tools, resources, prompts with completion, their lists, subscriptions, and logging.

pub(super) mod lists;
pub(super) mod logging;
pub(super) mod prompts;
pub(super) mod resources;
pub(super) mod subscriptions;
pub(super) mod tools;
