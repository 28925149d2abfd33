//! The suite as a client of our server, which runs once for all of it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::suite::{self, Suite};
use super::{checks, empty, show};
use crate::build::Build;
use crate::test::Tally;

/// The revisions that the suite has scenarios for, with how many: a scenario that goes missing is noticed.
const REVISIONS: [(&str, usize); 4] =
    [("2025-03-26", 1), ("2025-06-18", 27), ("2025-11-25", 33), ("2026-07-28", 40)];

const LIMIT: Duration = Duration::from_secs(300);

pub(super) fn run(suite: &Suite, build: &Build, out: &Path) -> Result<Tally> {
    let server = Server::start(build, &[], &out.join("server.log"))?;
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

/// Our server, for as long as this lives.
pub(super) struct Server {
    child: Child,
    /// Where it speaks streamable HTTP.
    pub(super) url: String,
    /// Kept open: a program whose output is closed behind its back may well stop.
    _output: Lines<BufReader<ChildStdout>>,
}

impl Server {
    /// Starts the server with these options; what it logs goes to a file.
    pub(super) fn start(build: &Build, options: &[&str], log: &Path) -> Result<Self> {
        let program = build.refmcp();
        let log = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = Command::new(&program);
        command.args(["serve", "--port", "0"]).args(options);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        let output = child.stdout.take().context("no output")?;
        let mut lines = BufReader::new(output).lines();
        let url = lines.find_map(|line| {
            let line = line.ok()?;
            Some(line.trim().strip_prefix("streamable HTTP")?.trim().to_owned())
        });
        match url {
            Some(url) => Ok(Self { child, url, _output: lines }),
            None => {
                let _ = child.kill();
                bail!("the server did not say where it listens")
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already; what counts is that it is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
