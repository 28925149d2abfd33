//! What every message may carry: `_meta`, parameters, results, notifications, error data.

mod error_data;
mod meta;
mod notification;
pub(super) mod number;
mod params;
mod result;
pub(super) mod union;

pub use error_data::*;
pub use meta::*;
pub use notification::*;
pub use number::plain_number;
pub use params::*;
pub use result::*;
