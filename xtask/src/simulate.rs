//! Simulated conversations, many more than the tests run, in release mode.

use anyhow::Result;
use refmcp_runners::shell;

/// Conversations, unless a number is given.
const DEFAULT_COUNT: &str = "1000000";

/// Runs so many conversations; with a seed alone, the one of that seed, with its transcript.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let mut run = shell::cargo([
        "run",
        "--release",
        "--package=refmcp-testkit",
        "--features=server",
        "--example=simulate",
        "--",
    ]);
    shell::run(run.args(if args.is_empty() { &[DEFAULT_COUNT] } else { args }))
}
