//! Logging in, as somebody types it, to a server that wants to know who asks.

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
#[cfg(target_os = "linux")]
mod terminal;
mod user;
mod ways;
mod web;
mod websocket;
