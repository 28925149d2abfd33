//! Values of the model, which has the newest shape, in the shape of an older revision.

mod capabilities;
mod input_requests;
mod results;

pub use capabilities::{capabilities, client_capabilities, extensions, implementation};
pub use input_requests::{input_request, remove_context, set_elicitation_id};
pub use results::{content, experimental_task, failure, result};
