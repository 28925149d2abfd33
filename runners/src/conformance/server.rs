//! The suite as a client of our server, which runs once for all of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use super::suite::{self, Suite};
use super::{checks, empty, show};
use crate::server::{Server, Transport};
use crate::{Build, Tally};

/// The revisions that the suite has scenarios for, with how many: a scenario that goes missing is noticed.
const REVISIONS: [(&str, usize); 4] =
    [("2025-03-26", 1), ("2025-06-18", 27), ("2025-11-25", 33), ("2026-07-28", 40)];

const LIMIT: Duration = Duration::from_secs(300);

pub(super) fn run(suite: &Suite, build: &Build, out: &Path) -> Result<Tally> {
    let server = Server::start(&build.refmcp(), &[], Transport::StreamableHttp, &out.join("server.log"))?;
    // The suite tries what happens under other names only when it is given this one.
    let url = server.url.replace("127.0.0.1", "localhost");
    let mut tally = Tally::default();
    for (revision, scenarios) in REVISIONS {
        let results = out.join(revision);
        empty(&results)?;
        let args = ["server", "--url", &url, "--suite", "all", "--spec-version", revision, "-o"];
        let mut command = suite.command(&args);
        // Its exit code says less than its results.
        suite::run(command.arg(&results), &out.join(format!("{revision}.log")), LIMIT)?;
        let verdicts = verdicts(&results)?;
        for (scenario, faults) in &verdicts {
            show("server", revision, scenario, faults);
        }
        let passed = verdicts.values().filter(|faults| faults.is_empty()).count();
        println!("server, {revision}: {passed} of {scenarios} scenarios");
        tally.passed += passed;
        tally.failed += verdicts.len() - passed + scenarios.saturating_sub(verdicts.len());
    }
    Ok(tally)
}

/// What is wrong in each scenario.
fn verdicts(results: &Path) -> Result<BTreeMap<String, Vec<String>>> {
    let mut verdicts = BTreeMap::new();
    let folders = fs::read_dir(results).with_context(|| format!("no results in {}", results.display()))?;
    for folder in folders {
        let folder = folder?;
        let name = folder.file_name().to_string_lossy().into_owned();
        verdicts.insert(name, checks::faults(&folder.path(), &[])?);
    }
    Ok(verdicts)
}
