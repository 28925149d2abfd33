//! `docs/rules.md`, which a test compares with the catalogue of rules.

use anyhow::Result;
use refmcp_runners::shell;

use crate::test::QUICK;
use crate::transcripts::Mode;

/// Runs the test; to update, it writes the page.
pub(crate) fn run(mode: Mode) -> Result<()> {
    let mut test = shell::cargo(["test", "--all-features", "--test", "rules_page"]);
    // Together with the others of `quick`: another choice of packages would build their dependencies anew.
    test.args(QUICK.map(|name| format!("--package={name}")));
    if mode == Mode::Update {
        test.env("UPDATE", "1");
    }
    shell::run(&mut test)
}
