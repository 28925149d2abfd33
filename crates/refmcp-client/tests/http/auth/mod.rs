//! Getting in, against a server and an authorization server on one origin that do what a test wants.

mod faults;
mod flights;
mod kinds;
mod leaks;
mod leaving;
mod person;
mod proofs;
mod scopes;
#[cfg(feature = "websocket")]
mod socket;
mod world;
