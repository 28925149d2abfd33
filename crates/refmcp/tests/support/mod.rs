//! The program as a child process, driven by messages or at a terminal. Every wait has a deadline, and no write blocks a
//! test.

#![allow(dead_code, unused_imports, reason = "each test file uses its own part")]

mod client;
pub(crate) mod http;
mod process;
mod server;
#[cfg(target_os = "linux")]
mod terminal;
mod user;

pub(crate) use client::{Client, STATELESS, Version, text_of};
pub(crate) use process::{
    Exit, Process, children_of, is_running, kill, program, signal, wait_for, wait_until, wait_until_gone,
};
pub(crate) use server::{INITIALIZE, Server};
#[cfg(target_os = "linux")]
pub(crate) use terminal::Terminal;
pub(crate) use user::{Ended, User};

use std::time::Duration;

/// How long anything may take before a test fails. Other tests keep the machine busy.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The program.
pub(crate) const REFMCP: &str = env!("CARGO_BIN_EXE_refmcp");
