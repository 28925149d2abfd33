//! What the server makes of bad input: the right error or none, and then it goes on serving this client and others.

#[path = "../support/mod.rs"]
mod support;

mod asking;
mod batches;
mod cursors;
mod envelope;
mod files;
mod handshake;
mod in_flight;
mod methods;
mod repeats;
mod table;
mod text;
