//! What is kept on this machine between two runs: decisions, the calls that were made, and how servers speak.

pub(crate) mod eras;
mod folder;
pub(crate) mod log;
mod moment;
pub(crate) mod trust;

pub(crate) use folder::{StateFolder, private};
