//! What tools can say about the code, warnings denied.

use anyhow::Result;
use refmcp_runners::shell::{self, cargo};

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
    clippy_of(&[])
}

/// Clippy on these packages; on the whole workspace when there are none.
pub(crate) fn clippy_of(packages: &[&str]) -> Result<()> {
    let mut clippy = cargo(["clippy", "--all-targets", "--all-features"]);
    match packages {
        [] => clippy.arg("--workspace"),
        named => clippy.args(named.iter().map(|name| format!("--package={name}"))),
    };
    shell::run(clippy.args(["--", "-D", "warnings"]))
}

pub(crate) fn docs() -> Result<()> {
    shell::run(
        cargo(["doc", "--workspace", "--all-features", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"),
    )
}
