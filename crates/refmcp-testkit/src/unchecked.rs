//! What a test cannot check on this machine, said where it is counted.

use std::env;
use std::fs::OpenOptions;
use std::io::Write as _;

/// Names the file that `cargo xtask test` counts lines of.
const VARIABLE: &str = "REFMCP_NOT_CHECKED";

/// Says what this machine has nothing to check with. `cargo xtask test` shows it in its summary; otherwise it is on the
/// standard error of the test.
///
/// # Panics
///
/// When the summary cannot be told.
pub fn not_checked(what: &str) {
    eprintln!("not checked: {what}");
    let Some(file) = env::var_os(VARIABLE) else { return };
    let told = OpenOptions::new().create(true).append(true).open(&file);
    // In one go: other tests write too.
    let told = told.and_then(|mut file| file.write_all(format!("{}\n", what.replace('\n', " ")).as_bytes()));
    told.unwrap_or_else(|error| panic!("cannot write to {}: {error}", file.display()));
}
