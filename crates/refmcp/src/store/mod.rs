//! The state folder: decisions, the log of calls, changes that can be undone, caches, and tokens.

pub(crate) mod cache;
pub(crate) mod calls;
mod folder;
pub(crate) mod installs;
mod timestamp;
pub(crate) mod tokens;
pub(crate) mod trust;

pub(crate) use folder::{StateFolder, append_private, private};
pub(crate) use timestamp::rfc3339;
