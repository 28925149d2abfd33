//! What is kept on this machine between two runs: decisions, the calls that were made, how servers speak, and tokens.

pub(crate) mod eras;
mod folder;
pub(crate) mod installs;
pub(crate) mod keyring;
pub(crate) mod listings;
pub(crate) mod log;
mod moment;
mod owner;
mod seal;
pub(crate) mod tokens;
pub(crate) mod trust;
mod vault;

pub(crate) use folder::{StateFolder, append_private};
