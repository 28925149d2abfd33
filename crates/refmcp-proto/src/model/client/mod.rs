//! What a server can request from a client: sampling, roots, and any of them as input of a call.

mod input;
mod roots;
mod sampling;

pub use input::*;
pub use roots::*;
pub use sampling::*;
