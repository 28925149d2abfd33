//! `refmcp install` and `refmcp servers`, as typed: what is written where, taken back and shown.

#![cfg(unix)]

#[cfg(target_os = "linux")]
mod asked;
mod changes;
mod documents;
mod entries;
mod listing;
mod refusals;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use support::{REFMCP, User};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}
