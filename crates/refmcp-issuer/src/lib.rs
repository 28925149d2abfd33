//! An authorization server to test MCP clients against, which breaks on request.
//!
//! It is a test tool: it knows nobody's password, everything is in memory, and it says so on its pages. It is strict where
//! the protocols are, so that a client that works here does so because it does the right thing, and it goes wrong in known
//! ways ([`Faults`]) when it is told to.
//!
//! Requests go in and answers come out as values; whoever listens for them gives them to [`Issuer::answer`] with the time.

mod authorize;
mod bounded;
mod clients;
mod faults;
mod form;
mod introspect;
mod keys;
mod metadata;
mod near;
mod once;
mod respond;
mod revoke;
mod serve;
mod settings;
mod state;
mod subject;
mod token;

#[cfg(test)]
mod tests;

pub use clients::{Client, Method, Redirects};
pub use faults::{Fault, Faults, UnknownFault};
pub use near::Near;
pub use serve::Issuer;
pub use settings::{Login, Settings, Trusted};

/// Where people read what this is.
pub(crate) const ABOUT: &str = "/authorize/about";
