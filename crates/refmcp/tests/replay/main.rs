//! `refmcp replay`: recordings sent again to servers, served to clients again, and compared.

#![cfg(unix)]

mod client;
mod mock;
mod refusals;
#[path = "../support/mod.rs"]
mod support;

use support::{REFMCP, User};

/// A call of a tool with a form, which is filled in with its defaults.
const ASK: [&str; 3] = ["ask_user", "form=confirm", "--yes"];

/// Records a call over stdio in a revision.
fn record(user: &User, version: &str, file: &str) {
    let words = [&["call"][..], &ASK, &["--protocol-version", version, "--record", file]].concat();
    let ended = user.with_stdio(&words);
    assert_eq!(ended.code, 0, "{ended:?}");
}

/// The reference server over stdio.
const STDIO: [&str; 2] = [REFMCP, "stdio"];
