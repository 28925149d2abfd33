//! cargo-deny, which looks at dependencies more closely than tidy does.
//!
//! It takes minutes to build, so it is no part of `test`. Advisories stay unchecked: their database is not in the
//! registry, and this works with nothing but that.

use std::process::Command;

use anyhow::Result;
use refmcp_runners::shell;

const VERSION: &str = "0.20.2";

pub(crate) fn run() -> Result<()> {
    let tools = shell::target_directory()?.join("tools");
    let deny = tools.join("bin").join(format!("cargo-deny{}", std::env::consts::EXE_SUFFIX));
    if !deny.exists() {
        println!("cargo-deny is built once, which takes some minutes");
        let mut install = shell::cargo(["install", "cargo-deny", "--locked", "--version", VERSION, "--root"]);
        shell::run(install.arg(&tools))?;
    }
    let mut check = Command::new(deny);
    check.args(["--offline", "check", "bans", "licenses", "sources"]).current_dir(shell::root());
    shell::run(&mut check)
}
