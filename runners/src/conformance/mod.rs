//! The official conformance suite against our build, over HTTP: every scenario, in every revision it knows,
//! against our server, then against our client, then against our authorization server.
//!
//! The suite itself counts a scenario as passed when it only warned or skipped something; here that fails too.

mod checks;
mod client;
mod issuer;
mod server;
mod suite;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::{Build, Tally, shell};
use suite::Suite;

/// Sets the suite up, runs it in every way, and counts scenarios.
///
/// # Errors
/// The suite cannot be installed or started.
pub fn run(build: &Build) -> Result<Tally> {
    let target = shell::target_directory()?;
    let out = target.join("conformance");
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    let suite = Suite::prepare()?;
    let mut tally = server::run(&suite, build, &out)?;
    tally += client::run(&suite, build, &out.join("client"))?;
    tally += issuer::run(&suite, build, &out.join("issuer"))?;
    Ok(tally)
}

/// Says what is wrong in a scenario.
fn show(side: &str, revision: &str, scenario: &str, faults: &[String]) {
    for error in faults {
        println!("{} {side}, {revision} {scenario}: {error}", shell::red("FAILED"));
    }
}

/// An empty folder.
fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}
