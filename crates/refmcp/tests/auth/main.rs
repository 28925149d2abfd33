//! `refmcp auth`, and calls to a server that needs authorization.

#![cfg(unix)]

mod clients;
mod ends;
mod extensions;
mod faults;
mod hostile;
mod introspection;
mod kept;
mod keyring;
mod line;
mod login;
mod restart;
mod secrets;
mod server;
#[path = "../support/mod.rs"]
mod support;
#[cfg(target_os = "linux")]
mod terminal;
mod user;
mod ways;
mod web;
mod websocket;
