//! How a connection opens: `initialize` and `server/discover`, who both sides are and what they can do.

mod capabilities;
mod implementation;
mod initialize;

pub use capabilities::*;
pub use implementation::*;
pub use initialize::*;
