//! What every message may carry: `_meta`, parameters, results, notifications, error data.

mod meta;
mod notification;
pub(super) mod number;
mod result;
pub(super) mod union;

pub use meta::*;
pub use notification::*;
pub use number::plain_number;
pub use result::*;
