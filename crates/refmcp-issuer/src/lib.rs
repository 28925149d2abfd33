//! An authorization server to test MCP clients against, with faults on request.
//!
//! It is a test tool: it checks no passwords, keeps everything in memory and says so on its pages. It is strict where the
//! specifications are, so that a client that works here does so because it is right. [`Faults`] make it go wrong in known
//! ways.
//!
//! Requests and responses are values: the caller passes requests and the time to [`Issuer::answer`].

mod authorize;
mod clients;
mod faults;
mod form;
mod issued_tokens;
mod metadata;
mod respond;
mod serve;
mod settings;
mod state;
mod subject;
mod token;

#[cfg(test)]
mod tests;

pub use clients::{Client, Redirects};
pub use faults::{Fault, Faults, UnknownFault};
pub use serve::{InProcessFetch, Issuer};
pub use settings::{Login, Settings, TrustedIssuer};

/// Path of the page that explains this server.
pub(crate) const ABOUT: &str = "/authorize/about";
