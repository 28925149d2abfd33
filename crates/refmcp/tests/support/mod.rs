//! The built program as a child process, spoken to in lines. Every wait has a deadline, and no write blocks a test.

#![allow(dead_code, unused_imports, reason = "each test file uses its own part")]

mod client;
mod process;

pub(crate) use client::{Client, Era, STATELESS, text_of};
pub(crate) use process::{Exit, Process, program};

use std::time::Duration;

/// How long anything may take before a test fails. Other tests keep the machine busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
