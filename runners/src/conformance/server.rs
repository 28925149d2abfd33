//! The suite as a client of our server, which runs once for all of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use super::checks::{self, ExpectedFailure};
use super::suite::{self, EXTENSION, Suite, of_revision};
use super::{empty, show};
use crate::server::{Server, Transport};
use crate::{Build, Tally, shell};

/// The revisions that the suite has scenarios for, with how many: a scenario that goes missing is noticed.
const REVISIONS: [(&str, usize); 4] =
    [("2025-03-26", 1), ("2025-06-18", 27), ("2025-11-25", 33), ("2026-07-28", 40)];

/// The scenarios of extensions: tasks and skills.
const EXTENSION_SCENARIOS: usize = 13;

/// Checks that cannot go well.
const EXPECTED_FAILURES: [ExpectedFailure; 1] = [ExpectedFailure {
    scenario: "tasks-status-notifications",
    check: "TasksStatusNotificationsScenario",
    status: "SKIPPED",
    because: "the suite does not listen to the stream that has the notifications",
}];

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
        tally += count(revision, scenarios, &results)?;
    }
    tally += run_extensions(suite, &url, out)?;
    Ok(tally)
}

/// Runs the scenarios of extensions, which are in no list of scenarios to run.
fn run_extensions(suite: &Suite, url: &str, out: &Path) -> Result<Tally> {
    let listing = shell::output(&mut suite.command(&["list", "--server"]))?;
    let results = out.join(EXTENSION);
    empty(&results)?;
    for name in of_revision(&listing, EXTENSION) {
        let mut command = suite.command(&["server", "--url", url, "--scenario", name, "-o"]);
        suite::run(command.arg(&results), &out.join(format!("{name}.log")), LIMIT)?;
    }
    count(EXTENSION, EXTENSION_SCENARIOS, &results)
}

/// Shows and counts what is in a folder of results.
fn count(revision: &str, scenarios: usize, results: &Path) -> Result<Tally> {
    let verdicts = verdicts(results)?;
    for (scenario, faults) in &verdicts {
        show("server", revision, scenario, faults);
    }
    let passed = verdicts.values().filter(|faults| faults.is_empty()).count();
    println!("server, {revision}: {passed} of {scenarios} scenarios");
    let failed = verdicts.len() - passed + scenarios.saturating_sub(verdicts.len());
    Ok(Tally { passed, failed })
}

/// What is wrong in each scenario.
fn verdicts(results: &Path) -> Result<BTreeMap<String, Vec<String>>> {
    let mut verdicts = BTreeMap::new();
    let folders = fs::read_dir(results).with_context(|| format!("no results in {}", results.display()))?;
    for folder in folders {
        let folder = folder?;
        let name = folder.file_name().to_string_lossy().into_owned();
        let expected: Vec<_> =
            EXPECTED_FAILURES.into_iter().filter(|failure| name.contains(failure.scenario)).collect();
        verdicts.insert(name, checks::faults(&folder.path(), &expected)?);
    }
    Ok(verdicts)
}
