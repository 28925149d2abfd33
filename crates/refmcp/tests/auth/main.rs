//! Logging in, as somebody types it, to a server that wants to know who asks.

#![cfg(unix)]

mod clients;
mod faults;
mod hostile;
mod kept;
mod login;
mod secrets;
mod server;
#[cfg(target_os = "linux")]
mod terminal;
mod user;
mod ways;
mod web;
