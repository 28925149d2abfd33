//! Clients that others wrote, led through everything: `client.mjs tour` and `client.py tour` call the tool `tour` as long as it
//! says so, and the report of the server must say that they did everything that their SDK, revision and transport have.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Paths;
use super::client::{CLIENTS, Client, Language};
use crate::server::{Server, Transport};
use crate::{Build, REVISIONS, Tally, parallel, shell};

/// The longest that one run may take.
const LIMIT: Duration = Duration::from_secs(180);

/// How long a server over stdio may take to write its report once its client has left.
const REPORT_LIMIT: Duration = Duration::from_secs(10);

/// One client, one transport, one revision.
struct TourRun {
    client: &'static Client,
    transport: Transport,
    revision: &'static str,
}

/// The outcome of each step.
type Steps = BTreeMap<String, String>;

/// What came of a run: the outcomes, and what is wrong with them.
struct TourReport {
    name: String,
    steps: Steps,
    faults: Vec<String>,
}

/// Leads the SDKs' clients through the tour; counts the steps of all.
pub(crate) fn run(build: &Build) -> Result<Tally> {
    let paths = Paths::new(build)?;
    let results = paths.out.join("results");
    fs::create_dir_all(&results).with_context(|| format!("cannot make {}", results.display()))?;
    let mut tally = Tally::default();
    let mut runs = Vec::new();
    for client in CLIENTS.iter().filter(|client| client.language != Language::Rust) {
        client.prepare(&paths)?;
        runs.extend(tour_runs(client));
    }
    let reports = parallel::map(&runs, |run| run.execute(&paths));
    for report in &reports {
        tally.passed += report.steps.len().saturating_sub(report.faults.len());
        tally.failed += report.faults.len();
        for fault in &report.faults {
            println!("{} tour: {}: {fault}", shell::red("FAILED"), report.name);
        }
    }
    let kept = paths.out.join("tour.md");
    fs::write(&kept, markdown(&reports)).with_context(|| format!("cannot write {}", kept.display()))?;
    println!("tours of others: {tally}; the table is kept in {}", kept.display());
    Ok(tally)
}

/// Three revisions over both transports, as far as the SDK speaks them.
fn tour_runs(client: &'static Client) -> Vec<TourRun> {
    let newest = if client.name.ends_with("-v2") { REVISIONS.len() } else { REVISIONS.len() - 1 };
    let revisions = REVISIONS.iter().take(newest).skip(2);
    let of = |revision: &&'static str| {
        let revision = *revision;
        [Transport::Stdio, Transport::StreamableHttp].map(|transport| TourRun { client, transport, revision })
    };
    revisions.flat_map(of).collect()
}

impl TourRun {
    fn name(&self) -> String {
        format!("{} {} {}", self.client.name, self.transport.name(), self.revision)
    }

    fn execute(&self, paths: &Paths) -> TourReport {
        let begin = Instant::now();
        let (steps, faults) = match self.steps(paths) {
            Ok(steps) => {
                let faults = self.faults(&steps);
                (steps, faults)
            }
            Err(error) => (Steps::new(), vec![format!("{error:#}")]),
        };
        let done = steps.values().filter(|outcome| *outcome == "done").count();
        println!(
            "tour           {:<35} {done} steps done  ({})",
            self.name(),
            shell::duration(begin.elapsed())
        );
        TourReport { name: self.name(), steps, faults }
    }

    /// Runs the client against a server that is there for this run only.
    fn steps(&self, paths: &Paths) -> Result<Steps> {
        let name = format!("tour-{}", self.name().replace(' ', "-"));
        let file = |ending: &str| paths.out.join("results").join(format!("{name}.{ending}"));
        let report = file("json");
        if report.exists() {
            fs::remove_file(&report).with_context(|| format!("cannot remove {}", report.display()))?;
        }
        let path = report.to_str().context("the target folder's name is no text")?;
        let options = ["--tour", "--report", path];
        let mut command = self.client.command(&paths.sources, &paths.out);
        command.args(["tour", self.revision, "--"]);
        let log = file("log");
        let server = match self.transport {
            Transport::Stdio => {
                command.arg(&paths.server).arg("stdio").args(options);
                None
            }
            transport => {
                let server = Server::start(&paths.server, &options, transport, &file("server.log"))?;
                command.arg(&server.url);
                Some(server)
            }
        };
        match shell::run_logged(&mut command, &log, LIMIT)? {
            Some(status) if status.success() => {}
            Some(status) => bail!("the client ended with {status}; see {}", log.display()),
            None => bail!("the client did not end; see {}", log.display()),
        }
        server.map_or(Ok(()), Server::stop)?;
        read(&report)
    }

