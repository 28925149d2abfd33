//! Elicitation: a server asks the user, by a form or by sending them to a URL.

mod check;
mod choice;
mod field;
mod form;
mod format;
mod params;

pub use choice::*;
pub use field::*;
pub use form::*;
pub use params::*;
