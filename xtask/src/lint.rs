//! What tools can say about the code, warnings denied.

use anyhow::{Context, Result};
use refmcp_runners::shell::{self, cargo};

/// All of them, one after the other; the first that complains ends it.
pub(crate) fn run() -> Result<()> {
    format()?;
    lock_files()?;
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

/// The lock files of the packages beside the workspace, which are built with `--locked` and seldom.
pub(crate) fn lock_files() -> Result<()> {
    for folder in ["bench", "fuzz", "interop/rmcp", "interop/schemas"] {
        let manifest = format!("{folder}/Cargo.toml");
        let mut update =
            cargo(["update", "--quiet", "--workspace", "--locked", "--manifest-path", &manifest]);
        shell::run(&mut update).with_context(|| {
            format!("{folder}/Cargo.lock is out of date: cargo update --workspace --manifest-path {manifest}")
        })?;
    }
    Ok(())
}
