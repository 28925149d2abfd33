//! Getting in, against a server and an authorization server on one origin that do what a test wants.

mod faults;
mod kinds;
mod leaks;
mod leaving;
mod proofs;
mod refreshes;
mod scopes;
mod servers;
#[cfg(feature = "websocket")]
mod socket;
mod user;
