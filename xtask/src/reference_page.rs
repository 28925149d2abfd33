//! The tables of `docs/reference-server.md`, which a test compares with a running server.

use anyhow::Result;
use refmcp_runners::shell;

use crate::schemas;
use crate::test::QUICK;
use crate::transcripts::Mode;

/// Runs the test; to update, it writes the columns that come from the server.
pub(crate) fn run(mode: Mode) -> Result<()> {
    let schemas = schemas::prepare()?;
    let mut test = shell::cargo(["test", "--all-features", "--test", "reference"]);
    // Together with the others of `quick`: another choice of packages would build their dependencies anew.
    test.args(QUICK.map(|name| format!("--package={name}"))).arg("page::");
    test.env(schemas::VARIABLE, &schemas);
    if mode == Mode::Update {
        test.env("UPDATE", "1");
    }
    shell::run(&mut test)
}
