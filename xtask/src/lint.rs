//! What tools can say about the code, warnings denied.

use anyhow::Result;

use crate::shell::{self, cargo};

/// The three, one after the other; the first that complains ends it.
pub(crate) fn run() -> Result<()> {
    format()?;
    clippy()?;
    docs()
}

pub(crate) fn format() -> Result<()> {
    // rustfmt would colour its differences in a file, too.
    let colour = if shell::colours() { "always" } else { "never" };
    shell::run(&mut cargo(["fmt", "--all", "--check", "--", "--color", colour]))
}

pub(crate) fn clippy() -> Result<()> {
    shell::run(&mut cargo([
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "-D",
        "warnings",
    ]))
}

pub(crate) fn docs() -> Result<()> {
    shell::run(
        cargo(["doc", "--workspace", "--all-features", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"),
    )
}