    /// What of the outcomes is not as it must be.
    fn faults(&self, steps: &Steps) -> Vec<String> {
        let wrong = steps.iter().filter(|(step, outcome)| {
            let expected: &[&str] =
                if self.can_be_done(step) { &["done"] } else { &["notDeclared", "notReached"] };
            !expected.contains(&outcome.as_str())
        });
        wrong.map(|(step, outcome)| format!("{step} is {outcome}")).collect()
    }

    /// Whether the SDK, the revision and the transport have a step.
    fn can_be_done(&self, step: &str) -> bool {
        let (is_http, is_sessions) = (self.transport != Transport::Stdio, self.revision < "2026");
        match step {
            "ping" => is_sessions,
            "roots-change" => is_sessions,
            "elicit-url" => self.revision >= "2025-11-25",
            "sampling-tools" => self.revision >= "2025-11-25" && self.client.language == Language::TypeScript,
            "cut" => is_http && self.revision == "2025-11-25",
            "expiry" | "version-fallback" => is_http && is_sessions,
            _ => true,
        }
    }
}

/// The outcomes in a report, once it is there.
fn read(report: &Path) -> Result<Steps> {
    let begin = Instant::now();
    let report: Value = loop {
        let text = fs::read_to_string(report).unwrap_or_default();
        match serde_json::from_str(&text) {
            Ok(report) => break report,
            Err(_) if begin.elapsed() < REPORT_LIMIT => thread::sleep(Duration::from_millis(50)),
            Err(error) => bail!("{} is no report: {error}", report.display()),
        }
    };
    let judgements = report["judgements"].as_array().into_iter().flatten();
    let named = judgements.filter(|judgement| judgement["client"] != "");
    let steps = named.flat_map(|judgement| judgement["clientSteps"].as_array().into_iter().flatten());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let steps: Steps = steps.map(|step| (text(&step["step"]), text(&step["outcome"]))).collect();
    if steps.is_empty() {
        bail!("the report has no client");
    }
    Ok(steps)
}

/// A row for each step.
fn markdown(reports: &[TourReport]) -> String {
    let names: Vec<&str> = reports.iter().map(|report| report.name.as_str()).collect();
    let mut text =
        format!("# Tours of others\n\n| | {} |\n|---{}|\n", names.join(" | "), "|---".repeat(names.len()));
    let steps = reports.iter().find(|report| !report.steps.is_empty()).map(|report| report.steps.keys());
    for step in steps.into_iter().flatten() {
        let cells = reports.iter().map(|report| report.steps.get(step).map_or("-", String::as_str));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {step} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_an_sdk_could_do_and_did_not_is_a_fault() {
        let steps = |pairs: &[(&str, &str)]| -> Steps {
            pairs.iter().map(|(step, outcome)| ((*step).to_owned(), (*outcome).to_owned())).collect()
        };
        let run = TourRun { client: &CLIENTS[0], transport: Transport::Stdio, revision: "2025-11-25" };
        assert_eq!(run.faults(&steps(&[("ping", "done"), ("cut", "notReached")])), [""; 0]);
        let wrong = run.faults(&steps(&[("ping", "ignored"), ("cut", "done")]));
        assert_eq!(wrong, ["cut is done", "ping is ignored"]);
    }

    #[test]
    fn each_sdk_is_led_in_the_revisions_that_it_speaks() {
        let revisions = |client| {
            let runs: Vec<TourRun> = tour_runs(client);
            runs.iter().map(|run| run.revision).step_by(2).collect::<Vec<_>>()
        };
        assert_eq!(revisions(&CLIENTS[0]), ["2025-06-18", "2025-11-25"]);
        assert_eq!(revisions(&CLIENTS[1]), ["2025-06-18", "2025-11-25", "2026-07-28"]);
    }
}
