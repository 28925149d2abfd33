//! OAuth 2.1 as MCP uses it, for both roles.
//!
//! Everything here is a step: values and a time go in, requests of HTTP and verdicts come out as values. Nothing waits,
//! nothing is fetched, and no clock is read; whoever drives the steps does that, so each rule is tested without a socket.
//!
//! - [`Secret`], [`Scopes`], [`Challenge`], [`pkce`], [`uri`], [`metadata`]: the words of the protocol.
//! - [`fetch`]: whoever does the fetching. [`basic`]: how an id and a secret are sent.
//! - [`extension`]: what MCP calls the ways in that are beyond its core.
//! - [`jose`], [`claims`], [`dpop`]: signed tokens, made and checked.

pub mod basic;
pub mod challenge;
pub mod claims;
pub mod client;
pub mod dpop;
pub mod extension;
pub mod fetch;
pub mod jose;
pub mod metadata;
pub mod pkce;
pub mod random;
pub mod resource;
pub mod scope;
pub mod secret;
pub mod uri;

pub use challenge::Challenge;
pub use scope::Scopes;
pub use secret::Secret;

/// Seconds since the Unix epoch, as tokens count time.
pub type Seconds = u64;
