//! What a server offers: tools, resources, prompts, skills, completion, log messages, notifications of changes.

mod completion;
mod logging;
mod prompts;
mod resources;
mod skills;
mod subscriptions;
mod tools;

pub use completion::*;
pub use logging::*;
pub use prompts::*;
pub use resources::*;
pub use skills::*;
pub use subscriptions::*;
pub use tools::*;
