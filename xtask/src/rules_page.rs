//! `docs/rules.md`, which a test compares with the catalogue of rules, the auditor and the probes.

use anyhow::Result;
use refmcp_runners::shell;

use crate::transcripts::Mode;

/// Runs the test; to update, it writes the page.
pub(crate) fn run(mode: Mode) -> Result<()> {
    let mut test = shell::cargo(["test", "--package=refmcp-check", "--test=rules_page"]);
    if mode == Mode::Update {
        test.env("UPDATE", "1");
    }
    shell::run(&mut test)
}
