//! `refmcp auth`, and calls to a server that needs authorization.

#![cfg(unix)]

mod clients;
mod expiry;
mod extensions;
mod faults;
mod grants;
mod hostile;
mod introspection;
mod keyring;
mod login;
mod requests;
mod restart;
mod secrets;
mod server;
#[path = "../support/mod.rs"]
mod support;
#[cfg(target_os = "linux")]
mod terminal;
mod token_file;
mod user;
mod websocket;
