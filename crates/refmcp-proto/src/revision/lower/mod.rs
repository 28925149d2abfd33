//! From the model's shape, which is the newest, to the shape a peer knows.

mod failure;
mod items;
mod question;

pub use failure::failure;
pub use items::{capabilities, content, implementation, result};
pub use question::{leave_out_context, name_url_visit, question};
