//! The tables of `docs/reference-server.md`, which a test compares with a running server.

use anyhow::Result;

use crate::shell;
use crate::transcripts::Mode;

/// Runs the test; to update, it writes the columns that come from the server.
pub(crate) fn run(mode: Mode) -> Result<()> {
    let test = ["test", "--package", "refmcp-reference", "--all-features", "--test", "reference", "page::"];
    let mut test = shell::cargo(test);
    if mode == Mode::Update {
        test.env("UPDATE", "1");
    }
    shell::run(&mut test)
}
