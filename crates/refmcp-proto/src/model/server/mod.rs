//! What a server offers: tools, resources, prompts, completion, log messages, notifications of changes.

mod completion;
mod logging;
mod prompts;
mod resources;
mod subscriptions;
mod tools;

pub use completion::*;
pub use logging::*;
pub use prompts::*;
pub use resources::*;
pub use subscriptions::*;
pub use tools::*;
